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
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.statistics import ByFold, ListedFolds, Moments, RowIndex
from streamkern.statistics.triangle import Triangle
from streamkern.storage.cards import MOMENTS, opened_card, restored_map, write_card
from streamkern.storage.disk import new_hdf5
from streamkern.storage.untrusted import finite_array, mark

if TYPE_CHECKING:
    from pathlib import Path

    import h5py

    from streamkern._typing import Floats

_SHIFTS = ("feature_shift", "target_shift", "target_unit")
_MOST_FOLDS = 1 << 20
_SUMS = ("cross", "target", "target_sum", "weight", "n_rows")


@dataclass(frozen=True)
class MomentsFile:
    """What a moments file holds.

    Parameters
    ----------
    folds : ByFold
        Of `Moments` that are about the same shifts.
    index : RowIndex
        Of the rows in them with their folds, in order.
    card : dict
        Options, kernel, report and versions, as plain JSON values.
    """

    folds: ByFold
    index: RowIndex
    card: dict[str, Any]


def write_moments(path: str | Path, moments: MomentsFile, *, force: bool = False) -> None:
    """Write a moments file, whole or not at all.

    Raises
    ------
    OutputError
        If the file exists and `force` is not given, or cannot be written.
    """
    empty: Any = moments.folds.empty
    parts: dict[int, Any] = dict(moments.folds.parts)
    card = {
        **moments.card,
        "precision": empty.precision,
        "n_targets": empty.n_targets,
        "n_folds": moments.folds.rule.n_folds,
    }
    with new_hdf5(path, force=force) as (file, disk):
        write_card(file, MOMENTS, card, empty.feature_map)
        for name in _SHIFTS:
            file[f"shifts/{name}"] = getattr(empty, name)
        for fold, part in sorted(parts.items()):
            group = file.create_group(f"folds/{fold}")
            group["gram"] = part.gram.packed()
            for name in _SUMS:
                group[name] = getattr(part, name)
            file.flush()
            disk.check()
        file["index/hashes"] = moments.index.hashes
        file["index/folds"] = moments.index.labels


def read_moments(path: str | Path, *, with_folds: bool = True) -> MomentsFile:
    """Read a moments file, without its folds and their rows if they are not wanted.

    Raises
    ------
    ModelFileError
        If there is none, or it is not a moments file, or damaged, or from a newer format.
    """
    with opened_card(path, MOMENTS) as (file, card):
        K, q, feature_map = card["n_folds"], card["n_targets"], restored_map(file, card)
        if not (isinstance(K, int) and isinstance(q, int) and 0 < K <= _MOST_FOLDS and q > 0):
            raise ValueError(f"{K!r} folds of {q!r} targets")
        shapes = zip(_SHIFTS, ((feature_map.n_components,), (q,), (q,)), strict=True)
        shifts = {name: finite_array(file["shifts"], name, shape, "f") for name, shape in shapes}
        if not (shifts["target_unit"] > 0).all():
            raise ValueError("units of targets that are not positive")
        folds = ByFold(
            ListedFolds(K, np.empty(0, dtype=np.int64)),
            Moments(
                feature_map,
                q,
                precision=card["precision"],
                feature_shift=shifts["feature_shift"],
                target_shift=shifts["target_shift"],
                target_unit=shifts["target_unit"],
            ),
        )
        if not with_folds:
            return MomentsFile(folds, RowIndex(folds.rule), card)
        for name, group in file["folds"].items():
            folds.parts[int(name)] = _read_part(group, folds.empty)
        return MomentsFile(folds, _read_index(file["index"], folds), card)


def _read_part(group: h5py.Group, empty: Any) -> Moments:
    part: Moments = empty.zero()
    D, q = part.feature_map.n_components, part.n_targets
    part.gram = Triangle.unpacked(finite_array(group, "gram", (D * (D + 1) // 2,), "f"))
    part.cross = finite_array(group, "cross", (D, q + 1), "f")
    part.target = _squares(group, q)
    part.target_sum = finite_array(group, "target_sum", (q,), "f")
    part.weight = float(finite_array(group, "weight", (), "f"))
    part.n_rows = int(finite_array(group, "n_rows", (), "iu"))
    if part.weight < 0 or part.n_rows < 0:
        raise ValueError(f"{part.n_rows:,} rows that weigh {part.weight:g}")
    return part


def _squares(group: h5py.Group, q: int) -> Floats:
    """Read the sums of squares of the targets, which version 1 has among all their products."""
    if mark(group.file, "format_version") == 1:
        return np.diagonal(finite_array(group, "target", (q, q), "f")).copy()
    return finite_array(group, "target", (q,), "f")


def _read_index(group: h5py.Group, folds: ByFold) -> RowIndex:
    """Read which rows are in the folds, and check that the two agree."""
    hashes = finite_array(group, "hashes", kinds="u")
    labels = finite_array(group, "folds", hashes.shape, "u")
    if hashes.dtype != np.uint64 or hashes.ndim != 1 or (hashes[1:] < hashes[:-1]).any():
        raise ValueError("hashes of rows that are not in order")
    if len(labels) and labels.max() >= folds.rule.n_folds:
        raise ValueError(f"fold {labels.max()} of {folds.rule.n_folds}")
    counted = np.bincount(labels, minlength=folds.rule.n_folds)
    parts: dict[int, Any] = dict(folds.parts)
    stored = [parts[fold].n_rows if fold in parts else 0 for fold in range(len(counted))]
    if not parts or min(parts) < 0 or max(parts) >= folds.rule.n_folds or any(counted != stored):
        raise ValueError("folds that do not hold the rows of the index")
    return RowIndex.of(hashes, labels, folds.rule)
