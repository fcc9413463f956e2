"""Retries of shards, and stragglers: workers that stay at one shard far too long."""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter
from contextlib import contextmanager, suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import dask
from dask.utils import parse_timedelta

from streamkern.errors import ClusterError, StreamkernWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern.runtime.events import Event

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
        self._done: set[int] = set()
        self._begun: dict[int, tuple[float, str]] = {}
        self._slowest = 0.0
        self._last_heard = time.monotonic()

    @property
    def n_retried(self) -> int:
        """How many shards were begun more than once."""
        return sum(count > 1 for count in self._counts.values())

    def heard(self, event: Event) -> None:
        """Hear that a shard was begun, or is done, on a worker."""
        self._last_heard = now = time.monotonic()
        if event["kind"] == "shard begun":
            self._counts[event["shard"]] += 1
            self._begun[event["shard"]] = now, event["worker"]
        elif event["kind"] == "shard done":
            begun, _ = self._begun.pop(event["shard"], (now, ""))
            self._slowest = max(self._slowest, now - begun)
            self._done.add(event["shard"])

    def check(self, remedy: str) -> None:
        """Raise ClusterError if sums are lost, with the workers that hold them, faster than made.

        The Dask configuration `streamkern.shard-attempts`, by default 20, says how often a shard
        may be begun.
        """
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
        usual = _TIMES * self._slowest if self._done else _FIRST
        limit = time.monotonic() - max(seconds, usual)
        return {worker for begun, worker in list(self._begun.values()) if begun < limit}

    def stands_still(self, seconds: float) -> bool:
        """Say whether nothing was heard for some seconds."""
        return time.monotonic() - self._last_heard > seconds

    def forget(self, worker: str) -> None:
        """Forget what was begun on a worker that is gone."""
        for shard, (_, where) in list(self._begun.items()):
            if where == worker:
                self._begun.pop(shard, None)


@contextmanager
def restarting_stragglers(client: Any, job: str, attempts: Attempts) -> Iterator[None]:
    """Start workers anew that are late with a shard of a job, so that another one takes it over.

    That is a worker whose reader hangs, or whose machine is far slower than the others, and that is
    at nothing but this job, which is part of the keys of its tasks.  One that has no nanny to start
    it is removed where there are others, as is one without a nanny that stands still.  The Dask
    configuration `streamkern.straggler-timeout`, by default a minute, is the least time that a
    shard is given; it doubles with every restart.
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
        watching.join(_END)


def _watch(client: Any, job: str, attempts: Attempts, over: threading.Event) -> None:
    patience = parse_timedelta(dask.config.get(_PATIENCE, "60s"))
    silent: set[str] = set()
    while not over.wait(min(patience / 5, 5.0)):
        try:
            silent = _removed(client, job, attempts, silent, patience)
            if _restarted(client, job, attempts, patience):
                patience *= 2
        except Exception:  # noqa: BLE001, S112  whoever waits for the pass learns of it too
            continue


def _removed(
    client: Any, job: str, attempts: Attempts, before: set[str], seconds: float
) -> set[str]:
    """Remove the workers without nannies that are late, or silent at two looks, if others stay.

    Returns those that are silent now: after one look it may be the scheduler that stood still.
    """
    late = attempts.late(seconds)
    if not late and not attempts.stands_still(seconds):
        return set()

    async def remove(dask_scheduler: Any) -> tuple[list[str], list[str]]:
        alone = {each.address: each for each in dask_scheduler.workers.values() if not each.nanny}
        silent = [name for name, each in alone.items() if time.time() - each.last_seen > seconds]
        found = [
            name
            for name in sorted(late & alone.keys() | before.intersection(silent))
            if all(job in str(task.key) for task in alone[name].processing)
        ]
        if len(found) < len(dask_scheduler.workers):
            for name in found:
                await dask_scheduler.remove_worker(name, stimulus_id=f"streamkern-{job}")
        return found, silent

    found, silent = client.run_on_scheduler(remove)
    for worker in found:
        attempts.forget(worker)
        with suppress(StreamkernWarning):  # where warnings are errors
            warnings.warn(
                f"the worker at {worker} stands still, and has no nanny to start it anew; others "
                f"go on with its work, where there are any.",
                StreamkernWarning,
                stacklevel=1,
            )
    return set(silent)


def _restarted(client: Any, job: str, attempts: Attempts, patience: float) -> bool:
    """Start the workers anew that are late, and say whether there were any."""
    late = attempts.late(patience)
    if not late:
        return False
    workers, processing = client.scheduler_info(n_workers=-1)["workers"], client.processing()
    for worker in late - workers.keys():
        attempts.forget(worker)
    found = [
        worker
        for worker in late & workers.keys()
        if workers[worker]["nanny"] and all(job in str(key) for key in processing[worker])
    ]
    if found:
        client.restart_workers(found, timeout=_END, raise_for_error=False)
    return bool(found)
