"""The first pass of a fit, a light one: what the columns hold, and a sample of the rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.engine.reduction import accumulate
from streamkern.errors import DataError, StreamkernWarning
from streamkern.errors.formatting import listed
from streamkern.features import Standardizer
from streamkern.kernels import Linear, ShiftInvariantKernel
from streamkern.parameters.fit_options import SAMPLE_ROWS
from streamkern.sources.preprocessing.column_names import input_names
from streamkern.statistics import ColumnStatistics, RowIndex, RowSample, Together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array, Floats
    from streamkern.engine.reduction import PassResult
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.parameters.job_plan import Plan
    from streamkern.parameters.template import Template
    from streamkern.sources import Source
    from streamkern.storage import Checkpoint

# A standard deviation so many times as wide as half of the rows is that of a few values.
_WIDE = 25.0
# Columns that are named.
_NAMED = 3
# Deviations from zero at which single precision was off by a tenth of those of the targets.
_FAR_FROM_ZERO = 5.0
# Deviations are those of columns where at least this share of rows departs from the usual value.
_DEPARTING = 0.1


@dataclass(frozen=True)
class ColumnPass:
    """What the first pass over the rows says of them."""

    columns: ColumnStatistics  # of X and then y
    sample: RowSample  # spread over the whole source
    standardizer: Standardizer
    dropped: list[int]  # constant columns
    passed: PassResult[Any]
    index: RowIndex | None = None  # of all rows, in order
    nearly_constant: Sequence[int] = ()  # columns whose deviation was enlarged

    @property
    def weights(self) -> Floats | None:
        """Those of the sample (m,), None where all its rows count once."""
        return self.sample.counts

    @property
    def targets(self) -> Floats:
        """Those of the sample (m, q), of mean 0 and deviation 1 over all rows."""
        p = self.standardizer.n_features
        mean, variance = self.columns.mean[p:], self.columns.variance[p:]
        targets: Floats = (self.sample.y - mean) / np.sqrt(np.where(variance > 0, variance, 1.0))
        return targets


def run_column_pass(
    source: Source,
    options: FitOptions,
    plan: Plan,
    n_sample: int = SAMPLE_ROWS,
    *,
    index: RowIndex | None = None,
    like: Template | None = None,
    more_to_come: bool = False,
    checkpoint: Checkpoint | None = None,
) -> ColumnPass:
    passed = accumulate(
        source,
        Together(
            ColumnStatistics(source.n_features + source.n_targets),
            RowSample(n_sample, options.random_state),
            *([] if index is None else [index]),
        ),
        shard_rows=plan.shard_rows,
        block_rows=plan.column_block_rows,
        skip_bad_rows=options.on_bad_rows == "skip",
        label="columns",
        n_threads=plan.n_threads,
        checkpoint=checkpoint,
    )
    columns, sample, *indices = passed.statistic.parts
    assert isinstance(columns, ColumnStatistics)  # noqa: S101  for the type checker
    assert isinstance(sample, RowSample)  # noqa: S101
    check_rows(source, columns, passed)
    nearly_constant: list[int] = []
    if like is None:
        _check_columns(source, columns, may_be_equal=more_to_come)
        quartiles = _quartiles(sample)
        _warn_of_outliers(source, columns, quartiles)
        standardizer, dropped = _standardizer(source, columns, options, may_vary=more_to_come)
        if options.standardize and not options.is_identity:
            factors = _enlargements(sample, quartiles)
            factors[_constant(source, columns)[: len(factors)]] = 1.0
            deviation = standardizer.deviation * factors[standardizer.columns]
            standardizer = replace(standardizer, deviation=deviation)
            nearly_constant = np.flatnonzero(factors > 1.0).tolist()
    else:
        standardizer = like.feature_map.standardizer
        dropped = _left_out(source, columns, standardizer)
    index = next((found.in_order() for found in indices if isinstance(found, RowIndex)), None)
    return ColumnPass(columns, sample, standardizer, dropped, passed, index, nearly_constant)


def _warn(sentence: str, level: int) -> None:
    warnings.warn(sentence, StreamkernWarning, stacklevel=level)


def _left_out(source: Source, columns: ColumnStatistics, standardizer: Standardizer) -> list[int]:
    """Return the columns that a template leaves out, with a warning where they vary here."""
    left_out = sorted(set(range(source.n_features)) - set(standardizer.columns.tolist()))
    constant = _constant(source, columns)
    varying = [j for j in left_out if not constant[j]]
    if varying:
        _warn(
            f"columns of X left out that are constant in the rows that these are to be like, but "
            f"not here: {listed(varying)}.",
            5,
        )
    return left_out


def check_rows(source: Source, columns: ColumnStatistics, passed: PassResult[Any]) -> None:
    """Raise DataError if rows are not finite and were not skipped, or if none is left."""
    if columns.n_bad_rows:
        raise source.bad_rows_error(
            columns.n_bad_rows, columns.first_bad_row or 0, columns.n_nonfinite
        )
    if not passed.n_rows:
        raise source.none_left_error(passed.n_skipped, passed.n_weightless)


def _check_columns(source: Source, columns: ColumnStatistics, *, may_be_equal: bool) -> None:
    p = source.n_features
    if source.n_targets and not may_be_equal and columns.constant(0.0)[p:].all():
        raise source.constant_targets_error(columns.mean[p:])
    # Below the smallest normal number, digits are lost one by one.
    smallest, largest = np.finfo(float).tiny, np.finfo(float).max
    held = (columns.variance >= smallest) & (columns.variance <= largest)
    wild = np.flatnonzero(~_constant(source, columns) & ~held)
    if len(wild):
        j = int(wild[0])
        name = _name(source, j)
        how = "underflows" if columns.variance[j] < smallest else "overflows"
        raise DataError(
            f"{name} has values from {columns.minimum[j]:.3g} to {columns.maximum[j]:.3g}, whose "
            f"variance {how}; rescale it."
        )


def _name(source: Source, j: int) -> str:
    p, names = source.n_features, input_names({"data": source.describe()})
    called = repr(names[j]) if names is not None and j < p else f"{j}"
    return f"column {called} of X" if j < p else f"target {j - p}"


def _quartiles(sample: RowSample) -> Floats:
    """Return the lower and upper quartiles (2, p + q) of inputs and targets."""
    values, counts = np.hstack([sample.X, sample.y]), sample.counts
    method: Any = "linear" if counts is None else "inverted_cdf"
    quartiles: Floats = np.quantile(values, [0.25, 0.75], axis=0, method=method, weights=counts)
    return quartiles


def _enlargements(sample: RowSample, quartiles: Floats) -> Floats:
    """Return what the standard deviations (p,) of inputs are multiplied by, 1 for most.

    Rare events, in a share f of the rows, are about 1 / sqrt(f) deviations off, so that few such
    columns make all distances.  Where f is less than a tenth, the deviation is what it would be if
    a tenth departed as far: sqrt(0.1 / f) times as large.
    Kuhn and Johnson (2013), "Applied predictive modeling", section 3.5, for such columns.
    """
    values, usual = sample.X, quartiles[0, : sample.X.shape[1]]
    departing = np.average(values != usual, axis=0, weights=sample.counts)
    factors: Floats = np.sqrt(_DEPARTING / np.clip(departing, 1.0 / len(values), _DEPARTING))
    return factors


def _warn_of_outliers(source: Source, columns: ColumnStatistics, quartiles: Floats) -> None:
    """Warn of columns whose deviation is that of a few values: far wider than most rows are."""
    deviation = np.sqrt(columns.variance)
    lower, upper = quartiles
    wild = (upper > lower) & (deviation > _WIDE * (upper - lower))
    if wild.any():
        names = [_name(source, j) for j in np.flatnonzero(wild).tolist()]
        farthest = np.maximum(columns.maximum - columns.mean, columns.mean - columns.minimum)
        _warn(
            f"{listed(names, _NAMED)}: a few values, up to "
            f"{np.max(farthest[wild] / deviation[wild]):,.0f} standard deviations from the mean, "
            f"make up that deviation, and beside them all others are nearly equal; clip them, take "
            f"logarithms, or leave them out.",
            6,
        )


def _constant(source: Source, columns: ColumnStatistics) -> Array:
    # A column is constant when it varies by the rounding of what computed it: of single precision,
    # or double where it is stored so.  Half precision is one to store in, and its steps are values.
    return columns.constant(8 * min(source.rounding, float(np.finfo(np.float32).eps)))


def _warn_of_means(columns: ColumnStatistics, kept: Array, options: FitOptions) -> None:
    """Warn of inputs so far from zero that single precision loses products of them."""
    apart = np.sqrt((columns.mean[kept] ** 2).sum() / columns.variance[kept].sum())
    if options.precision == "single" and apart > _FAR_FROM_ZERO:
        _warn(
            f"the inputs lie {apart:,.0f} standard deviations from zero, where the "
            f"{options.kernel.name} kernel loses its digits in single precision; take precision "
            f"'double' (--precision double), or standardise.",
            6,
        )


def _standardizer(
    source: Source, columns: ColumnStatistics, options: FitOptions, *, may_vary: bool
) -> tuple[Standardizer, list[int]]:
    p, mean = source.n_features, columns.mean[: source.n_features]
    constant = _constant(source, columns)[:p]
    of_differences = isinstance(options.kernel, ShiftInvariantKernel) and not options.is_identity
    linear = options.is_identity or isinstance(options.kernel, Linear)
    # Products of inputs count where these are constant, but for what the intercept stands for.
    counts = not of_differences and not (linear and options.fit_intercept)
    if not options.standardize and (may_vary or counts):
        constant[:] = False
    left_out = constant & (not may_vary or constant.all())
    kept, dropped = np.flatnonzero(~left_out), np.flatnonzero(left_out).tolist()
    if not len(kept):
        raise DataError(
            f"all {p} columns of X are constant, so there is nothing to learn from; check which "
            f"dataset holds the inputs."
        )
    names = input_names({"data": source.describe()})
    if dropped:
        _warn(
            f"{len(dropped)} constant column{'s' * (len(dropped) > 1)} of X left out: "
            f"{listed(names[j] if names else j for j in dropped)}.",
            5,
        )
    waiting = np.flatnonzero(constant & ~left_out).tolist()
    if waiting:
        _warn(
            f"{len(waiting)} column{'s' * (len(waiting) > 1)} of X constant so far, whose "
            f"deviation is not known: {listed(names[j] if names else j for j in waiting)}; where "
            f"they vary later they count in units of their value here, or of 1 where that is "
            f"smaller.",
            5,
        )
    # Units too large leave a column nearly out, as it was; units too small would leave it alone.
    size = np.maximum(np.abs(mean), 1.0)
    deviation = np.where(constant, size, np.sqrt(columns.variance[:p]))[kept]
    mean = mean[kept]
    if not options.standardize:
        deviation = np.ones(len(kept))
        if not (of_differences or options.is_identity):
            _warn_of_means(columns, kept, options)
        # A kernel of differences does not see the mean, but single precision does.
        mean = mean if of_differences else np.zeros(len(kept))
    return Standardizer(kept, mean, deviation, p), dropped
