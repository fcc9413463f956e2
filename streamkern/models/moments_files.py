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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from streamkern.statistics import ByFold, ListedFolds, Moments, RowIndex
from streamkern.statistics.triangle import Triangle
from streamkern.storage.codec import MOMENTS, map_card, opened_card, restored_map, write_card
from streamkern.storage.untrusted import finite_array, finite_arrays, mark

if TYPE_CHECKING:
    from pathlib import Path

    import h5py

_SHIFTS = ("feature_shift", "target_shift", "target_unit")
_MOST_FOLDS = 1 << 20
_SUMS = ("gram", "cross", "target", "target_sum", "weight", "n_rows")


@dataclass(frozen=True)
class MomentsFile:
    """What a moments file holds.

    Folds are `Moments` about the same shifts, the index is of the rows in them, in order, and the
    card has options, kernel, report and versions.
    """

    folds: ByFold
    index: RowIndex
    card: dict[str, Any]


def write_moments(path: str | Path, moments: MomentsFile, *, force: bool = False) -> None:
    """Write a moments file, whole or not at all."""
    empty: Any = moments.folds.empty
    K = moments.folds.rule.n_folds
    card = {**moments.card, "n_targets": empty.n_targets, "n_folds": K}
    card |= map_card(empty.feature_map, empty.precision)
    arrays = {
        "map": empty.feature_map.arrays(),
        "shifts": {name: getattr(empty, name) for name in _SHIFTS},
        "folds": {
            str(fold): {name: getattr(part, name) for name in _SUMS}
            for fold, part in sorted(moments.folds.parts.items())
        },
        "index": {"hashes": moments.index.hashes, "folds": moments.index.labels},
    }
    write_card(path, MOMENTS, card, arrays, force=force)


def read_moments(path: str | Path, *, with_folds: bool = True) -> MomentsFile:
    """Read a moments file, without its folds and their rows if they are not wanted.

    Raises ModelFileError if there is none, or it is not a moments file, or damaged, or from a newer
    format.
    """
    with opened_card(path, MOMENTS) as (file, card):
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
            return MomentsFile(folds, RowIndex(folds.rule), card)
        for name, group in file["folds"].items():
            folds.parts[int(name)] = _read_part(group, empty)
        return MomentsFile(folds, _read_index(file["index"], folds), card)


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
