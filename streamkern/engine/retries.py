"""Retries of shards, and stragglers: workers that stay at one shard far too long."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from typing import Any

import dask

from streamkern.errors import ClusterError, StreamkernWarning, warn
from streamkern.runtime.events import Event
from streamkern.runtime.feature_store import STORE
from streamkern.runtime.resources import configured_seconds

_PATIENCE, _ATTEMPTS = "streamkern.straggler-timeout", "streamkern.shard-attempts"
# A shard is late when it takes so many times as long as the slowest that ended; seconds for that
# where none has ended yet.
_TIMES, _FIRST = 10.0, 3600.0
# Seconds that a restart, and the end of the watch, may take.
_END = 10.0


class Attempts:
    """The shards of a pass that were begun, and those that are done."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._begun: dict[int, tuple[float, str]] = {}
        self._slowest: float | None = None  # of the shards that are done
        self._last_heard = time.monotonic()

    @property
    def n_retried(self) -> int:
        return sum(count > 1 for count in self._counts.values())

    def heard(self, event: Event) -> None:
        self._last_heard = now = time.monotonic()
        if event["kind"] == "shard begun":
            self._counts[event["shard"]] += 1
            self._begun[event["shard"]] = now, event["worker"]
        elif event["kind"] == "shard done":
            begun, _ = self._begun.pop(event["shard"], (now, ""))
            self._slowest = max(self._slowest or 0.0, now - begun)

    def check(self, remedy: str) -> None:
        """Raise ClusterError if sums are lost, with workers that hold them, faster than made."""
        most = dask.config.get(_ATTEMPTS, 20)
        counts = list(self._counts.items())  # others hear meanwhile
        shard, times = max(counts, key=itemgetter(1), default=(0, 0))
        if times > most:
            raise ClusterError(
                f"shard {shard + 1} was begun {times} times, because workers died that held its "
                f"sums, and {_ATTEMPTS} allows {most}; {remedy}."
            )

    def late(self, seconds: float) -> set[str]:
        """Return workers that are at a shard for some seconds, and for far longer than usual."""
        usual = _FIRST if self._slowest is None else _TIMES * self._slowest
        limit = time.monotonic() - max(seconds, usual)
        return {worker for begun, worker in list(self._begun.values()) if begun < limit}

    def stands_still(self, seconds: float) -> bool:
        return time.monotonic() - self._last_heard > seconds

    def forget(self, workers: Iterable[str]) -> None:
        for shard, (_, worker) in list(self._begun.items()):
            if worker in workers:
                self._begun.pop(shard, None)


@contextmanager
def restarting_stragglers(client: Any, job: str, attempts: Attempts) -> Iterator[None]:
    """Start workers anew that are late with a shard of a job, so that another one takes it over.

    Only those that are at nothing else; the job is part of the keys of its tasks.  One without a
    nanny, late or silent, is removed where there are others.  The Dask configuration
    `streamkern.straggler-timeout`, a minute, is the least time for a shard; restarts double it.
    """
    if client is None:
        yield
        return
    over, least = threading.Event(), configured_seconds(_PATIENCE, "60s")

    def watch() -> None:
        patience, silent = least, set[str]()
        while not over.wait(min(patience / 5, 5.0)):
            with suppress(Exception):  # whoever waits for the pass learns of it too
                silent, restarted = _look_after(client, job, attempts, silent, patience)
                patience *= 1 + restarted

    watching = threading.Thread(target=watch, name="stragglers", daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join(_END)


def _look_after(
    client: Any, job: str, attempts: Attempts, before: set[str], seconds: float
) -> tuple[set[str], bool]:
    """Remove or restart workers that are late, or silent at two looks and without a nanny.

    Returns those that are silent now, since after one look it may be the scheduler that stood
    still, and whether any was restarted.
    """
    late = attempts.late(seconds)
    if not late and not attempts.stands_still(seconds):
        return set(), False

    def is_ours(key: str) -> bool:
        return job in key or key.startswith(STORE)

    async def look(dask_scheduler: Any) -> tuple[set[str], set[str], set[str], set[str]]:
        workers = dask_scheduler.workers
        alone = {name for name, each in workers.items() if not each.nanny}
        silent = {name for name in alone if time.time() - workers[name].last_seen > seconds}
        ours = {
            name
            for name, each in workers.items()
            if all(is_ours(str(task.key)) for task in each.processing)
        }
        removed = ours & (late & alone | before & silent)
        if len(removed) < len(workers):
            for name in sorted(removed):
                await dask_scheduler.remove_worker(name, stimulus_id=f"streamkern-{job}")
        return silent, removed, ours & late - alone, late - workers.keys()

    silent, removed, slow, gone = client.run_on_scheduler(look)
    attempts.forget(removed | gone)
    for worker in sorted(removed):
        with suppress(StreamkernWarning):  # where warnings are errors
            warn(
                f"the worker at {worker} stands still, and has no nanny to start it anew; others "
                f"go on with its work, where there are any."
            )
    if slow:
        client.restart_workers(sorted(slow), timeout=_END, raise_for_error=False)
    return silent, bool(slow)
