"""Updating moments: those of two sets of rows made one."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import is_delayed
from streamkern.errors import DataError, OverflowedError
from streamkern.errors.formatting import listed, listed_apart
from streamkern.features import LEVELS
from streamkern.features.spectral import SpectralFeatures
from streamkern.models.data_moments import DataMoments, checked_moments
from streamkern.parameters.fit_report import FitReport
from streamkern.runtime.memory import check_free
from streamkern.sources.columns import Columns
from streamkern.statistics import FoldStatistics, RowIndex, unplaced_folds

# What standardizers do besides taking out means.
_SCALES = ("deviation", "linear", "bound", "knots")


def merged(left: DataMoments, right: DataMoments, *, repeated_rows: bool) -> DataMoments:
    """Return the moments of both sets of rows, as `DataMoments.merge` says."""
    for each in (left, checked_moments(right)):
        each.check_whole()
        each.check_lasting()
    check_alike(left, right)
    turns = turns_between(left.feature_map, right.feature_map, left.options.precision)
    if not repeated_rows:
        check_disjoint(left.known_rows(), right.known_rows())
    remote = sum(part.nbytes for part in (left, right) if is_delayed(part.folds))
    check_free(remote + max(left.nbytes, right.nbytes), "merging moments")
    folds = merged_folds(left.gathered().folds, right.gathered().folds, turns)
    skip = "skip" in (left.options.on_bad_rows, right.options.on_bad_rows)
    options = replace(left.options, on_bad_rows="skip" if skip else "error")
    index = None
    if left.index is not None and right.index is not None:
        index = left.index.merge(right.index).in_order()
    columns = left.columns.merge(right.columns)
    report = joined_reports(left.report, right.report, columns)
    both = changed(left, folds, index, left.n_rows + right.n_rows, report)
    return replace(both, options=options, columns=columns)


def changed(
    moments: DataMoments,
    folds: FoldStatistics,
    index: RowIndex | None,
    n_rows: int,
    report: FitReport,
) -> DataMoments:
    """Return moments of other rows, of which there is no sample."""
    report = report | {"n_folds": len(folds.parts) if moments.n_folds > 1 else 0}
    known: Any = {"folds": folds, "index": index, "n_rows": n_rows, "report": report}
    return replace(moments, **known, support_rows=None, sample=None)


def check_alike(left: DataMoments, right: DataMoments) -> None:
    """Raise DataError unless two moments are of the same map, and otherwise alike."""
    for mine, theirs in zip_longest(_traits(left), _traits(right), fillvalue="nothing of the kind"):
        if mine != theirs:
            raise DataError(
                f"moments merge only where they are alike, but the first have {mine} and the "
                f"second have {theirs}; compute the second again like the first (--like)."
            )
    left.columns.check_targets(right.columns.target_names)
    names, others = (part.columns.input_names for part in (left, right))
    if names and others and names != others:
        mine, theirs = listed_apart(names, others)
        raise DataError(
            f"moments merge only where they are alike, but the columns of the first are {mine} "
            f"and those of the second {theirs}; give those of the second as the first has them."
        )
    first, second = (part.columns.recipe for part in (left, right))
    if first and second and not first.encodes_like(second):
        raise DataError(
            "moments merge only where they are alike, but columns of the two tables have other "
            "categories or codes; convert the second again like the first (--like)."
        )


def turns_between(left: Any, right: Any, precision: str) -> Floats | None:
    """Return the angles (L,) that pairs of the left map's features are ahead by, None if it is one.

    cos(w^T (x - m)) and sin(w^T (x - m)) of another m are the same two, turned by the angle
    w^T (m' - m).  Raise DataError if the maps differ by more than means, or are not of pairs, or if
    their features were rounded.
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
    elif precision in LEVELS:
        why = "the inputs of the two are about other means, and rounded features cannot be turned"
    elif mine.bends:
        why = "inputs in a bounded scale are about other medians, which no turn makes up for"
    elif isinstance(left.inner, SpectralFeatures) and 2 * left.inner.n_draws == left.n_components:
        means = replace(mine, columns=np.arange(len(mine.mean)), n_features=len(mine.mean))
        return left.inner.frequencies @ means(theirs.mean[None])[0]
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
    yield from moments.encoding.traits()
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


def merged_folds(
    left: FoldStatistics, right: FoldStatistics, turns: Floats | None = None
) -> FoldStatistics:
    """Return the moments of both, fold by fold, about the shifts and means of the first."""
    both = FoldStatistics(unplaced_folds(left.rule.n_folds), left.empty)
    with np.errstate(over="ignore", invalid="ignore"):
        for fold in sorted(left.parts.keys() | right.parts.keys()):
            mine = left.parts.get(fold, left.empty)
            theirs = right.parts.get(fold, right.empty)
            theirs = theirs if turns is None else theirs.of_map(mine.feature_map, turns)
            both.parts[fold] = part = mine.merge(theirs)
            if not part.is_finite():
                raise OverflowedError(
                    "the sums of the two overflow about the same shift; compute the second again "
                    "like the first (--like), from rows in the same units."
                )
    return both


# What reports count.
_COUNTS = (
    *("rows", "skipped_rows", "weightless_rows", "forgotten_rows"),
    *("retried_shards", "resumed_shards"),
)


def joined_reports(left: FitReport, right: FitReport, columns: Columns) -> FitReport:
    joined = left | columns.as_dict()
    for name in _COUNTS:
        if name in left or name in right:
            joined[name] = left.get(name, 0) + right.get(name, 0)
    mine, theirs = left["seconds"], right["seconds"]
    seconds = {name: mine.get(name, 0.0) + theirs.get(name, 0.0) for name in {**mine, **theirs}}
    data = left["data"], right["data"]
    # Rows without names are taken for inputs that a recipe made; the first fills later tables.
    recipes = [part["recipe"] for part in data if "recipe" in part]
    targets = data[0].get("target_names") or data[1].get("target_names")
    planned = left["projected_worker_bytes"], right["projected_worker_bytes"]
    return joined | {
        "peak_worker_bytes": max(left["peak_worker_bytes"], right["peak_worker_bytes"]),
        "projected_worker_bytes": max(planned),
        "seconds": seconds,
        "rows_per_second": joined["rows"] / seconds["pass"],
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
    return " and ".join(dict.fromkeys(word for word in (left, right) if word)) or None
