"""What tasks tell of the shards of a pass, and workers that stay at one of them far too long."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import dask
from dask.utils import parse_timedelta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern.observing import Observer

_PATIENCE = "streamkern.straggler-timeout"
# A shard is late when it takes so many times as long as the slowest that ended.
_TIMES = 10.0


class Attempts:
    """The shards that were begun, and those that are done.

    Parameters
    ----------
    observer : Observer
        Is told of the rows of every shard once.
    """

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._counts: Counter[int] = Counter()
        self._done: set[int] = set()
        self._begun: dict[int, float] = {}
        self._slowest: float | None = None

    @property
    def n_retried(self) -> int:
        """How many shards were begun more than once."""
        return sum(count > 1 for count in self._counts.values())

    def heard(self, shard: int, n_rows: int) -> None:
        """Hear that a shard was begun (`n_rows` 0), or is done."""
        now = time.monotonic()
        if not n_rows:
            self._counts[shard] += 1
            self._begun[shard] = now
            return
        taken = now - self._begun.pop(shard, now)
        self._slowest = max(self._slowest or 0.0, taken)
        if shard not in self._done:
            self._done.add(shard)
            self.observer.advanced(n_rows)

    def late(self, seconds: float) -> set[int]:
        """Return the shards under way for more than some seconds, and far longer than any took."""
        if self._slowest is None:
            return set()
        limit = time.monotonic() - max(seconds, _TIMES * self._slowest)
        return {shard for shard, begun in list(self._begun.items()) if begun < limit}


@contextmanager
def restarting_stragglers(client: Any, job: str, attempts: Attempts) -> Iterator[None]:
    """Start workers anew that are late with a shard of a job, so that another one takes it over.

    That is a worker whose reader hangs, or whose machine is far slower than the others.  It has a
    nanny to start it, and is at nothing but this job.  The Dask configuration
    `streamkern.straggler-timeout`, by default a minute, is the least time that a shard is given;
    it doubles with every restart.

    Parameters
    ----------
    client : distributed.Client, optional
    job : str
        Part of the keys of its tasks.
    attempts : Attempts
    """
    if client is None:
        yield
        return
    over = threading.Event()
    watching = threading.Thread(
        target=_watch, args=(client, job, attempts, over), name="stragglers", daemon=True
    )
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def _watch(client: Any, job: str, attempts: Attempts, over: threading.Event) -> None:
    patience = parse_timedelta(dask.config.get(_PATIENCE, "60s"))
    while not over.wait(min(patience / 5, 5.0)):
        late = attempts.late(patience)
        if late and _restarted(client, job, late):
            patience *= 2


def _restarted(client: Any, job: str, late: set[int]) -> bool:
    """Start the workers anew that are at the late shards, and say whether there were any."""
    try:
        nannies = client.scheduler_info(n_workers=-1)["workers"]
        found = [
            worker
            for worker, keys in client.processing().items()
            if keys
            and all(job in str(key) for key in keys)
            and any(str(key).endswith(f"{job}-{shard}") for key in keys for shard in late)
            and nannies.get(worker, {}).get("nanny")
        ]
        if found:
            client.restart_workers(found, raise_for_error=False)
    except OSError:  # the scheduler is gone, which whoever waits for the pass learns too
        return False
    return bool(found)
