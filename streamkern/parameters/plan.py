"""What a job will take, known before the first read: memory, work, and how it is cut up."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from streamkern.errors import DataError, InsufficientMemoryError
from streamkern.features import LEVELS
from streamkern.monitor.job_text import duration
from streamkern.parameters.cost_estimate import cluster_time, rough_flops_per_second
from streamkern.runtime.events import tell_of_job
from streamkern.runtime.memory import available_bytes, in_words
from streamkern.runtime.threads import blas_threads
from streamkern.statistics.work import INTEGER, Work


@dataclass(frozen=True)
class Plan:
    """A job, cut up and measured."""

    n_rows: int
    n_features: int
    n_targets: int
    n_components: int
    precision: str
    shard_rows: int
    n_shards: int
    block_rows: int
    column_block_rows: int
    graph_tasks: int  # of the main pass
    flops: float  # multiply-adds of projections, rank-k updates and solve
    n_workers: int  # processes; 0 for threads of this process
    n_threads: int  # tasks that one process runs at a time
    blas_threads: int  # of a task
    fold_by: str  # 'shards', 'rows' or 'blocks': what would be left out together
    worker_bytes: int  # projected peak of a process that accumulates and solves
    client_bytes: int  # projected peak of the process that plans, and receives the model
    allowed_bytes: int  # that a process that accumulates may use
    index_bytes: int = 0  # of these, what it takes to know every row again
    carried_bytes: int = 0  # of a worker, for rows that come to it with tasks
    n_strips: int = 1  # readings of the rows, each for a strip of the triangle of products
    solves_by_passes: bool = False  # by conjugate gradients, without a D x D system
    sums_waves: bool = False  # and of sums of waves, in the place of passes
    checkpoint_bytes: int = 0  # on the disk, if there is to be a checkpoint

    row_bytes: int = 0  # of inputs as they are read
    sum_bytes: int = 0  # of a shard
    n_folds: int = 1  # 1 for no cross-validation

    stored_bytes: ClassVar[int] = 0  # of features that a process keeps in a file

    @property
    def fewest_rows(self) -> int:
        """Rows of the last shards, which are smaller than others."""
        return self.block_rows

    @property
    def n_slots(self) -> int:
        """Tasks that all processes run at a time."""
        return max(self.n_workers, 1) * self.n_threads

    @property
    def seconds(self) -> float:
        """A rough time for the main pass."""
        return self._seconds_at(rough_flops_per_second(self.precision))

    @property
    def _pass_flops(self) -> float:
        return self.flops

    def solving_flops(self, n_cubes: int) -> float:
        """Return the multiply-adds of a solution that takes so many D^3."""
        return n_cubes * float(self.n_components) ** 3

    def _seconds_at(self, rate: float) -> float:
        """Return the time for the main pass, of cores that do so many multiply-adds a second."""
        return self._pass_flops / (rate * self.n_slots * self.blas_threads)

    def _times(self) -> list[tuple[str, str]]:
        """Say how long the main pass takes, by products that are measured here in 0.1 s."""
        dtype = INTEGER if self.precision in LEVELS else self.precision
        with blas_threads(1):
            rate = Work(0.0, self.n_components, dtype).attainable(1)
        rate /= 2 if self.precision == "int16" else 1
        whole = (
            f"about {duration(self._seconds_at(rate))}, if each core does "
            f"{rate / 1e9:,.3g} thousand million multiply-adds a second as one did here"
        )
        rows = [("time of the pass", whole)]
        if self.n_workers > 1 and not self.solves_by_passes:
            parts = cluster_time(self, rate)
            told = {name: duration(seconds) for name, seconds in parts._asdict().items()}
            beside = ", ".join(f"{name} {told.pop(name)}" for name in parts._fields[:4])
            after = ", ".join(f"{name} {each}" for name, each in told.items())
            rows += [
                ("on so many workers", f"{duration(parts.total)}, if links carry 1.25 GB a second"),
                ("at the same time", beside),
                ("after that", after),
            ]
        return rows

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"seconds": self.seconds}

    @property
    def fits(self) -> bool:
        """Whether the job has room, in its workers and in this process."""
        try:
            self.check()
        except InsufficientMemoryError:
            return False
        return True

    def check(self) -> None:
        """Raise InsufficientMemoryError unless the job fits."""
        what, fewer = f"{self.n_components:,} components", "components"
        if self.index_bytes:
            what, fewer = f"{what} and an index of {self.n_rows:,} rows", f"{fewer} or rows"
        if self.worker_bytes > self.allowed_bytes:
            if 2 * self.carried_bytes > self.worker_bytes:
                what = f"rows in memory need {in_words(self.carried_bytes)} of"
                raise InsufficientMemoryError(
                    f"{self.n_rows:,} {what} {in_words(self.worker_bytes)} in a worker, but "
                    f"{in_words(self.allowed_bytes)} may be used; write the rows to a file, or "
                    f"take more workers."
                )
            raise InsufficientMemoryError(
                f"{what} need {in_words(self.worker_bytes)} in a worker, but "
                f"{in_words(self.allowed_bytes)} may be used; take fewer {fewer}, or workers with "
                f"more memory."
            )
        free = available_bytes()
        if self.client_bytes > free:
            raise InsufficientMemoryError(
                f"receiving {what} needs {in_words(self.client_bytes)} in this process, but "
                f"{in_words(free)} is free; take fewer {fewer}."
            )

    def accepted(self, *, needs_targets: bool = True) -> Self:
        """Return the plan and tell it, or raise an error if the job does not fit."""
        if needs_targets and not self.n_targets:
            raise DataError("a fit needs targets, but the source has none; name a dataset with y.")
        self.check()
        facts = {"allowed_bytes": self.allowed_bytes, "seconds": self.seconds}
        tell_of_job("planned", worker_bytes=self.worker_bytes, readings=self.n_strips, **facts)
        return self

    def rows(self) -> list[tuple[str, str]]:
        most = "at most" if self.n_shards * self.shard_rows >= self.n_rows else "about"
        where = f"this process, {self.n_threads} threads"
        if self.n_workers:
            where = f"{self.n_workers} worker processes"
        return [
            ("rows x inputs", f"{self.n_rows:,} x {self.n_features:,}"),
            ("components", f"{self.n_components:,} ({self.precision} precision)"),
            ("shards", f"{self.n_shards:,} of {most} {self.shard_rows:,} rows"),
            ("blocks", f"{self.block_rows:,} rows"),
            ("tasks in the graph", f"{self.graph_tasks:,}"),
            *([("solver", "conjugate gradients")] * self.solves_by_passes),
            *self._times(),
            *([("readings", f"{self.n_strips}, for parts of the products")] * (self.n_strips > 1)),
            ("runs in", where),
            ("BLAS threads a task", str(self.blas_threads)),
            ("memory of a worker", f"{in_words(self.worker_bytes)} projected"),
            ("memory allowed", in_words(self.allowed_bytes)),
            ("memory of this process", f"{in_words(self.client_bytes)} projected"),
            *(
                [("kept features", f"{in_words(self.stored_bytes)} a worker at most, on disk")]
                * (self.stored_bytes > 0)
            ),
            ("disk for a checkpoint", f"{in_words(self.checkpoint_bytes)} at most"),
        ]
