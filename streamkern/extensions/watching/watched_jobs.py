"""Jobs as a scheduler knows them: the memory of workers, and who is gone, come beside events."""

from collections.abc import Callable, Mapping
from itertools import chain
from time import monotonic

from streamkern.monitor.jobs import Job, Jobs
from streamkern.monitor.passes import Pass, is_due

# Samples that a rate is taken over.
_SMOOTH = 4


class WatchedJobs(Jobs):
    """All jobs that a scheduler heard of, with `memory`: what workers take now, by address."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(clock)
        self.memory: dict[str, float] = {}

    def hear_memory(self, taken: Mapping[str, float]) -> None:
        with self.lock:
            now, most, self.memory = self.clock(), int(max(taken.values(), default=0)), dict(taken)
            for job in (job for job in self.jobs.values() if job.ended is None):
                reading = job.current
                workers = reading.workers if reading and reading.ended is None else {}
                for address in workers.keys() & taken.keys():
                    peak = max(workers[address].peak_bytes, int(taken[address]))
                    workers[address].peak_bytes = peak
                if most and is_due(job.memory, job.elapsed(now)):
                    job.memory.append((job.elapsed(now), most))

    def passes_under_way(self) -> list[str]:
        """Return the numbers of the passes that have not ended."""
        with self.lock:
            every = (each for job in self for each in job.passes.items())
            return [number for number, reading in every if reading.ended is None]

    def client_lost(self, client: str) -> None:
        with self.lock:
            for job in (job for job in self.jobs.values() if job.client == client):
                parts: list[Job | Pass] = [job, *job.passes.values()]
                for each in parts:
                    if each.ended is None:
                        each.ended, each.error = self.clock(), "its client is gone"


def rates_of(reading: Pass) -> list[tuple[float, float]]:
    """Return pairs of seconds since a pass began and rows a second then, over some samples."""
    past = chain([reading.history[0]] * (_SMOOTH - 1), reading.history)
    return [
        (after, max(rows - before_rows, 0) / (after - before))
        for (before, before_rows), (after, rows) in zip(past, reading.history[1:], strict=False)
    ]
