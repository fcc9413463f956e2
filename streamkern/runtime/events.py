"""What happens to a job, told as it happens, and who hears of it.

Events are dictionaries of plain values, so that they travel.  `kind` says what happened; `job` and
`pass` say to what.  A job, such as a fit, is one or several passes and what is done between them.

    job begun     job, name, client, dashboard    who began it, and where it can be watched
    planned       job, worker_bytes, allowed_bytes
    pass begun    job, pass, label, rows, row_bytes, shards, row_flops
    resumed       pass, rows, shards         from a checkpoint
    shard begun   pass, shard, worker
    shard failed  pass, shard, worker
    shard done    pass, shard, worker, rows, and what `streamkern.engine.shard_task` measured
    merged        pass, worker, seconds
    validated     pass, rows, error, leading, n_components    RMSE on rows to come
    pass ended    pass, error                None where it went well
    solved        job, seconds, alphas, errors, chosen
    job ended     job, error

Tasks tell of shards and merges, and `worker` is the address of theirs, or empty in the process that
started the job.  All else is told by that process.
"""

from __future__ import annotations

import logging
import uuid
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from streamkern.errors import first_line
from streamkern.runtime.resources import current_client, current_worker, reaching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Event = dict[str, Any]
    Listener = Callable[[Event], object]

logger = logging.getLogger(__name__)
TOPIC = "streamkern"
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_job: ContextVar[str | None] = ContextVar("job", default=None)


class _Heard(NamedTuple):
    """Who hears what tasks of a pass tell, and whether the tasks are in another process."""

    hear: Listener
    is_remote: bool


# By pass, in the process where it was started.
_passes: dict[str, _Heard] = {}


@contextmanager
def observed(listener: Listener | None) -> Iterator[None]:
    """Have a function called with every event of the jobs that run inside the context.

    It is called from whichever thread knows, and should be quick.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def current_listener() -> Listener | None:
    """Return who observes now."""
    return _listener.get()


@contextmanager
def job(name: str) -> Iterator[str]:
    """Make what runs inside one job, unless it is part of one already, and yield its number."""
    with _part_of_job(name) as number:
        token = _job.set(number)
        try:
            yield number
        finally:
            _job.reset(token)


@contextmanager
def _part_of_job(name: str) -> Iterator[str]:
    """Yield the number of the job that this is part of, or of one that this is all of.

    What goes on in a generator must not set the present job: its caller goes on in between.
    """
    outer = _job.get()
    if outer is not None:
        yield outer
        return
    number = uuid.uuid4().hex
    tell("job begun", job=number, name=name, **_client())
    with _ending("job ended", job=number):
        yield number


def _client() -> dict[str, Any]:
    """Return who begins a job, where that is a client of a cluster, and where to watch it."""
    client, dashboard = current_client(), None
    with suppress(Exception):  # a template of the user's own, and an answer of the scheduler's
        dashboard = client.dashboard_link
    return {"client": getattr(client, "id", None), "dashboard": dashboard or None}


@contextmanager
def passing(number: str, label: str, hear: Listener | None = None, **facts: Any) -> Iterator[None]:
    """Tell of one pass, and of what its tasks tell.

    Parameters
    ----------
    number : str
        By which its tasks tell of it.
    label : str
    hear : callable, optional
        Is called with what tasks tell, besides whoever observes.
    **facts
        Of the pass.
    """
    listener, client = _listener.get(), current_client()

    def heard(event: Event) -> None:
        if hear is not None:
            hear(event)
        _listen(listener, event)

    with _part_of_job(label) as whole:
        tell("pass begun", **{"job": whole, "pass": number, "label": label, **facts})
        _passes[number] = _Heard(heard, client is not None)
        if client is not None:
            # One topic for all, because a scheduler keeps every topic as long as it lives.
            with reaching():
                client.subscribe_topic(TOPIC, _pass_on)
        try:
            with _ending("pass ended", **{"pass": number}):
                yield
        finally:
            del _passes[number]
            if client is not None and not any(each.is_remote for each in _passes.values()):
                with suppress(Exception):  # of a client that is closed
                    client.unsubscribe_topic(TOPIC)


@contextmanager
def _ending(kind: str, **facts: Any) -> Iterator[None]:
    try:
        yield
    except GeneratorExit:  # nobody wants the rest
        tell(kind, **facts, error=None)
        raise
    except BaseException as error:
        tell(kind, **facts, error=first_line(error))
        raise
    tell(kind, **facts, error=None)


def tell(kind: str, **facts: Any) -> None:
    """Tell of what happened where jobs are started: to whoever observes, and to the scheduler."""
    event = {"kind": kind, **facts}
    listener, client = _listener.get(), current_client()
    if listener is _nobody:
        return
    _listen(listener, event)
    # One that lost its scheduler would wait for it.
    if client is not None and client.status == "running":
        with suppress(Exception):  # a job does not fail because nobody can hear of it
            client.log_event(TOPIC, event)


def _listen(listener: Listener | None, event: Event) -> None:
    """Have somebody hear an event; a job does not fail because they cannot."""
    if listener is not None:
        try:
            listener(event)
        except Exception:
            logger.debug("a listener failed", exc_info=True)


def _nobody(event: Event) -> None:
    """Hear nothing, and let no scheduler hear it either."""


def unheard() -> AbstractContextManager[None]:
    """Tell nobody of what runs inside the context."""
    return observed(_nobody)


def tell_of_job(kind: str, **facts: Any) -> None:
    """Tell of the job that this is part of, if any."""
    number = _job.get()
    if number is not None:
        tell(kind, job=number, **facts)


def tell_from_task(number: str, kind: str, **facts: Any) -> None:
    """Tell from a task of a pass."""
    event = {"kind": kind, "pass": number, **facts}
    heard, worker = _passes.get(number), current_worker()
    if heard is not None and not (heard.is_remote and worker is not None):
        heard.hear(event | {"worker": ""})
    elif worker is not None:  # else nobody can be told from here
        worker.log_event(TOPIC, event | {"worker": worker.address})


def _pass_on(event: tuple[Any, Event]) -> None:
    told = event[1]
    heard = _passes.get(told.get("pass", ""))
    if heard is not None and told.get("worker"):  # all else was told here
        heard.hear(told)
