"""Features that workers keep in a file, for passes over the same rows that need them again.

At D = 16,384 reading them takes a twentieth of making them, and a fit by conjugate gradients that
reads its rows 52 times took 410 s in place of 520.
"""

import os
import tempfile
import threading
import uuid
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Self
from weakref import WeakValueDictionary, finalize

import dask

from streamkern._typing import Array
from streamkern.engine.scheduler import submitting
from streamkern.runtime.memory import available_bytes
from streamkern.runtime.resources import current_client, current_worker, reaching
from streamkern.runtime.timing import timed
from streamkern.sources import Shard

# Annotations of a caller that say themselves where tasks may run.
_OF_CALLERS = {"workers", "resources"}
_OR_ANY = {"allow_other_workers": True}
# The stores of this process, as long as somebody holds them.
_stores: "WeakValueDictionary[str, FeatureStore]" = WeakValueDictionary()
_lock = threading.Lock()


class FeatureStore:
    """Features of blocks of rows, as they were made, up to so many bytes in a process.

    The file has no name, so that it goes with the object or the process, however that ends.  What
    is not in it is made, so that results do not depend on it.  A copy is the store of the process
    that it is sent to.
    """

    def __init__(self, name: str, most_bytes: int) -> None:
        self.name, self.most_bytes, self.process = name, most_bytes, os.getpid()
        self._lock = threading.Lock()
        self._file: Any = None
        self._taken = 0
        self._blocks: dict[Hashable, tuple[int, list[slice]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return store_here, (self.name, self.most_bytes)

    def evaluated(self, block: Hashable, out: Array, made: Iterator[slice]) -> Iterator[slice]:
        """Yield the slices that `made` writes to `out`, read from the file if it has the block."""
        done, (place, slices) = 0, self._blocks.get(block, (0, []))
        for rows in slices:
            if not self._moves(os.preadv, out[rows], place):
                break
            done, place = rows.stop, place + out[rows].nbytes
            yield rows
        if done == len(out):
            return
        free, slices = self._taken_for(out.nbytes), []
        for rows in made:
            if free is not None and not self._moves(
                os.pwritev, out[rows], free + out[: rows.start].nbytes
            ):
                self.most_bytes, free = 0, None  # the disk has no room
            slices.append(rows)
            if rows.start >= done:
                yield rows
        if free is not None:
            self._blocks[block] = free, slices

    def _taken_for(self, n_bytes: int) -> int | None:
        """Return where in the file so many bytes go, None where they have no room."""
        with self._lock, suppress(OSError):
            if self._taken + n_bytes > self.most_bytes:
                return None
            if self._file is None:
                folder = getattr(current_worker(), "local_directory", None)
                self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  it lives as this
                finalize(self, self._file.close).atexit = False
            disk = os.fstatvfs(self._file.fileno())
            # As much is left to others, on the disk and, where files are there, in memory.
            free = min(disk.f_bavail * disk.f_frsize, available_bytes())
            if self._taken + n_bytes <= free:
                self._taken += n_bytes
                return self._taken - n_bytes
        return None

    def _moves(self, call: Any, features: Array, place: int) -> bool:
        """Read or write features at a place of the file; say whether all of them were."""
        with timed("features"), suppress(OSError):
            return bool(call(self._file.fileno(), [features], place) == features.nbytes)
        return False


def store_here(name: str, most_bytes: int) -> FeatureStore:
    """Return the store of a name in this process, a new one if there is none."""
    with _lock:
        return _stores.setdefault(name, FeatureStore(name, most_bytes))


def found_store(name: str) -> FeatureStore | None:
    """Return the store of a name in this process, None where nobody holds one."""
    store = _stores.get(name)
    # Of a process that was forked, the file is its parent's.
    return store if store is not None and store.process == os.getpid() else None


class FeatureStores:
    """Stores on all workers, each of which has the same shards in every pass while it is there.

    A context: at its end nothing holds them.  Tasks find the store of their process by its name, so
    that Dask does not copy it.
    """

    def __init__(self, most_bytes: int) -> None:
        wanted = dask.config.get("streamkern.feature-store", True)
        self.name, self.most_bytes = f"features-{uuid.uuid4().hex}", most_bytes if wanted else 0
        self._held: dict[str, Any] = {}  # by the worker's address, "" for this process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._held.clear()

    @property
    def here(self) -> partial[FeatureStore | None]:
        """What finds the store of the process that calls it."""
        return partial(found_store, self.name)

    def places(self, shards: Sequence[Shard]) -> dict[int, dict[str, Any]]:
        """Return the annotations of every shard's task, with stores on all workers of now."""
        client = current_client()
        if not self.most_bytes or _OF_CALLERS & dask.get_annotations().keys():
            return {}
        if client is None:
            self._held = {"": store_here(self.name, self.most_bytes)}
            return {}
        with reaching(client):
            if not self._held:  # the scheduler has it from the first pass on
                client.register_plugin(_loosening())
            workers = client.scheduler_info(n_workers=-1).get("workers", {})
        threads = {address: worker["nthreads"] for address, worker in workers.items()}
        new = iter(sorted(threads.keys() - self._held.keys()))
        # Who comes takes the place of one that is gone, so that the others keep their shards.
        order = [each if each in threads else next(new, "") for each in self._held]
        order = [each for each in (*order, *new) if each]
        with submitting(client):
            self._held = {each: self._held.get(each) or self._sent(client, each) for each in order}
        slots = [each for each in order for _ in range(threads[each])]
        return {
            shard.index: {"workers": [slots[i * len(slots) // len(shards)]], **_OR_ANY}
            for i, shard in enumerate(shards if slots else ())
        }

    def _sent(self, client: Any, address: str) -> Any:
        given, key = (self.name, self.most_bytes), f"{self.name}-{address}"
        return client.submit(store_here, *given, key=key, workers=[address], **_OR_ANY)


def _loosening() -> Any:
    """Return a plugin of a scheduler that lets tasks which found no worker at all go to any later.

    Dask has them wait for the one that they prefer.
    """
    from distributed import SchedulerPlugin

    class Loosening(SchedulerPlugin):  # type: ignore[misc]
        name, idempotent = "streamkern-any-worker", True

        async def start(self, scheduler: Any) -> None:
            self.tasks = scheduler.tasks

        def transition(self, key: str, start: str, finish: str, *_: Any, **__: Any) -> None:  # noqa: ARG002
            if finish == "no-worker" and self.tasks[key].loose_restrictions:
                self.tasks[key].worker_restrictions = set()

    return Loosening()
