"""Moments files: what the rows of a data set were reduced to, to be merged and solved later.

/              attributes format = "streamkern-moments", format_version
/card          JSON: options, report, data, versions of libraries, map and parameters, kernel
/map/...       what the feature map drew
/shifts/..     feature_shift (D,), target_shift and target_unit (q,): all sums are about these
/folds/K/..    gram, one packed triangle of D (D + 1) / 2; cross (D, q + 1), target (q,),
               target_sum (q,), weight, n_rows
               (version 1 had the products of all targets as target, (q, q))
/index/hashes  (n,) uint64, of the values of every row, ascending
/index/folds   (n,) which fold the row is in
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from streamkern.models.fitted_model import check_names
from streamkern.models.labelling import classes_of_report
from streamkern.statistics import ByFold, ListedFolds, Moments, RowIndex
from streamkern.statistics.triangle import Triangle
from streamkern.storage.codec import restored_map
from streamkern.storage.untrusted import finite_array, finite_arrays, mark

if TYPE_CHECKING:
    import h5py

_SHIFTS = ("feature_shift", "target_shift", "target_unit")
_MOST_FOLDS = 1 << 20
_SUMS = ("gram", "cross", "target", "target_sum", "weight", "n_rows")


# What a solve repeats of the report.
_NUMBERS = {
    *("rows", "n_features", "n_targets", "rows_per_second", "peak_worker_bytes", "n_folds"),
    *("projected_worker_bytes", "skipped_rows", "retried_shards", "resumed_shards"),
}
_REPORTED = {*_NUMBERS, "seconds", "fold_by", "precision", "dropped_columns", "data"}
_SECONDS = {"total", "columns", "pass"}


def moments_arrays(folds: ByFold, index: RowIndex) -> dict[str, Any]:
    empty, parts = folds.empty, sorted(folds.parts.items())
    return {
        "map": empty.feature_map.arrays(),  # type: ignore[attr-defined]
        "shifts": {name: getattr(empty, name) for name in _SHIFTS},
        "folds": {str(i): {name: getattr(part, name) for name in _SUMS} for i, part in parts},
        "index": {"hashes": index.hashes, "folds": index.labels},
    }


def restored_folds(
    file: h5py.File, card: dict[str, Any], *, with_folds: bool
) -> tuple[ByFold, RowIndex]:
    """Return the folds of a file and the index of their rows, or both empty."""
    K, q, feature_map = card["n_folds"], card["n_targets"], restored_map(file, card)
    if not (isinstance(K, int) and isinstance(q, int) and 0 < K <= _MOST_FOLDS and q > 0):
        raise ValueError(f"{K!r} folds of {q!r} targets")
    shapes = zip(_SHIFTS, ((feature_map.n_components,), (q,), (q,)), strict=True)
    shifts: dict[str, Any] = finite_arrays(file["shifts"], dict(shapes), "f")
    if not (shifts["target_unit"] > 0).all():
        raise ValueError("units of targets that are not positive")
    empty = Moments(feature_map, q, precision=card["precision"], **shifts)
    folds = ByFold(ListedFolds(K, np.empty(0, dtype=np.int64)), empty)
    if not with_folds:
        return folds, RowIndex(folds.rule)
    for name, group in file["folds"].items():
        folds.parts[int(name)] = _read_part(group, empty)
    return folds, _read_index(file["index"], folds)


def check_report(report: dict[str, Any]) -> None:
    """Raise an error of damage unless a report has what a solve needs of it."""
    classes_of_report(report)
    if "feature_names" in report:
        check_names(report["feature_names"], report["n_features"])
    missing = _REPORTED - report.keys() or _SECONDS - report["seconds"].keys()
    if missing or "kind" not in report["data"]:
        raise ValueError(f"the report lacks {min(missing or {'data'})}")
    numbers = [*(report[name] for name in _NUMBERS), *report["seconds"].values()]
    numbers += [*report["dropped_columns"], *report.get("nearly_constant_columns", [])]
    if not all(isinstance(number, (int, float)) for number in numbers):
        raise ValueError("what are no numbers in the report")


def _read_part(group: h5py.Group, empty: Moments) -> Moments:
    part = empty.zero()
    D, q = part.feature_map.n_components, part.n_targets
    all_products = mark(group.file, "format_version") == 1
    shapes = {"gram": (D * (D + 1) // 2,), "cross": (D, q + 1), "target_sum": (q,), "weight": ()}
    found = finite_arrays(group, shapes | {"target": (q, q) if all_products else (q,)}, "f")
    part.gram, part.weight = Triangle.unpacked(found["gram"]), float(found["weight"])
    part.cross, part.target_sum = found["cross"], found["target_sum"]
    part.target = np.diagonal(found["target"]).copy() if all_products else found["target"]
    part.n_rows = int(finite_array(group, "n_rows", (), "iu"))
    if part.weight < 0 or part.n_rows < 0:
        raise ValueError(f"{part.n_rows:,} rows that weigh {part.weight:g}")
    return part


def _read_index(group: h5py.Group, folds: ByFold) -> RowIndex:
    """Read which rows are in the folds, and check that the two agree."""
    hashes = finite_array(group, "hashes", kinds="u")
    labels = finite_array(group, "folds", hashes.shape, "u")
    if hashes.dtype != np.uint64 or hashes.ndim != 1 or (hashes[1:] < hashes[:-1]).any():
        raise ValueError("hashes of rows that are not in order")
    K, parts = folds.rule.n_folds, cast("dict[int, Moments]", folds.parts)
    if len(labels) and labels.max() >= K:
        raise ValueError(f"fold {labels.max()} of {K}")
    stored = [parts[fold].n_rows if fold in parts else 0 for fold in range(K)]
    known = parts and min(parts) >= 0 and max(parts) < K
    if not known or (np.bincount(labels, minlength=K) != stored).any():
        raise ValueError("folds that do not hold the rows of the index")
    return RowIndex.of(hashes, labels, folds.rule)
