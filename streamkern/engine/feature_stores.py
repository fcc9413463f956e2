"""A store of features in every process of the current scheduler, for passes over the same rows."""

import uuid
from collections.abc import Sequence
from typing import Any, Self

import dask

from streamkern.engine.futures import submitting
from streamkern.runtime.feature_store import STORE, store_here
from streamkern.runtime.resources import current_client, reaching
from streamkern.sources import Shard

# Annotations of a caller that say themselves where tasks may run.
_OF_CALLERS = {"workers", "resources"}
_OR_ANY = {"allow_other_workers": True}


class FeatureStores:
    """Stores on all workers, each of which has the same shards in every pass while it is there.

    A context: at its end nothing holds them.  Tasks find the store of their process by its name, so
    that Dask does not copy it.
    """

    def __init__(self, most_bytes: int) -> None:
        wanted = dask.config.get("streamkern.feature-store", True)
        self.name, self.most_bytes = f"{STORE}{uuid.uuid4().hex}", most_bytes if wanted else 0
        self._held: dict[str, Any] = {}  # by the worker's address, "" for this process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._held.clear()

    def places(self, shards: Sequence[Shard]) -> dict[int, dict[str, Any]]:
        """Return the annotations of every shard's task, with stores on all workers of now."""
        client = current_client()
        if not self.most_bytes or _OF_CALLERS & dask.get_annotations().keys():
            return {}
        if client is None:
            self._held = {"": store_here(self.name, self.most_bytes)}
            return {}
        with reaching(client):
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
