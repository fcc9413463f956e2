"""The scaling of columns: which are constant, and by what deviation the others are divided."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import DataError, warn
from streamkern.errors.formatting import listed
from streamkern.features import Standardizer
from streamkern.features.exact_products import sure
from streamkern.kernels import Linear, ShiftInvariantKernel
from streamkern.parameters.fit_options import FitOptions
from streamkern.sources import Source
from streamkern.sources.columns import columns_of, recipe_of
from streamkern.statistics import ColumnStatistics, RowSample

# Deviations from zero at which single precision was off by a tenth of those of the targets.
_FAR_FROM_ZERO = 5.0
# How far apart the quartiles of normal values are, in deviations, and three times that, which no
# value in the scale 'robust' reaches.
_QUARTERS, _APART = (0.25, 0.5, 0.75), 1.349
_BOUND = 3.0 * _APART
# Knots of the scale 'quantile', values that it tells apart, and shares of rows that it does.
_KNOTS, _LEAST, _RAREST = 32, 2.0**-30, 1e-7
# Deviations are those of columns where at least this share of rows departs from the usual value.
_DEPARTING = 0.1
# Of inputs of one unit: the share of a joint range that neighbours have in common, the share of
# neighbours that do, and how many times the median deviation the largest is, and the smallest.
_COMMON, _MOST, _LARGEST, _DIFFERENT = 0.5, 2 / 3, 30.0, 2.0


def constant_columns(source: Source, columns: ColumnStatistics) -> Array:
    # A column is constant when it varies by the rounding of what computed it: of single precision,
    # or double where it is stored so.  Half precision is one to store in, and its steps are values.
    return columns.constant(8 * min(source.rounding, float(np.finfo(np.float32).eps)))


def standardizer_of(
    source: Source, columns: ColumnStatistics, options: FitOptions, *, may_vary: bool
) -> tuple[Standardizer, list[int]]:
    p, mean = source.n_features, columns.mean[: source.n_features]
    constant = constant_columns(source, columns)[:p]
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
    names = columns_of(source).input_names
    if dropped:
        warn(
            f"{len(dropped)} constant column{'s' * (len(dropped) > 1)} of X left out: "
            f"{listed(names[j] if names else j for j in dropped)}."
        )
    waiting = np.flatnonzero(constant & ~left_out).tolist()
    if waiting:
        warn(
            f"{len(waiting)} column{'s' * (len(waiting) > 1)} of X constant so far, whose "
            f"deviation is not known: {listed(names[j] if names else j for j in waiting)}; where "
            f"they vary later they count in units of their value here, or of 1 where that is "
            f"smaller."
        )
    # Units too large leave a column nearly out, as it was; units too small would leave it alone.
    size = np.maximum(np.abs(mean), 1.0)
    deviation = np.where(constant, size, np.sqrt(columns.variance[:p]))[kept]
    mean = mean[kept]
    if not options.standardize:
        deviation = np.ones(len(kept))
        if not (of_differences or options.is_identity):
            apart = np.sqrt((columns.mean[kept] ** 2).sum() / columns.variance[kept].sum())
            if options.precision == "single" and apart > _FAR_FROM_ZERO:
                warn(
                    f"the inputs lie {apart:,.0f} standard deviations from zero, where the "
                    f"{options.kernel.name} kernel loses its digits in single precision; take "
                    f"precision 'double' (--precision double), or standardise."
                )
        # A kernel of differences does not see the mean, but single precision does.
        mean = mean if of_differences else np.zeros(len(kept))
    return Standardizer(kept, mean, deviation, p), dropped


def enlarged(
    standardizer: Standardizer, sample: RowSample, usual: Floats, constant: Array
) -> tuple[Standardizer, list[int]]:
    """Enlarge the deviations of nearly constant inputs, and return which these are.

    Rare events, in a share f of the rows, are about 1 / sqrt(f) deviations off, so that few such
    columns make all distances.  Where f is less than a tenth, the deviation is what it would be if
    a tenth departed as far: sqrt(0.1 / f) times as large.
    Kuhn and Johnson (2013), "Applied predictive modeling", section 3.5, for such columns.
    """
    departing = np.average(usual != sample.X, axis=0, weights=sample.counts)
    factors = np.sqrt(_DEPARTING / np.clip(departing, 1.0 / len(sample.X), _DEPARTING))
    factors[constant] = 1.0
    deviation = standardizer.deviation * factors[standardizer.columns]
    return replace(standardizer, deviation=deviation), np.flatnonzero(factors > 1.0).tolist()


def quartiles_of(sample: RowSample) -> Floats:
    """Return lower quartiles, medians and upper quartiles (3, p + q) of inputs and targets.

    They are values of rows, so that an indicator has none between its two.
    """
    values = np.hstack([sample.X, sample.y])
    how: Any = {"method": "inverted_cdf", "weights": sample.counts}
    return np.quantile(values, _QUARTERS, axis=0, **how)


def robust(standardizer: Standardizer, quartiles: Floats, constant: Array) -> Standardizer:
    """Return the scale of medians and quartiles (3, p + q), in which no value is far away.

    Of a column whose quartiles are equal, such as an indicator, or that is constant but for
    rounding (p,), mean and deviation stay.
    Holzmueller, Grinsztajn and Steinwart (2024), "Better by default: strong pre-tuned MLPs and
    boosted trees on tabular data", for the smooth bound.
    """
    lower, middle, upper = quartiles[:, standardizer.columns]
    apart = np.where(constant[standardizer.columns], 0.0, upper - lower) / _APART
    deviation = np.where(apart > 0, apart, standardizer.deviation)
    mean = np.where(apart > 0, middle, standardizer.mean)
    return replace(standardizer, mean=mean, deviation=deviation, bound=_BOUND)


def normal_scores(
    standardizer: Standardizer, quartiles: Floats, constant: Array, sample: RowSample
) -> Standardizer:
    """Return the scale in which every input is normal: that of the ranks of its values.

    A value has the normal quantile of the share of the sample's rows, as they weigh, that are
    below it, and of half of those that have it, too.  Knots are where these scores are even, and
    beyond the sample the last slopes go on for one deviation.  A column of one or two values has
    no shape to be bent: its mean and deviation are those of `robust`.
    Conover (1999), "Practical nonparametric statistics", section 5.10, for normal scores.
    """
    from scipy.special import ndtri  # noqa: PLC0415  imported where it is needed

    plain = replace(robust(standardizer, quartiles, constant), bound=None).coarsened()
    rows = sure(np.rint(plain(sample.X) / _LEAST) * _LEAST)
    knots = np.tile(np.linspace(-_BOUND, _BOUND, _KNOTS), (2, rows.shape[1], 1))
    for j in np.flatnonzero(~constant[plain.columns]).tolist():
        found, places = np.unique(rows[:, j], return_inverse=True)
        if len(found) <= 2:
            continue
        weights = np.bincount(places, sample.counts)
        shares = (np.cumsum(weights) - weights / 2.0) / weights.sum()
        scores = ndtri(np.clip(shares, _RAREST, 1.0 - _RAREST))
        even = np.linspace(scores[0], scores[-1], _KNOTS - 2)
        inner = np.interp(even, scores, found)
        first, last = np.diff(inner)[[0, -1]] / (even[1] - even[0])
        knots[0, j] = [inner[0] - first, *inner, inner[-1] + last]
        knots[1, j] = [even[0] - 1.0, *even, even[-1] + 1.0]
    return replace(plain, knots=knots)


def common(standardizer: Standardizer, columns: ColumnStatistics, constant: Array) -> Standardizer:
    """Return the scale in which all inputs have one deviation, the root mean square of theirs.

    Inputs of one unit, such as pixels, keep their proportions: those that hardly vary hardly count.
    Those that are constant but for rounding (p,) have no part in it, and keep their units.
    """
    varying = standardizer.columns[~constant[standardizer.columns]]
    together = np.sqrt(columns.variance[varying].mean()) if len(varying) else 1.0
    own = constant[standardizer.columns]
    return replace(standardizer, deviation=np.where(own, standardizer.deviation, together))


def of_one_unit(
    source: Source, columns: ColumnStatistics, sample: RowSample, constant: Array
) -> bool:
    """Say whether inputs are like pixels or a spectrum, whose proportions say what counts.

    Most neighbours have half of their joint range in common; deviations differ, but none is far
    above the median.  Indicators say nothing, and a recipe makes several inputs of text and dates.
    """
    recipe, p = recipe_of(source.describe()), source.n_features
    if recipe is not None and any(len(column.inputs()) > 1 for column in recipe.columns):
        return False
    counted = ~constant[:p] & ~((sample.X == 0) | (sample.X == 1)).all(axis=0)
    low, high = columns.minimum[:p][counted], columns.maximum[:p][counted]
    deviation = np.sqrt(columns.variance[:p][counted])
    largest = deviation.max(initial=0.0)
    if not _DIFFERENT * deviation.min(initial=largest) < largest <= _LARGEST * np.median(deviation):
        return False
    shared = np.minimum(high[1:], high[:-1]) - np.maximum(low[1:], low[:-1])
    joint = np.maximum(high[1:], high[:-1]) - np.minimum(low[1:], low[:-1])
    return bool((shared >= _COMMON * joint).mean() >= _MOST)


def categories_of(
    source: Source, columns: ColumnStatistics, sample: RowSample, constant: Array
) -> list[list[int]]:
    """Return the varying columns of every category that has several.

    A recipe says which these are.  Of other columns, neighbours from 0 to 1 are taken for them of
    which each row of the sample has at most one.
    """
    p = source.n_features
    X, varies, recipe = sample.X, ~constant[:p], recipe_of(source.describe())
    are = varies & (columns.minimum[:p] == 0) & (columns.maximum[:p] == 1)
    groups, first = list[list[int]](), 0
    for column in () if recipe is None else recipe.columns:
        places = np.arange(first, first := first + len(column.inputs()))
        if column.kind == "categories":
            groups.append(places[varies[places]].tolist())
            are[places] = False
    found, taken = list[list[int]](), np.zeros(len(X), dtype=bool)
    for j in np.flatnonzero(are & ((X == 0) | (X == 1)).all(axis=0)).tolist():
        has = X[:, j] == 1
        if found and found[-1][-1] == j - 1 and not (taken & has).any():
            found[-1].append(j)
            taken |= has
        else:
            found.append([j])
            taken = has
    return [group for group in groups + found if len(group) > 1]


def grouped(
    standardizer: Standardizer, columns: ColumnStatistics, categories: Sequence[Sequence[int]]
) -> Standardizer:
    """Return the scale in which the indicators of a category count together as one input.

    Each is divided by the root of the sum of their variances; of categories that fewer than a tenth
    of rows depart from the commonest of, enlarged like that of one column.
    Gower (1971), "A general coefficient of similarity and some of its properties", where a category
    counts as a number does.
    """
    deviation = np.ones(standardizer.n_features)
    deviation[standardizer.columns] = standardizer.deviation
    for group in categories:
        shares, variance = columns.mean[group], columns.variance[group].sum()
        departing = max(1.0 - max(shares.max(), 1.0 - shares.sum()), variance / 2.0)
        deviation[group] = np.sqrt(variance * max(_DEPARTING / departing, 1.0))
    return replace(standardizer, deviation=deviation[standardizer.columns])


def left_out_like(
    source: Source, columns: ColumnStatistics, standardizer: Standardizer
) -> list[int]:
    """Return the columns that a template leaves out, with a warning where they vary here."""
    left_out = sorted(set(range(source.n_features)) - set(standardizer.columns.tolist()))
    constant = constant_columns(source, columns)
    varying = [j for j in left_out if not constant[j]]
    if varying:
        warn(
            f"columns of X left out that are constant in the rows that these are to be like, but "
            f"not here: {listed(varying)}."
        )
    return left_out
