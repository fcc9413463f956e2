"""Reading ahead: the next block is read by another thread."""

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from contextvars import copy_context

from streamkern.runtime.timing import timed
from streamkern.sources.base import Block


@contextmanager
def reading_ahead(blocks: Iterable[Block]) -> Iterator[Iterator[Block]]:
    """Give the same blocks in order, each read by another thread while the one before is in use.

    The first is read at once.  What reading raises is raised where the block is asked for.
    """
    source, context = iter(blocks), copy_context()
    # A generator is closed, and with it the files it reads from, however it was left.
    end = closing(source) if isinstance(source, Generator) else nullcontext()

    def read() -> Block | None:
        with timed("reading"):
            return next(source, None)

    with end, ThreadPoolExecutor(1, "read-ahead") as reader:
        first = reader.submit(context.run, read)

        def handed_over() -> Iterator[Block]:
            coming = first
            while (block := coming.result()) is not None:
                coming = reader.submit(context.run, read)
                yield block

        yield handed_over()
