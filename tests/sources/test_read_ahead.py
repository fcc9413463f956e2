"""Reading ahead: the same blocks, one at most beyond the one in use, errors where they belong."""

import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from streamkern.sources import Block, reading_ahead


def blocks(n=5):
    for i in range(n):
        yield Block(np.full((1, 2), i), np.zeros((1, 0)), i)


@pytest.mark.parametrize("n", [0, 1, 2, 8])
def test_the_same_blocks_come_in_order_one_at_most_beyond_the_one_in_use(n):
    begun, used = [], []

    def counted():
        for block in blocks(n):
            begun.append(block.start)
            yield block

    with reading_ahead(counted()) as read:
        for block in read:
            time.sleep(0.02)
            assert max(begun) <= block.start + 1
            used.append(block.start)
    assert begun == used == list(range(n))


def test_a_block_is_read_while_another_is_in_use():
    reading, in_use = threading.Event(), threading.Event()

    def waiting():
        yield from blocks(1)
        reading.set()
        # Would wait in vain if nothing were in use meanwhile.
        assert in_use.wait(10)
        yield from blocks(1)

    with reading_ahead(waiting()) as read:
        next(read)
        assert reading.wait(10)
        in_use.set()
        next(read)


def test_what_reading_raises_is_raised_where_the_block_is_asked_for():
    def failing():
        yield from blocks(2)
        raise OSError("the disk is gone")

    with reading_ahead(failing()) as read:
        assert [next(read).start, next(read).start] == [0, 1]
        with pytest.raises(OSError, match="the disk is gone"):
            next(read)


def test_what_is_read_from_is_closed_however_it_is_left_and_no_thread_stays():
    before, closed = threading.active_count(), []

    def file():
        try:
            yield from blocks(9)
        finally:
            closed.append(True)

    with suppress(ZeroDivisionError), reading_ahead(file()) as read:
        next(read)
        raise ZeroDivisionError
    with reading_ahead(file()) as read:
        next(read)
    assert closed == [True, True]
    assert threading.active_count() == before
