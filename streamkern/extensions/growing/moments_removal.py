"""Downdating moments: rows taken out of those of folds."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import is_delayed
from streamkern.errors import DataError
from streamkern.extensions.growing.moments_merge import changed
from streamkern.models.data_moments import DataMoments
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.fit_report import with_seconds
from streamkern.parameters.planning import plan_here
from streamkern.parameters.template import check_targets
from streamkern.passes.column_summary import check_rows
from streamkern.passes.fit_context import FitContext
from streamkern.runtime.memory import check_free
from streamkern.sources import Source
from streamkern.statistics import (
    ColumnStatistics,
    Composite,
    FoldStatistics,
    ListedFolds,
    RowIndex,
    unplaced_folds,
)

# Squares of rows that may go, over those of the rows that are left: so C and S keep five digits.
_MOST_TAKEN = {"single": 1e4, "double": 1e10}
_NEGLIGIBLE = 1e-6
# Units of integers that targets vary by, at least, or their rounding would be seen.
_FEWEST_UNITS = 1024


def forgotten(moments: DataMoments, X: Any, y: Any, sample_weight: Any) -> DataMoments:
    """Return the moments without some rows, as `DataMoments.forget` says."""
    moments.check_whole()
    source = moments.encoding.source(X, y, sample_weight)
    moments.feature_map.check((source.n_samples, source.n_features))
    check_targets(source, moments.n_targets)
    index = moments.known_rows()
    check_free((3 if is_delayed(moments.folds) else 2) * moments.nbytes, "forgetting rows")
    folds, rows, seconds = without_rows(moments.gathered().folds, index, source, moments.options)
    report = with_seconds(moments.report, forget=seconds) | {
        "rows": len(rows),
        "weight": sum(part.weight for part in folds.parts.values()),
        "forgotten_rows": moments.report.get("forgotten_rows", 0) + len(index) - len(rows),
    }
    return changed(moments, folds, rows, len(rows), report)


def without_rows(
    folds: FoldStatistics, index: RowIndex, source: Source, options: FitOptions
) -> tuple[FoldStatistics, RowIndex, float]:
    """Take rows out of the moments of folds, each out of the fold that it is in.

    Of rows with equal values in several folds, those of the first fold go first.  Returned are the
    folds that still have rows, the index of these, and the seconds of the passes over the others.
    """
    plan = plan_here(source, replace(options, fold_by="rows"), indexed=True, empty_folds=True)
    rows = FitContext(source, options, plan.accepted())
    columns = ColumnStatistics(source.n_features + source.n_targets)
    empty, block_rows = Composite(columns, RowIndex()), plan.column_block_rows
    first = rows.read(empty, "rows", block_rows=block_rows)
    columns, found = first.statistic.parts
    check_rows(source, columns, first)
    found = found.in_order()
    positions = index.positions(found.hashes)
    if (unknown := positions < 0).any():
        raise DataError(
            f"{int(unknown.sum()):,} of {source.n_samples:,} rows were never in these moments, or "
            f"not as often as in this data, the first at "
            f"{source.locate(int(found.labels[unknown].min()))}; forget only rows that are in."
        )
    if len(found) == len(index):
        raise DataError(
            f"these are all {len(index):,} rows of the moments, and none would be left; begin "
            f"anew instead."
        )
    listed = np.zeros(source.n_samples, dtype=index.labels.dtype)
    listed[found.labels] = index.labels[positions]
    second = rows.read(
        FoldStatistics(ListedFolds(folds.rule.n_folds, listed), folds.empty), "forget"
    )
    left = FoldStatistics(unplaced_folds(folds.rule.n_folds), folds.empty)
    gone: dict[int, Any] = second.statistic.parts
    for fold, part in folds.parts.items():
        rest = part.without(gone[fold]) if fold in gone else part
        if rest.n_rows:
            left.parts[fold] = rest
    kept = np.ones(len(index), dtype=bool)
    kept[positions] = False
    staying = index.taking(kept)
    is_one = bool((staying.hashes == staying.hashes[0]).all())
    _check_digits(list(gone.values()), list(left.parts.values()), is_one=is_one)
    return left, staying, first.seconds + second.seconds


def _check_digits(gone: Sequence[Any], left: Sequence[Any], *, is_one: bool) -> None:
    """Raise DataError if rows take the digits of those that stay with them.

    Sums that are not of integers are rounded beside what is in them, and that stays when it goes.
    So their squares about the means of the others are compared with those of the others.  A row
    that is the only one has none about its mean: there the squares in its sums are taken.
    """
    precision = left[0].precision
    if is_one and precision == "single":
        raise DataError(
            "one row would stay, or equal ones, and sums in single precision do not tell what it "
            "is; leave two that differ, or take precision 'double' (--precision double)."
        )
    if precision not in _MOST_TAKEN:
        _check_units(gone, left)
        return

    def sums(parts: Sequence[Any]) -> Floats:
        """Return the sums of weights, and those of values and of their squares, (3, q + D)."""
        each = [
            (
                np.full(len(part.target) + len(part.cross), part.weight),
                np.concatenate([part.target_sum, part.cross[:, -1]]),
                np.concatenate([part.target, part.with_gram().gram.diagonal()]),
            )
            for part in parts
        ]
        return np.sum(each, axis=0)

    (weight, first, squares), (n_gone, gone_first, gone_squares) = sums(left), sums(gone)
    mean = first / weight
    spread = np.maximum(squares - (0.0 if is_one else weight * mean**2), 0.0)
    taken = gone_squares - 2.0 * mean * gone_first + n_gone * mean**2
    q = len(left[0].target)
    # Features that hardly vary say nothing, whatever their digits.
    spread[q:] += (1.0 if is_one else _NEGLIGIBLE) * spread[q:].mean()
    varies = spread > 0
    ratio = float((taken[varies] / spread[varies]).max(initial=0.0))
    if ratio > _MOST_TAKEN[precision]:
        raise DataError(
            f"the squares of these rows are {ratio:.2g} times those of the rows that would be "
            f"left, whose digits their rounding in {precision} precision has taken; fit the rows "
            f"that are left anew."
        )


def _check_units(gone: Sequence[Any], left: Sequence[Any]) -> None:
    """Raise DataError if targets that stay are small beside units that others gave them."""
    parts = [part.centred() for part in left if part.weight > 0]
    if not parts:
        return
    weight = sum(part.weight for part in parts)
    mean = sum(part.weight * part.target_mean for part in parts) / weight

    def spread(parts: Sequence[Any]) -> Floats:
        """Return the sums of squares about that mean, (q,)."""
        return np.sum(
            [part.target + part.weight * (part.target_mean - mean) ** 2 for part in parts], axis=0
        )

    kept = spread(parts)
    taken = spread([part.centred() for part in gone if part.weight > 0] or parts)
    lost = (kept < weight * (_FEWEST_UNITS * left[0].target_unit) ** 2) & (taken > kept)
    if lost.any():
        raise DataError(
            f"targets that would be left vary by less than {_FEWEST_UNITS:,} of the units that the "
            f"first rows gave them; fit the rows that are left anew."
        )
