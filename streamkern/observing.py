"""Who hears how a pass comes along, and what tasks tell from where they run."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from streamkern.scheduling import current_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Observer(Protocol):
    """Someone who is told how a pass comes along, from whichever thread knows."""

    def started(self, label: str, n_rows: int) -> None:
        """Hear that a pass over `n_rows` begins."""

    def advanced(self, n_rows: int) -> None:
        """Hear that `n_rows` more are done."""

    def finished(self) -> None:
        """Hear that the pass ended, well or not."""


class _Nobody:
    """Listens to nothing."""

    def started(self, label: str, n_rows: int) -> None: ...

    def advanced(self, n_rows: int) -> None: ...

    def finished(self) -> None: ...


_observer: ContextVar[Observer] = ContextVar("observer", default=_Nobody())  # noqa: B039  stateless
_TOPIC = "streamkern"
# What to call about the shards of a job, in the process where the job was started.
_listeners: dict[str, Callable[[int, int, str], None]] = {}


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Tell an observer of every pass that runs inside the context."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


@contextmanager
def observed_pass(label: str, n_rows: int) -> Iterator[Observer]:
    """Tell the observer of one pass, and yield it."""
    observer = _observer.get()
    observer.started(label, n_rows)
    try:
        yield observer
    finally:
        observer.finished()


def tell(job: str, shard: int, n_rows: int) -> None:
    """Say from a task that a shard was begun (`n_rows` 0) or is done."""
    listener = _listeners.get(job)
    if listener is not None:
        listener(shard, n_rows, "")
    elif (worker := current_worker()) is not None:  # else nobody can be told from here
        worker.log_event(_TOPIC, (job, shard, n_rows, worker.address))


@contextmanager
def listening(job: str, heard: Callable[[int, int, str], None], client: Any) -> Iterator[None]:
    """Call a function with what tasks of a job tell, and the address of their worker."""
    _listeners[job] = heard
    if client is not None:
        # One topic for all jobs, because a scheduler keeps every topic as long as it lives.
        client.subscribe_topic(_TOPIC, _pass_on)
    try:
        yield
    finally:
        del _listeners[job]


def _pass_on(event: tuple[Any, tuple[str, int, int, str]]) -> None:
    job, shard, n_rows, worker = event[1]
    listener = _listeners.get(job)
    if listener is not None:
        listener(shard, n_rows, worker)
