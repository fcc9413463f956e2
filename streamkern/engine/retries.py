"""Retries of shards: how often each was begun, and when that is too often."""

from collections import Counter
from operator import itemgetter

import dask

from streamkern.errors import ClusterError
from streamkern.runtime.events import Event

_ATTEMPTS = "streamkern.shard-attempts"


class Attempts:
    """How often the shards of a pass were begun."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    @property
    def n_retried(self) -> int:
        return sum(count > 1 for count in self._counts.values())

    def heard(self, event: Event) -> None:
        if event["kind"] == "shard begun":
            self._counts[event["shard"]] += 1

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
