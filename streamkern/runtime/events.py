"""Events of jobs and passes, and the functions that listen to them.

Events are dictionaries of plain values, so that they travel.  `kind` says what happened; `job` and
`pass` say to what.  A job, such as a fit, is one or several passes and what is done between them.

Tasks tell of shards and merges, and `worker` is the address of theirs, or empty in the process that
started the job.  All else is told by that process.

- `job begun`: name, client, dashboard; `job ended`: error, which is None where it went well
- `planned`: worker_bytes, allowed_bytes; seconds of the main pass, and how often it reads the rows
- `solution planned`: flops that all slots could do while some of them solve
- `searching`: seconds of its budget, or 0; `tried`: setting, error over the targets' deviation
- `pass begun`: label, rows, shards, row_bytes, row_flops; `pass ended`: error
- `resumed`, from a checkpoint: rows, shards
- `shard begun`, `shard failed`: shard, worker; `worker lost`, which the scheduler tells: worker
- `rows read`: shard, worker, and rows of it so far, of shards that take long
- `shard done`: besides rows, elapsed, seconds by activity, peak_bytes, attainable
- `merged`: seconds; `validated`: the error on the rows to come after rows, leading, n_components
- `solved`: seconds, alpha, cv_rmse, alpha_curve
"""

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

from streamkern.errors import first_line
from streamkern.runtime.resources import current_client, current_worker, reaching

Event = dict[str, Any]
Listener = Callable[[Event], object]
logger = logging.getLogger(__name__)
TOPIC = "streamkern"
_PATIENCE = 5.0  # seconds that a scheduler may take to hear of an event
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_job: ContextVar[str | None] = ContextVar("job", default=None)


# By pass, in the process where it was started: who hears what its tasks tell, and the client of
# these, if they are in another process.
_passes: dict[str, tuple[Listener, Any]] = {}


@contextmanager
def observed(listener: Listener | None) -> Iterator[None]:
    """Call a function with every event of the jobs inside; from any thread, so it must be quick."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


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
    number, client, dashboard = uuid.uuid4().hex, current_client(), None
    with suppress(Exception):  # a template of the user's own, and an answer of the scheduler's
        dashboard = client.dashboard_link or None
    place = {"client": getattr(client, "id", None), "dashboard": dashboard}
    tell("job begun", job=number, name=name, **place)
    with _ending("job ended", job=number):
        yield number


@contextmanager
def passing(number: str, label: str, hear: Listener | None = None, **facts: Any) -> Iterator[None]:
    """Tell of one pass, and pass on what its tasks tell to `hear` and to whoever observes."""
    listener, client = _listener.get(), current_client()

    def heard(event: Event) -> None:
        if hear is not None:
            hear(event)
        _listen(listener, event)

    with _part_of_job(label) as whole:
        tell("pass begun", **{"job": whole, "pass": number, "label": label, **facts})
        _passes[number] = heard, client
        try:
            with _ending("pass ended", **{"pass": number}):
                if client is not None:
                    # One topic for all, because a scheduler keeps every topic as long as it lives.
                    with reaching(client):
                        client.subscribe_topic(TOPIC, partial(_pass_on, client.id))
                yield
        finally:
            del _passes[number]
            if client is not None and not any(each is client for _, each in _passes.values()):
                with suppress(Exception):  # of a client that is closed
                    client.unsubscribe_topic(TOPIC)


@contextmanager
def _ending(kind: str, **facts: Any) -> Iterator[None]:
    error = None
    try:
        yield
    except GeneratorExit:  # nobody wants the rest
        raise
    except BaseException as raised:
        error = first_line(raised)
        raise
    finally:
        tell(kind, **facts, error=error)


def tell(kind: str, **facts: Any) -> None:
    """Tell of what happened where jobs are started: to whoever observes, and to the scheduler."""
    event = {"kind": kind, **facts}
    listener, client = _listener.get(), current_client()
    if listener is nobody:
        return
    _listen(listener, event)
    # One that lost its scheduler would wait for it.
    if client is not None and client.status == "running":
        with suppress(Exception):  # a job does not fail because nobody can hear of it
            told = {"topic": TOPIC, "msg": event, "callback_timeout": _PATIENCE}
            client.sync(client.scheduler.log_event, **told)


def _listen(listener: Listener | None, event: Event) -> None:
    """Have somebody hear an event; a job does not fail because they cannot."""
    if listener is not None:
        try:
            listener(event)
        except Exception:
            logger.debug("a listener failed", exc_info=True)


def nobody(event: Event) -> None:
    """Hear nothing, and let no scheduler hear it either."""


def tell_of_job(kind: str, **facts: Any) -> None:
    """Tell of the job that this is part of, if any."""
    number = _job.get()
    if number is not None:
        tell(kind, job=number, **facts)


def tell_from_task(number: str, kind: str, **facts: Any) -> None:
    event = {"kind": kind, "pass": number, **facts}
    (hear, client), worker = _passes.get(number, (None, None)), current_worker()
    if hear is not None and not (client is not None and worker is not None):
        hear(event | {"worker": ""})
    elif worker is not None:  # else nobody can be told from here
        worker.log_event(TOPIC, event | {"worker": worker.address})


def _pass_on(client_id: str, logged: tuple[Any, Event]) -> None:
    """Pass on what a client hears of its own passes, and not of those of others."""
    event = logged[1]
    hear, client = _passes.get(event.get("pass", ""), (None, None))
    is_ours = client is not None and client.id == client_id
    if hear is not None and is_ours and event.get("worker"):  # all else was told here
        hear(event)
