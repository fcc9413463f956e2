"""Read-ahead: another thread reads the next block while the present one is in use."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from contextvars import copy_context
from typing import TYPE_CHECKING

from streamkern.runtime.timing import timed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streamkern.sources.base import Block


@contextmanager
def reading_ahead(blocks: Iterable[Block]) -> Iterator[Iterator[Block]]:
    """Give the same blocks in order, each read while the one before it is in use.

    The first is read at once.  From then on one block is in use and one is being read, never more.
    What reading raises is raised where the block is asked for.
    """
    source, context = iter(blocks), copy_context()
    # A generator is closed, and with it the files it reads from, however it was left.
    end = closing(source) if isinstance(source, Generator) else nullcontext()
    with end, ThreadPoolExecutor(1, "read-ahead") as reader:

        def read() -> Block | None:
            with timed("reading"):
                return next(source, None)

        def begun() -> Future[Block | None]:
            return reader.submit(context.run, read)

        first = begun()

        def handed_over() -> Iterator[Block]:
            coming = first
            while (block := coming.result()) is not None:
                coming = begun()
                yield block

        yield handed_over()
