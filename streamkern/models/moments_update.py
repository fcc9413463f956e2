"""Updating and downdating moments: two sets of rows made one, and rows taken out again."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.errors import DataError, OverflowedError
from streamkern.errors.formatting import listed, listed_apart
from streamkern.features.spectral import SpectralFeatures
from streamkern.models.checkpoint_job import RowPasses
from streamkern.parameters.plan import plan_for
from streamkern.sources.preprocessing import recipe_of
from streamkern.sources.preprocessing.column_names import input_names
from streamkern.statistics import (
    ByFold,
    ColumnStatistics,
    ListedFolds,
    RowIndex,
    Together,
    unplaced_folds,
)
from streamkern.tune.column_pass import check_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streamkern._typing import Floats
    from streamkern.engine.reduction import PassResult
    from streamkern.models.data_moments import DataMoments
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.sources import Source
    from streamkern.statistics import Moments

# What standardizers do besides taking out means.
_SCALES = ("deviation", "linear")
# Squares of rows that may go, over those of the rows that are left: so C and S keep five digits.
_MOST_TAKEN = {"single": 1e4, "double": 1e10}
_NEGLIGIBLE = 1e-6


def check_alike(left: DataMoments, right: DataMoments) -> None:
    """Raise DataError unless two moments are of the same map, and otherwise alike."""
    for mine, theirs in zip_longest(_traits(left), _traits(right), fillvalue="nothing of the kind"):
        if mine != theirs:
            raise DataError(
                f"moments merge only where they are alike, but the first have {mine} and the "
                f"second have {theirs}; compute the second again like the first (--like)."
            )
    names, others = (input_names(part.report) for part in (left, right))
    if names and others and names != others:
        mine, theirs = listed_apart(names, others)
        raise DataError(
            f"moments merge only where they are alike, but the columns of the first are {mine} "
            f"and those of the second {theirs}; give those of the second as the first has them."
        )
    first, second = (recipe_of(part.report) for part in (left, right))
    if first and second and not first.encodes_like(second):
        raise DataError(
            "moments merge only where they are alike, but columns of the two tables have other "
            "categories or codes; convert the second again like the first (--like)."
        )


def turns_between(left: Any, right: Any) -> Floats | None:
    """Return the angles (L,) that pairs of the left map's features are ahead by, None if it is one.

    cos(w^T (x - m)) and sin(w^T (x - m)) of another m are the same two, turned by the angle
    w^T (m' - m).  Raise DataError if the maps differ by more than means, or are not of pairs.
    """
    if left.equals(right):
        return None
    mine, theirs = left.standardizer, right.standardizer
    apart = set(mine.columns.tolist()) ^ set(theirs.columns.tolist())
    if apart:
        why = f"inputs left out as constant in one are not in the other: {listed(sorted(apart))}"
    elif not all(np.array_equal(*(vars(s)[n] for s in (mine, theirs))) for n in _SCALES):
        why = "the inputs of the two are standardised by other means or deviations"
    elif not left.inner.equals(right.inner):
        why = "the features of the two were chosen from other rows, as landmarks are"
    elif isinstance(left.inner, SpectralFeatures) and 2 * left.inner.n_draws == left.n_components:
        means = replace(mine, columns=np.arange(len(mine.mean)), n_features=len(mine.mean))
        turns: Floats = left.inner.frequencies @ means(theirs.mean[None])[0]
        return turns
    else:
        why = "the inputs of the two are about other means, which only pairs of waves make up for"
    raise DataError(
        f"moments merge only where they are alike, but {why}; compute the second again like the "
        f"first (--like)."
    )


def _traits(moments: DataMoments) -> Iterator[str]:
    """Yield in words what two moments must have in common."""
    feature_map = moments.feature_map
    yield f"{feature_map.n_features} inputs"
    yield f"{moments.n_targets} targets"
    yield f"{moments.options.precision} precision"
    yield f"{moments.n_folds} folds"
    classes = moments.report.get("classes")
    yield f"the classes {', '.join(map(repr, classes['values']))}" if classes else "no classes"
    yield f"map {feature_map.name}"
    yield from _named(feature_map.parameters())


def _named(parameters: Mapping[str, Any]) -> Iterator[str]:
    for name, value in parameters.items():
        if isinstance(value, dict):
            yield from _named(value)
        else:
            yield f"{name} {value}"


def check_disjoint(left: RowIndex, right: RowIndex) -> None:
    common = int((left.positions(right.hashes) >= 0).sum())
    if common:
        raise DataError(
            f"{common:,} of the {len(right):,} rows to be merged are in already, and would count "
            f"twice; leave them out, or give repeated_rows (--repeated-rows) if they are other "
            f"observations with equal values."
        )


def merged_folds(left: ByFold, right: ByFold, turns: Floats | None = None) -> ByFold:
    """Return the moments of both, fold by fold, about the shifts and means of the first."""
    both = ByFold(unplaced_folds(left.rule.n_folds), left.empty)
    with np.errstate(over="ignore", invalid="ignore"):
        for fold in sorted(left.parts.keys() | right.parts.keys()):
            mine: Any = left.parts.get(fold, left.empty)
            theirs: Any = right.parts.get(fold, right.empty)
            theirs = theirs if turns is None else theirs.of_map(mine.feature_map, turns)
            both.parts[fold] = part = mine.merge(theirs)
            if not is_finite(part):
                raise OverflowedError(
                    "the sums of the two overflow about the same shift; compute the second again "
                    "like the first (--like), from rows in the same units."
                )
    return both


def is_finite(part: Moments) -> bool:
    gram = part.gram.panels if part.gram else []
    sums = (*gram, part.cross, part.target, part.target_sum, part.weight)
    return all(np.isfinite(values).all() for values in sums)


# What reports count, and what the largest of is meant.
_COUNTS = (
    *("rows", "skipped_rows", "weightless_rows", "forgotten_rows"),
    *("retried_shards", "resumed_shards"),
)
_PEAKS = ("peak_worker_bytes", "projected_worker_bytes")


def joined_reports(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    counts = {
        name: left.get(name, 0) + right.get(name, 0)
        for name in _COUNTS
        if name in left or name in right
    }
    mine, theirs = left["seconds"], right["seconds"]
    seconds = {name: mine.get(name, 0.0) + theirs.get(name, 0.0) for name in {**mine, **theirs}}
    data = left["data"], right["data"]
    # Rows without names are taken for inputs that a recipe made; the first fills later tables.
    recipes = [part["recipe"] for part in data if "recipe" in part]
    names = left.get("feature_names") or right.get("feature_names")
    targets = data[0].get("target_names") or data[1].get("target_names")
    return {
        **left,
        **counts,
        **{name: max(left[name], right[name]) for name in _PEAKS},
        **({"feature_names": names} if names else {}),
        "seconds": seconds,
        "rows_per_second": counts["rows"] / seconds["pass"],
        "fold_by": _both(left["fold_by"], right["fold_by"]),
        "weights": _both(left.get("weights"), right.get("weights")),
        # Files of versions that named no weights are of rows that count once.
        "weight": sum(part.get("weight", float(part["rows"])) for part in (left, right)),
        "data": {
            "kind": _both(*(part["kind"] for part in data)),
            # Names of datasets, where there are some.
            **{name: _both(*(part.get(name) for part in data)) for name in ("x", "y", "weights")},
            "rows": sum(part["rows"] for part in data),
            "files": [file for part in data for file in part.get("files", [])],
            **({"recipe": recipes[0]} if recipes else {}),
            **({"target_names": targets} if targets else {}),
        },
    }


def _both(left: str | None, right: str | None) -> str | None:
    words = dict.fromkeys(word for word in (left, right) if word)
    return " and ".join(words) or None


class Remaining(NamedTuple):
    """Folds that still have rows, the index of these, and the passes over those taken out."""

    folds: ByFold
    rows: RowIndex
    passes: tuple[PassResult[Any], PassResult[Any]]


def without_rows(folds: ByFold, index: RowIndex, source: Source, options: FitOptions) -> Remaining:
    """Take rows out of the moments of folds, each out of the fold that it is in.

    Of rows with equal values in several folds, those of the first fold go first.
    """
    plan = plan_for(source, replace(options, fold_by="rows"), indexed=True)
    rows = RowPasses(source, options, plan)
    columns = ColumnStatistics(source.n_features + source.n_targets)
    empty, block_rows = Together(columns, RowIndex()), plan.column_block_rows
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
    rule = ListedFolds(folds.rule.n_folds, listed)
    second = rows.read(ByFold(rule, folds.empty), "forget")
    left = ByFold(unplaced_folds(folds.rule.n_folds), folds.empty)
    gone: dict[int, Any] = second.statistic.parts
    parts: dict[int, Any] = dict(folds.parts)
    for fold, part in parts.items():
        rest = part.without(gone[fold]) if fold in gone else part
        if rest.n_rows:
            left.parts[fold] = rest
    _check_digits(list(gone.values()), list(left.parts.values()))
    kept = np.ones(len(index), dtype=bool)
    kept[positions] = False
    return Remaining(left, index.taking(kept), (first, second))


def _check_digits(gone: Sequence[Any], left: Sequence[Any]) -> None:
    """Raise DataError if rows take the digits of those that stay with them.

    Sums are rounded beside what is in them, and that stays when it goes.  So their squares about
    the means of the others are compared with those of the others.
    """

    def sums(parts: Sequence[Any]) -> Floats:
        """Return the sums of weights, and those of values and of their squares, (3, q + D)."""
        each = [
            (
                np.full(len(part.target) + len(part.cross), part.weight),
                np.concatenate([part.target_sum, part.cross[:, -1]]),
                np.concatenate([part.target, part.gram.diagonal()]),
            )
            for part in parts
        ]
        total: Floats = np.sum(each, axis=0)
        return total

    (weight, first, squares), (n_gone, gone_first, gone_squares) = sums(left), sums(gone)
    mean = first / weight
    spread = np.maximum(squares - weight * mean**2, 0.0)
    taken = gone_squares - 2.0 * mean * gone_first + n_gone * mean**2
    q = len(left[0].target)
    # Features that hardly vary say nothing, whatever their digits.
    spread[q:] += _NEGLIGIBLE * spread[q:].mean()
    varies = spread > 0
    ratio = float((taken[varies] / spread[varies]).max(initial=0.0))
    precision = left[0].precision
    if ratio > _MOST_TAKEN[precision]:
        raise DataError(
            f"the squares of these rows are {ratio:.2g} times those of the rows that would be "
            f"left, whose digits their rounding in {precision} precision has taken; fit the rows "
            f"that are left anew."
        )
