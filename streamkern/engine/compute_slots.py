"""Compute slots: how many tasks of a pass compute at a time in a process, and their memory."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from queue import LifoQueue
from typing import TYPE_CHECKING, Any

from streamkern.runtime.resources import current_worker
from streamkern.runtime.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        return ComputeSlots, (self.n_slots,)

    @property
    def here(self) -> int:
        worker = current_worker()
        return self.n_slots if worker is None else int(worker.state.nthreads)

    @contextmanager
    def taken(self) -> Iterator[Scratch]:
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
