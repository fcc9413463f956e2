"""Rows from a generator, and what may happen to the process that reads them."""

import ctypes
import os
import signal
import time
from dataclasses import dataclass

import numpy as np

from streamkern.engine.reduction import accumulate
from streamkern.features import Identity
from streamkern.sources import Block, Reader, Source
from streamkern.sources.base import Segment
from streamkern.statistics import Moments

P, SHARD_ROWS, SHARDS = 3, 1000, 16
TROUBLED = 9  # the shard


@dataclass(frozen=True)
class TroubledReader(Reader):
    start: int
    trouble: object
    seconds: float

    def blocks(self, n_rows):
        if self.trouble and self.start == TROUBLED * SHARD_ROWS:
            self.trouble()
        time.sleep(self.seconds)
        rng = np.random.default_rng(self.start)
        yield Block(rng.standard_normal((n_rows, P)), rng.standard_normal((n_rows, 1)), self.start)


class Troubled(Source):
    """Rows from a generator; before those of one shard, something happens."""

    n_samples, n_features, n_targets, target_ndim = SHARDS * SHARD_ROWS, P, 1, 1
    dtype, rounding = np.dtype(float), 0.0

    def __init__(self, trouble=None, seconds=0.0):
        self.trouble = trouble
        self.seconds = seconds

    def segments(self):
        return [Segment(0, self.n_samples, SHARD_ROWS)]

    def reader(self, shard):
        assert shard.n_rows == SHARD_ROWS
        return TroubledReader(shard.start, self.trouble, self.seconds)

    def check_unchanged(self):
        pass

    def locate(self, row):
        return f"row {row:,}"

    def describe(self):
        return {}


def once(mark, what):
    """Do something the first time that anybody comes by."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    what()


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def segfault():
    ctypes.string_at(0)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def fill_memory():
    held = []
    while True:
        held.append(np.ones(10 << 20, dtype=np.uint8))
        time.sleep(0.02)


def moments(trouble=None, seconds=0.0, **options):
    """A pass over such rows."""
    options |= {"shard_rows": SHARD_ROWS, "block_rows": SHARD_ROWS, "label": "moments"}
    return accumulate(Troubled(trouble, seconds), Moments(Identity().draw(P), 1), **options)


def sums(result):
    """The bits of what a pass has summed."""
    parts = result.statistic.detached()
    return b"".join(np.asarray(parts[name]).tobytes() for name in ("cross", "target"))
