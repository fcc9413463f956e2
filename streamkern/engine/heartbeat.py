"""The heartbeat of a scheduler: its client is closed where it does not answer for too long.

A scheduler that stands still keeps its connections and answers nobody; whoever asks it something
would wait for ever.  So it is asked for a sign of life now and then; to close its client ends every
wait.
"""

import asyncio
from contextlib import suppress
from contextvars import Context
from typing import Any
from weakref import WeakKeyDictionary

from streamkern.errors import StreamkernWarning, warn
from streamkern.runtime.private_names import closed_at_once
from streamkern.runtime.resources import configured_seconds
from streamkern.runtime.stopping import stopping

# Seconds between two looks.
_LOOK = 2.0
_PATIENCE, _PATIENCE_DEFAULT = "streamkern.scheduler-timeout", "5 minutes"
# After which part of the patience with a scheduler to say something.
_PART = 0.1
_REMEDY = (
    f"resume or restart it, and run this again (--checkpoint DIR keeps what is done), or set "
    f"{_PATIENCE} in the Dask configuration to wait longer"
)


class Heartbeat:
    """The signs of life of a client's scheduler; made by `heartbeat_of`."""

    def __init__(self) -> None:
        self.n_waiting = 0  # for answers; only then the client is closed
        self.is_left = False  # nobody waits any more: closed unless it answers now
        self.given_up: str | None = None  # why the client was closed

    async def watch(self, client: Any, patience: float) -> None:
        look, silent, is_said = min(_LOOK, _PART * patience), 0.0, False
        where = f"the scheduler at {client.scheduler.address}"
        while client.status not in ("closing", "closed"):
            if not self.n_waiting or await _answers(client, look):
                silent, is_said, self.is_left = 0.0, False, False
                await asyncio.sleep(look)
                continue
            silent += look  # and not what has passed: this process may have stood still too
            if silent >= _PART * patience and not is_said:
                is_said = True
                why = f"{where} has not answered for {silent:.3g} s; given up after {patience:g} s."
                with suppress(StreamkernWarning):  # where warnings are errors
                    warn(why)
            if silent >= patience or self.is_left or stopping.is_set():
                self.given_up = f"{where} has not answered for {silent:.3g} s; {_REMEDY}."
                if client.scheduler_comm is not None:  # which it is while it connects again
                    client.scheduler_comm.abort()
                await closed_at_once(client)


_heartbeats: WeakKeyDictionary[Any, Heartbeat] = WeakKeyDictionary()


async def _answers(client: Any, seconds: float) -> bool:
    """Say whether a scheduler answers in time, or its client knows that it is gone."""
    try:
        await asyncio.wait_for(client.scheduler.echo(data=""), seconds)
    except TimeoutError:
        return False
    except Exception:  # noqa: BLE001  whatever cuts a connection
        await asyncio.sleep(seconds)
        return bool(client.status != "running")
    return True


def heartbeat_of(client: Any) -> Heartbeat:
    """Return the heartbeat of a client's scheduler, which is watched from the first call on."""
    found = _heartbeats.get(client)
    if found is None:
        patience = configured_seconds(_PATIENCE, _PATIENCE_DEFAULT)
        found = _heartbeats[client] = Heartbeat()
        # Where this client is the current one, it would not be forgotten when it is closed.
        Context().run(client.loop.add_callback, found.watch, client, patience)
    return found
