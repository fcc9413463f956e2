"""What a job will take, known before the first read: memory, work, and how it is cut up.

Shards and blocks follow from the data and the options alone, so that results do not depend on who
computes them.  Workers and threads follow from the machine.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from streamkern.errors import InsufficientMemoryError
from streamkern.memory import available_bytes, in_words, usable_cores
from streamkern.statistics import Triangle

if TYPE_CHECKING:
    from streamkern.sources import Source

# A block of features should be tall enough for the product and small beside the Gram matrix.
_BLOCK_BYTES = 128 << 20
_BLOCK_ROWS = (1024, 8192)
# A shard is what a lost worker costs; many shards cost merges.
_SHARDS = 128
_SHARD_ROWS = (16384, 1 << 20)
# Totals, and partials of finished shards that wait in a process to be merged into them.
_WAITING = 4
# Folds of fewer shards than this are too uneven to choose by; rows are dealt then.
_SHARDS_A_FOLD = 4
# Square matrices that are held while a fold is scored.
_SQUARES_A_FOLD = 6
# Interpreter, libraries and Dask's own needs in one process, as measured with some room.
_PROCESS_BYTES = 256 << 20
# A hash and a place of every row, where rows are to be known again.
_INDEX_BYTES = 16
# Copies of the index: in a process that merges it, and where it is put in order.
_INDEX_MERGED, _INDEX_ORDERED = 3, 5
# Rows of the spread sample travel with the first pass.
SAMPLE_ROWS = 2048
# Below this much work in seconds, starting worker processes costs more than it saves.
_IN_PROCESS_SECONDS = 20.0
# A careful guess of one core's speed, for choosing only.
_FLOPS_PER_SECOND = {"single": 60e9, "double": 30e9}


@dataclass(frozen=True)
class Plan:
    """A job, cut up and measured.

    Parameters
    ----------
    n_rows, n_features, n_targets, n_components : int
    precision : str
    shard_rows, n_shards, block_rows, column_block_rows : int
    graph_tasks : int
        Tasks of the Dask graph of the main pass.
    flops : float
        Multiply-adds of projections, rank-k updates and solve.
    n_workers : int
        Worker processes; 0 for threads of this process.
    n_threads : int
        Tasks that one process runs at a time.
    blas_threads : int
        BLAS threads of a task.
    fold_by : {'shards', 'rows', 'blocks'}
        What would be left out together.
    worker_bytes : int
        Projected peak of a process that accumulates and solves.
    client_bytes : int
        Projected peak of the process that plans, and receives the model.
    allowed_bytes : int
        What a process that accumulates may use.
    index_bytes : int
        Of these, what it takes to know every row again.
    """

    n_rows: int
    n_features: int
    n_targets: int
    n_components: int
    precision: str
    shard_rows: int
    n_shards: int
    block_rows: int
    column_block_rows: int
    graph_tasks: int
    flops: float
    n_workers: int
    n_threads: int
    blas_threads: int
    fold_by: str
    worker_bytes: int
    client_bytes: int
    allowed_bytes: int
    index_bytes: int = 0

    @property
    def seconds(self) -> float:
        """A rough time for the main pass."""
        cores = max(self.n_workers, 1) * self.n_threads * self.blas_threads
        return self.flops / (_FLOPS_PER_SECOND[self.precision] * cores)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self) | {"seconds": self.seconds}

    def check(self) -> None:
        """Raise InsufficientMemoryError unless the job fits."""
        what, fewer = f"{self.n_components:,} components", "components"
        if self.index_bytes:
            what, fewer = f"{what} and an index of {self.n_rows:,} rows", f"{fewer} or rows"
        if self.worker_bytes > self.allowed_bytes:
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

    def rows(self) -> list[tuple[str, str]]:
        """Return what a person wants to know, as pairs of a name and a value."""
        where = (
            f"{self.n_workers} worker processes"
            if self.n_workers
            else f"this process, {self.n_threads} threads"
        )
        return [
            ("rows x inputs", f"{self.n_rows:,} x {self.n_features:,}"),
            ("components", f"{self.n_components:,} ({self.precision} precision)"),
            ("shards", f"{self.n_shards:,} of {self.shard_rows:,} rows"),
            ("blocks", f"{self.block_rows:,} rows"),
            ("tasks in the graph", f"{self.graph_tasks:,}"),
            ("multiply-adds", f"{self.flops:.3g}"),
            ("runs in", where),
            ("BLAS threads a task", str(self.blas_threads)),
            ("memory of a worker", f"{in_words(self.worker_bytes)} projected"),
            ("memory allowed", in_words(self.allowed_bytes)),
            ("memory of this process", f"{in_words(self.client_bytes)} projected"),
        ]


def plan_fit(
    source: Source,
    n_components: int,
    *,
    precision: str = "single",
    n_folds: int = 1,
    fold_by: str = "auto",
    n_sample: int = SAMPLE_ROWS,
    indexed: bool = False,
    n_workers: int | None = None,
    n_threads: int | None = None,
    allowed_bytes: int | None = None,
) -> Plan:
    """Plan a fit.

    Parameters
    ----------
    source : Source
    n_components : int
        D.
    precision : {'single', 'double'}
    n_folds : int
        K, 1 for no cross-validation.
    fold_by : {'auto', 'shards', 'rows', 'blocks'}
    n_sample : int
        Rows of the spread sample.
    indexed : bool
        Moments that go to a file and know their rows, which takes memory for every row.
    n_workers : int, optional
        Worker processes there are, or 0 for this process; chosen where it is not given.
    n_threads : int, optional
        Tasks that one of them runs at a time.
    allowed_bytes : int, optional
        What one of them may use; by default a share of the memory that is free.

    Returns
    -------
    Plan
    """
    n, p, q, D = source.n_samples, source.n_features, source.n_targets, n_components
    itemsize = 4 if precision == "single" else 8
    shard_rows, block_rows = cut(source, itemsize * D)
    shards = source.shards(shard_rows)
    block_rows = min(block_rows, max(shard.n_rows for shard in shards))
    if fold_by == "auto":
        fold_by = "shards" if len(shards) >= _SHARDS_A_FOLD * n_folds else "rows"
    accumulator = 8 * Triangle.size(D) + 16 * D * (q + 1)
    # Rows that are dealt one by one reach every fold.
    at_once = {"shards": 1, "blocks": min(2, n_folds), "rows": n_folds}[fold_by]
    task = (
        at_once * accumulator
        + itemsize * (Triangle.product_size(D) + 2 * D * (q + 1))  # the products of a block
        # Two blocks of rows, one in use and one being read, and the features of one.
        + block_rows * (2 * (source.row_bytes + 8 * q) + itemsize * (D + p) + 24 * (q + 1))
        + (shard_rows * source.row_bytes if source.loads_whole_shards else source.chunk_bytes)
        + (16 << 20)  # rows in cache, and chunks in the reader
    )
    sample = 4 * n_sample * (8 * p + 8 * q + 16)
    waiting = (n_folds + (_WAITING - 1) * at_once) * accumulator
    index = _INDEX_BYTES * n if indexed else 0
    received = (n_folds + 1 if indexed else 1) * accumulator
    square = 8 * D * D
    drawn = 8 * D * p  # the frequencies of the map, at most
    solve = (n_folds + 1) * accumulator + 3 * square + (16 << 20)
    # A fold: its own matrix, the one without it, and a decomposition of that.
    solve_fold = accumulator + _SQUARES_A_FOLD * square if n_folds > 1 else 0

    def process_bytes(threads: int) -> int:
        accumulating = threads * task + waiting + sample + _INDEX_MERGED * index
        return _PROCESS_BYTES + 2 * drawn + max(accumulating, solve + threads * solve_fold)

    def threads_that_fit(most: int, room: int) -> int:
        return next((t for t in range(most, 1, -1) if process_bytes(t) <= room), 1)

    solving = D**3 / 3 if n_folds == 1 else (1 + n_folds) * 5.0 * D**3
    flops = float(n) * D * (p + D) + solving
    cores = usable_cores()
    blas = 1
    if n_workers is None:
        seconds = flops / (_FLOPS_PER_SECOND[precision] * cores)
        free = available_bytes() if allowed_bytes is None else allowed_bytes
        n_workers = 0
        n_threads = threads_that_fit(cores, free)
        if seconds > _IN_PROCESS_SECONDS:
            n_threads = 1
            n_workers = _most_that_fit(cores, free, process_bytes(1))
        blas = max(cores // (max(n_workers, 1) * n_threads), 1)
        allowed_bytes = free // max(n_workers, 1)
    if allowed_bytes is None:
        allowed_bytes = available_bytes() // max(n_workers, 1)
    n_threads = n_threads or 1
    if n_workers == 0:
        n_threads = threads_that_fit(n_threads, allowed_bytes)
    return Plan(
        n_rows=n,
        n_features=p,
        n_targets=q,
        n_components=D,
        precision=precision,
        shard_rows=shard_rows,
        n_shards=len(shards),
        block_rows=block_rows,
        column_block_rows=max(min(block_rows, (8 << 20) // max(source.row_bytes, 1)), 1),
        graph_tasks=2 * len(shards),
        flops=flops,
        n_workers=n_workers,
        n_threads=n_threads,
        blas_threads=blas,
        fold_by=fold_by,
        worker_bytes=process_bytes(n_threads),
        client_bytes=_PROCESS_BYTES + 2 * drawn + received + sample + _INDEX_ORDERED * index,
        allowed_bytes=allowed_bytes,
        index_bytes=index,
    )


def solve_bytes(n_components: int, n_folds: int, n_threads: int) -> int:
    """Return what solving takes in a process that holds the moments already.

    Parameters
    ----------
    n_components : int
        D.
    n_folds : int
        K, 1 for no cross-validation.
    n_threads : int
        Folds that are scored at a time.
    """
    D = n_components
    a_fold = 8 * Triangle.size(D) + 8 * _SQUARES_A_FOLD * D**2 if n_folds > 1 else 0
    return 24 * D**2 + min(n_folds, n_threads) * a_fold


def cut(source: Source, feature_bytes: int) -> tuple[int, int]:
    """Return the rows of a shard and of a block, given the bytes of one row of features."""
    fewest, most = _BLOCK_ROWS
    block_rows = min(max(_BLOCK_BYTES // feature_bytes, fewest), most)
    chunk_rows = max(segment.chunk_rows for segment in source.segments())
    if 1 < chunk_rows <= block_rows:
        block_rows -= block_rows % chunk_rows
    fewest, most = _SHARD_ROWS
    shard_rows = min(max(-(-source.n_samples // _SHARDS), fewest), most)
    shard_rows = -(-shard_rows // block_rows) * block_rows
    if source.loads_whole_shards:
        shard_rows = min(shard_rows, max(_BLOCK_BYTES // source.row_bytes, chunk_rows))
    return shard_rows, block_rows


def _most_that_fit(most: int, room: int, each: int) -> int:
    return max(min(most, room // each), 1)
