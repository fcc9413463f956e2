"""Compute slots: a process reads for more shards than it has cores to compute on.

A task that begins its last block lets the worker begin the next one, which reads its first block
and then waits for a slot.  So neither slow storage nor the way to the scheduler keeps a core idle.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from queue import LifoQueue
from typing import TYPE_CHECKING, Any

from streamkern.runtime.resources import current_worker
from streamkern.runtime.scratch import Scratch
from streamkern.runtime.signals import stopping

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streamkern.sources import Block


class ComputeSlots:
    """Places to compute at, each with its working memory, in every process that a pass runs in.

    A node of the graph of the pass: tasks in one process share one object, a copy that is sent to
    another process begins empty there, and Dask frees the memory when the last task has had it.
    A worker has as many as threads, a process that runs its own tasks `n_slots`.
    """

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self._lock = threading.Lock()
        self._free: LifoQueue[Scratch] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the memory behind."""
        return ComputeSlots, (self.n_slots,)

    @property
    def here(self) -> int:
        """How many there are in the process of the present task."""
        worker = current_worker()
        return self.n_slots if worker is None else int(worker.state.nthreads)

    @contextmanager
    def taken(self) -> Iterator[Scratch]:
        """Wait for a slot, and hold it with its working memory."""
        with self._lock:
            if self._free is None:
                self._free = LifoQueue()
                for _ in range(self.here):
                    self._free.put(Scratch())
        scratch = self._free.get()
        try:
            yield scratch
        finally:
            self._free.put(scratch)


def to_the_last(blocks: Iterable[Block], n_rows: int, job: str) -> Iterator[Block]:
    """Yield blocks of so many rows; with the last, the worker may begin another task.

    Where tasks run on threads of one process there is a thread more than slots instead.
    """
    done = 0
    for block in blocks:
        if stopping.is_set():
            raise KeyboardInterrupt
        done += len(block)
        worker = current_worker() if done == n_rows else None
        # A whole pass may run inside somebody else's task, which goes on for long after this.
        if worker is not None and job in str(worker.get_current_task()):
            from distributed import secede  # noqa: PLC0415  where a worker is

            secede()
        yield block
