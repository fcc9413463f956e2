"""The first pass of a fit, a light one: what the columns hold, and a sample of the rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.reduction import PassResult
from streamkern.errors import DataError, warn
from streamkern.errors.formatting import listed
from streamkern.features import LEVELS, Standardizer
from streamkern.features.metric import learning_of
from streamkern.parameters.fit_options import OF_CATEGORIES
from streamkern.parameters.parameters import AUTO
from streamkern.passes.column_scaling import (
    categories_of,
    common,
    constant_columns,
    enlarged,
    grouped,
    left_out_like,
    normal_scores,
    of_one_unit,
    quartiles_of,
    robust,
    standardizer_of,
)
from streamkern.passes.fit_context import FitContext
from streamkern.sources import Block, Source
from streamkern.sources.columns import columns_of
from streamkern.sources.nonfinite_rows import bad_rows_error, none_left_error
from streamkern.statistics import ColumnStatistics, Composite, RowIndex, RowSample

# A standard deviation so many times as wide as half of the rows is that of a few values.
_WIDE = 25.0
# Mean weights above this overflow in products, and below its inverse underflow: in double precision
# those of two weights, and in single.
_HEAVY = 1e150, 1e30
# Columns that are named.
_NAMED = 3


@dataclass(frozen=True)
class ColumnSummary:
    """What the first pass over the rows says of them."""

    columns: ColumnStatistics  # of X and then y
    sample: RowSample  # spread over the whole source
    standardizer: Standardizer
    dropped: list[int]  # constant columns
    passed: PassResult[Any]
    index: RowIndex | None = None  # of all rows, in order
    nearly_constant: Sequence[int] = ()  # columns whose deviation was enlarged
    constant: Any = None  # inputs (p,) that are constant but for rounding
    quartiles: Any = None  # (3, p + q) of inputs and targets, None of rows like others
    categories: Sequence[Sequence[int]] = ()  # columns that are indicators of one, where needed
    one_unit: bool = False  # inputs seem to have one
    intercept: bool = True  # models have one, so that the targets' mean says nothing

    @property
    def weights(self) -> Floats | None:
        """Those of the sample (m,), None where all its rows count once."""
        return self.sample.counts

    def in_metric(self, linear: Floats | None) -> "ColumnSummary":
        """Return the summary with a metric, as A of A^T A, or without one."""
        return replace(self, standardizer=self.standardizer.with_linear(linear))

    def in_scale(self, name: str, precision: str) -> "ColumnSummary":
        """Return this summary, which is in the standard scale, in that of a name.

        Of 'auto', which is chosen later, it stays as it is.
        """
        standardizer = self.standardizer
        if name.startswith("robust"):
            standardizer = robust(standardizer, self.quartiles, self.constant)
        elif name == "quantile":
            standardizer = normal_scores(standardizer, self.quartiles, self.constant, self.sample)
        elif name == "common":
            standardizer = common(standardizer, self.columns, self.constant)
        nearly = () if name == "common" else self.nearly_constant
        if name.endswith("grouped"):
            standardizer = grouped(standardizer, self.columns, self.categories)
            together = {j for category in self.categories for j in category}
            nearly = [j for j in nearly if j not in together]
        if precision in LEVELS:
            standardizer = standardizer.coarsened()
        return replace(self, standardizer=standardizer, nearly_constant=nearly)

    @property
    def groups(self) -> Array:
        """A number from 0 for every input that is kept, the same for those of a category."""
        first = np.arange(self.standardizer.n_features)
        for category in self.categories:
            first[category] = category[0]
        numbers: Array = np.unique(first[self.standardizer.columns], return_inverse=True)[1]
        return numbers

    @property
    def target_scale(self) -> dict[str, Floats]:
        """The mean of every target, and its deviation, or 1 of one that is constant, (q,)."""
        p = self.standardizer.n_features
        deviation = np.sqrt(self.columns.variance[p:])
        unit = np.where(deviation > 0, deviation, 1.0)
        return {"target_shift": self.columns.mean[p:], "target_unit": unit}

    @property
    def targets(self) -> Floats:
        """Those of the sample (m, q), of deviation 1 over all rows, about the mean they allow."""
        scale = self.target_scale
        return (self.sample.y - self.intercept * scale["target_shift"]) / scale["target_unit"]

    @property
    def ends(self) -> Floats | None:
        """Where all rows end along every input (2, p'), None where these are turned."""
        linear, p = self.standardizer.linear, self.standardizer.n_features
        if linear is not None and linear.ndim == 2:
            return None
        return self.standardizer(np.stack([self.columns.minimum[:p], self.columns.maximum[:p]]))


def block_of(sample: RowSample) -> Block:
    """Return sampled rows as a block, with their places in the source."""
    return Block(sample.X, sample.y, 0, sample.weights, sample.places)


def read_columns(context: FitContext, label: str = "columns") -> ColumnSummary:
    """Read all rows once, for what their columns hold and a sample of them."""
    source, options, like = context.source, context.options, context.like
    more_to_come = context.more_to_come
    asked = Composite(
        ColumnStatistics(source.n_features + source.n_targets),
        RowSample(context.n_sample, options.random_state),
        *([RowIndex(context.fold_rule)] if context.indexed else []),
    )
    block_rows = context.plan.column_block_rows
    passed = context.read(asked, label, block_rows=block_rows, read_rows=None)
    columns, sample, *indices = passed.statistic.parts
    check_rows(source, columns, passed)
    mean_weight = float(columns.weight.max()) / passed.n_rows
    is_whole = like is None and not more_to_come and not options.is_field
    heavy = _HEAVY[options.precision == "single"]
    if not (1 / heavy if is_whole else 0) <= mean_weight <= heavy:
        raise DataError(
            f"the mean weight is {mean_weight:.2g}, which products in {options.precision} "
            f"precision {'lose' if mean_weight < 1 else 'cannot hold'}; multiply all weights by a "
            f"number, such that their mean is near 1."
        )
    constant = constant_columns(source, columns)[: source.n_features]
    index = indices[0].in_order() if indices else None
    if like is not None:
        standardizer = like.feature_map.standardizer
        dropped = left_out_like(source, columns, standardizer)
        return ColumnSummary(
            columns, sample, standardizer, dropped, passed, index=index, constant=constant
        )
    _check_columns(source, columns, may_be_equal=more_to_come)
    quartiles, nearly_constant = quartiles_of(sample), list[int]()
    standardizer, dropped = standardizer_of(source, columns, options, may_vary=more_to_come)
    if options.standardize and not options.is_identity:
        usual = quartiles[0, : source.n_features]
        standardizer, nearly_constant = enlarged(standardizer, sample, usual, constant)
    summary = ColumnSummary(
        columns,
        sample,
        standardizer,
        dropped,
        passed,
        index=index,
        nearly_constant=nearly_constant,
        constant=constant,
        quartiles=quartiles,
        intercept=options.fit_intercept,
    )
    chooses = options.scale in {AUTO, *OF_CATEGORIES} or options.chooses_kernel
    if chooses or learning_of(options.metric):
        known = source, columns, sample, constant
        summary = replace(summary, categories=categories_of(*known), one_unit=of_one_unit(*known))
    return summary.in_scale(options.scale, options.precision)


def check_rows(source: Source, columns: ColumnStatistics, passed: PassResult[Any]) -> None:
    """Raise DataError if rows are not finite and were not skipped, or if none is left."""
    if columns.n_bad_rows:
        first = columns.first_bad_row or 0
        raise bad_rows_error(source, columns.n_bad_rows, first, columns.n_nonfinite)
    if not passed.n_rows:
        raise none_left_error(source, passed.n_skipped, passed.n_weightless)


def _check_columns(source: Source, columns: ColumnStatistics, *, may_be_equal: bool) -> None:
    p = source.n_features
    if source.n_targets and not may_be_equal and columns.constant(0.0)[p:].all():
        raise source.constant_targets_error(columns.mean[p:])
    # Below the smallest normal number, digits are lost one by one.
    smallest, largest = np.finfo(float).tiny, np.finfo(float).max
    held = (columns.variance >= smallest) & (columns.variance <= largest)
    wild = np.flatnonzero(~constant_columns(source, columns) & ~held)
    if len(wild):
        j = int(wild[0])
        name = _name(source, columns_of(source).input_names, j)
        how = "underflows" if columns.variance[j] < smallest else "overflows"
        raise DataError(
            f"{name} has values from {columns.minimum[j]:.3g} to {columns.maximum[j]:.3g}, whose "
            f"variance {how}; rescale it."
        )


def _name(source: Source, names: Sequence[str] | None, j: int) -> str:
    p = source.n_features
    called = repr(names[j]) if names is not None and j < p else f"{j}"
    return f"column {called} of X" if j < p else f"target {j - p}"


def warn_of_outliers(source: Source, summary: ColumnSummary) -> None:
    """Warn of columns whose deviation is that of a few values: far wider than most rows are.

    In a scale that these do not make, inputs are left out.
    """
    columns, (lower, _, upper) = summary.columns, summary.quartiles
    deviation = np.sqrt(columns.variance)
    wild = (upper > lower) & (deviation > _WIDE * (upper - lower))
    if summary.standardizer.bends:
        wild[: source.n_features] = False
    if wild.any():
        named = columns_of(source).input_names
        names = [_name(source, named, j) for j in np.flatnonzero(wild).tolist()]
        farthest = np.maximum(columns.maximum - columns.mean, columns.mean - columns.minimum)
        warn(
            f"{listed(names, _NAMED)}: a few values, up to "
            f"{np.max(farthest[wild] / deviation[wild]):,.0f} standard deviations from the mean, "
            f"make up that deviation, and beside them all others are nearly equal; clip them, take "
            f"logarithms or scale 'robust' (--scale robust), or leave them out."
        )
