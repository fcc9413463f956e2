"""How the rows of a fit are dealt to folds: by place, by region of their inputs, by a column."""

from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import compute_all, delayed
from streamkern.errors import DataError, ParameterError
from streamkern.parameters.fit_options import FitOptions, span
from streamkern.parameters.plan import Plan
from streamkern.passes.checkpoint_job import hash_of_rows
from streamkern.passes.column_summary import ColumnSummary
from streamkern.sources import Source
from streamkern.statistics import Folds, ListedFolds, RowFolds, block_folds, shard_folds
from streamkern.statistics.folds import PlacedFolds, RegionFolds, TurnedFolds, Window, WindowFolds

# Rows, or shards, for every fold: fewer are dealt unevenly.
_FEW = 10
# Regions of a fold: of many small ones each would be near rows of others.
_REGIONS = 2
# Rows whose values of a column are read in one task.
_VALUES_AT_ONCE = 1 << 20


def placed_folds(
    source: Source,
    plan: Plan,
    options: FitOptions,
    *,
    empty_folds: bool = False,
    turned: bool = False,
) -> PlacedFolds:
    """Return the rule of folds by place, of rows that the plan has seen to be enough.

    If `turned`, and rows or shards are few, which fold is the first follows from what they hold:
    more such rows may come again and again, and would all go to the same folds.
    """
    K, by, n_units = options.n_folds, plan.fold_by, source.n_samples
    folds: PlacedFolds = RowFolds(K, options.random_state)
    if K == 1:
        return block_folds(source.n_samples, 1)
    if by == "shards":
        shards = source.shards(plan.shard_rows, plan.fewest_rows)
        if len(shards) < K and not empty_folds:
            raise ParameterError(
                f"{K} folds need as many shards, but there are {len(shards):,}; take fewer folds, "
                f"or deal rows with fold_by 'rows' (--fold-by rows)."
            )
        folds, n_units = shard_folds(shards, K, options.random_state), plan.n_shards
    elif by == "blocks":
        folds = block_folds(source.n_samples, K)
    if not turned or n_units >= _FEW * K:
        return folds
    known = source.skip_invalid() if options.on_bad_rows == "skip" else source
    return TurnedFolds(K, folds, int(hash_of_rows(known), 16) % K)


def region_folds(summary: ColumnSummary, n_folds: int, random_state: int) -> Folds:
    """Return folds of regions: cells of k-means on the sample, two a fold, in standardised inputs.

    Roberts et al. (2017), "Cross-validation strategies for data with temporal, spatial,
    hierarchical, or phylogenetic structure".
    """
    from scipy.cluster.vq import kmeans2  # noqa: PLC0415  slow, and for regions alone

    z = summary.standardizer(summary.sample.X)
    different = len(np.unique(z, axis=0))
    if different < n_folds:
        raise DataError(
            f"{n_folds} regions need as many different rows, but the sample has {different}; take "
            f"fewer folds, or deal rows with fold_by 'rows' (--fold-by rows)."
        )
    n_cells = min(_REGIONS * n_folds, different)
    centres, cells = kmeans2(z, n_cells, minit="++", seed=random_state)
    weights = np.bincount(cells, summary.sample.weights, minlength=n_cells)
    folds, dealt = np.zeros(n_cells, dtype=np.int64), np.zeros(n_folds)
    for cell in np.argsort(-weights, kind="stable"):  # the largest first, each to the emptiest
        folds[cell] = dealt.argmin()
        dealt[folds[cell]] += weights[cell]
    return RegionFolds(n_folds, summary.standardizer, centres, folds)


def column_folds(source: Source, options: FitOptions) -> ListedFolds:
    """Return folds by a column of the rows, which is read here: a byte a row.

    Rows of one value go together, the most frequent first, each value to the fold with the fewest
    rows, as in `sklearn.model_selection.GroupKFold`; or folds are windows of time.
    """
    values, codes = _values_of(source, str(options.fold_column))
    counts, K = np.bincount(codes, minlength=len(values)), options.n_folds
    if options.is_in_time:
        return _windows(values, codes, counts, options)
    if len(values) < K:
        raise ParameterError(
            f"{K} folds need as many different values, but {options.fold_by} has {len(values)}; "
            f"take fewer folds (--folds), or another column (--fold-by)."
        )
    folds, dealt = np.empty(len(values), np.min_scalar_type(K)), np.zeros(K, dtype=np.int64)
    for value in np.argsort(counts, kind="stable")[::-1]:
        folds[value] = dealt.argmin()
        dealt[folds[value]] += counts[value]
    return ListedFolds(K, folds[codes])


def _values_of(source: Source, name: str) -> tuple[Array, Array]:
    """Return the different values of a column, ascending, and the number of each row's, (n,)."""
    column = source.column(name)
    readers = (column.reader(shard) for shard in source.shards(_VALUES_AT_ONCE))
    found = compute_all(
        [delayed(_distinct, each, name=f"values-{i}") for i, each in enumerate(readers)]
    )
    values = np.unique(np.concatenate([some for some, _ in found]))
    small = np.min_scalar_type(len(values))
    codes = [np.searchsorted(values, some).astype(small)[each] for some, each in found]
    missing = values == "" if values.dtype.kind in "US" else values != values  # noqa: PLR0124  NaN
    if missing.any():
        row = int(np.isin(np.concatenate(codes), np.flatnonzero(missing)).argmax())
        raise DataError(
            f"{source.locate(row)} has no value of {name!r}, which folds go by; give every row one."
        )
    return values, np.concatenate(codes)


def _distinct(parts: Iterable[Array]) -> tuple[Array, Array]:
    values = np.concatenate([np.asarray(part) for part in parts])
    if values.dtype.kind in "OT":  # texts of variable length, None where there is none
        values = np.array(["" if each is None else str(each) for each in values.tolist()])
    different, codes = np.unique(values, return_inverse=True)
    return different, codes.astype(np.min_scalar_type(len(different)))


def _windows(values: Array, codes: Array, counts: Array, options: FitOptions) -> WindowFolds:
    """Return windows as of `sklearn.model_selection.TimeSeriesSplit`; equal times stay together.

    Rows in order of time are cut into K + 1 equal parts, and the last K are predicted, each from
    all rows that are more than the gap before it.
    """
    times = _as_times(values, options)
    order, K = np.argsort(times, kind="stable"), options.n_folds
    ordered, ends = times[order], np.cumsum(counts[order])
    size = len(codes) // (K + 1)
    firsts = np.minimum(len(codes) - size * np.arange(K, 0, -1), len(codes) - 1)
    starts = np.searchsorted(ends, firsts, side="right")
    trained = np.searchsorted(ordered, ordered[starts] - span(options.gap))
    if size == 0 or trained[0] == 0 or len(np.unique(starts)) < K:
        raise ParameterError(
            f"{K} windows need as many times, and rows more than the gap of {options.gap} before "
            f"the first, but {options.fold_by} has {len(values):,} times and a {K + 1}th of the "
            f"rows is before {values[order][starts[0]]}; take fewer folds (--folds), or a smaller "
            f"gap (--gap)."
        )
    cuts = np.unique([0, *starts, *trained])
    rank = np.argsort(order)
    parts = (np.searchsorted(cuts, rank, side="right") - 1).astype(np.min_scalar_type(len(cuts)))
    first = [*np.searchsorted(cuts, starts).tolist(), len(cuts)]
    until = np.searchsorted(cuts, trained).tolist()
    windows = tuple(map(Window, until, first[:-1], first[1:]))
    return WindowFolds(len(cuts), parts[codes], windows)


def _as_times(values: Array, options: FitOptions) -> Floats:
    """Return values as numbers: dates in seconds."""
    if values.dtype.kind != "M":
        with suppress(ValueError):
            return values.astype(float)
    try:
        dates = values.astype("datetime64[us]")
    except ValueError as error:
        raise DataError(
            f"{options.fold_by} must hold numbers or dates such as 2024-05-31, but holds "
            f"{str(values[0])!r}; take 'column:NAME' for groups (--fold-by column:NAME)."
        ) from error
    return dates.astype(np.int64) / 1e6
