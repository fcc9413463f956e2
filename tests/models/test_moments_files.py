"""Moments files: sums come back bit for bit, and nothing damaged or mistaken is used.

What is refused of every kind of file is in test_model_files.py.
"""

from __future__ import annotations

import json

import h5py
import naive
import numpy as np
import pytest

from streamkern.errors import ModelFileError
from streamkern.features import Identity, RandomFourierFeatures, Standardized, Standardizer
from streamkern.kernels import Gaussian
from streamkern.models.moments_files import MomentsFile, read_moments, write_moments
from streamkern.statistics import ByFold, Moments, RowFolds, RowIndex
from streamkern.storage.untrusted import fixed

P, D, K = 3, 16, 4
SUMS = ("cross", "target", "target_sum", "weight", "n_rows")


def fourier(order=D):
    return RandomFourierFeatures(Gaussian(0.7), order).draw(P)


MAPS = {
    "pairs": fourier,
    "more than a panel of features": lambda: fourier(600),
    "identity": lambda: Identity().draw(P),
    "standardized": lambda: Standardized(
        Standardizer(np.arange(P), np.ones(P), np.full(P, 2.0), P), fourier()
    ),
}


def moments(name="pairs", q=2, precision="single", n=50, weights=None):
    rng = np.random.default_rng(1)
    feature_map = MAPS[name]()
    size = feature_map.n_components
    empty = Moments(
        feature_map,
        q,
        precision=precision,
        feature_shift=rng.standard_normal(size),
        target_shift=rng.standard_normal(q),
        target_unit=rng.random(q) + 0.5,
    )
    rule = RowFolds(K, 0)
    blocks = naive.blocks(rng.standard_normal((n, P)), rng.standard_normal((n, q)), weights=weights)
    folds = naive.accumulated(ByFold(rule, empty), blocks)
    index = naive.accumulated(RowIndex(rule), blocks).in_order()
    return MomentsFile(folds, index, {"report": {"rows": n}, "created": "ä"})


@pytest.fixture
def path(tmp_path):
    write_moments(tmp_path / "m.h5", moments())
    return tmp_path / "m.h5"


def refused(path, why=""):
    with pytest.raises(ModelFileError, match=f"is a damaged moments file.*{why}"):
        read_moments(path)


def same(one, other):
    one, other = np.asarray(one), np.asarray(other)
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("name", MAPS)
def test_moments_come_back_bit_for_bit(tmp_path, name, precision):
    written = moments(name, precision=precision, weights=np.random.default_rng(2).random(50))
    write_moments(tmp_path / "m.h5", written)
    read = read_moments(tmp_path / "m.h5")
    before, after = written.folds, read.folds
    assert after.rule.n_folds == K
    assert after.parts.keys() == before.parts.keys()
    for fold, part in before.parts.items():
        again = after.parts[fold]
        assert same(again.gram.dense(), part.gram.dense())
        for name_ in (*SUMS, "feature_shift", "target_shift", "target_unit"):
            assert same(getattr(again, name_), getattr(part, name_))
        assert again.precision == precision
        assert again.feature_map.equals(part.feature_map)
    assert same(read.index.hashes, written.index.hashes)
    assert same(read.index.labels, written.index.labels)
    assert (read.card["report"], read.card["created"]) == ({"rows": 50}, "ä")
    assert (read.card["n_folds"], read.card["n_targets"]) == (K, 2)


def test_a_fold_without_rows_is_no_fold_of_the_file(tmp_path):
    write_moments(tmp_path / "m.h5", moments(n=3))
    assert len(read_moments(tmp_path / "m.h5").folds.parts) == 3


def test_a_triangle_is_packed_and_a_row_takes_nine_bytes(path):
    with h5py.File(path) as file:
        for group in file["folds"].values():
            assert group["gram"].shape == (D * (D + 1) // 2,)
        assert file["index/hashes"].dtype.itemsize + file["index/folds"].dtype.itemsize == 9


def test_the_header_is_read_without_the_sums(path):
    header, whole = read_moments(path, with_folds=False), read_moments(path)
    assert header.card == whole.card
    assert header.folds.parts == {}
    assert len(header.index) == 0
    assert same(header.folds.empty.feature_shift, whole.folds.empty.feature_shift)


def test_products_of_all_targets_as_version_1_has_them_are_read(path):
    whole = read_moments(path)
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = 1
        for group in file["folds"].values():
            squares = group["target"][:]
            del group["target"]
            group["target"] = np.diag(squares) + np.array([[0.0, 0.3], [0.3, 0.0]])
    found = read_moments(path)
    for fold, part in whole.folds.parts.items():
        assert np.array_equal(found.folds.parts[fold].target, part.target)


FOLD = [f"folds/1/{name}" for name in ("gram", *SUMS)]
PARTS = ["map", "shifts", "folds", "folds/0", "index", "index/folds"]


@pytest.mark.parametrize("part", [*PARTS, *FOLD, "shifts/target_unit", "index/hashes"])
def test_a_part_that_is_missing_or_of_another_shape_or_kind_is_refused(path, part):
    whole = path.read_bytes()
    for change in ["missing", "longer", "text", "group"][: 1 if part in PARTS else None]:
        path.write_bytes(whole)
        with h5py.File(path, "r+") as file:
            values = None if part in PARTS else file[part][()]
            del file[part]
            if change == "longer":
                file[part] = np.stack([values, values])
            elif change == "text":
                file[part] = np.full(np.shape(values), b"a")
            elif change == "group":
                file.create_group(part)
        refused(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["folds/1/gram", "folds/0/cross", "folds/2/weight"])
def test_sums_that_are_not_finite_are_refused(path, part, value):
    with h5py.File(path, "r+") as file:
        file[part][(0,) * file[part].ndim] = value
    refused(path, "not finite")


CHANGES = {
    "a hash out of order": lambda file: file["index/hashes"].write_direct(
        file["index/hashes"][()][::-1].copy()
    ),
    "a row in another fold": lambda file: file["index/folds"].write_direct(
        (file["index/folds"][()] + (np.arange(50) == 0)).astype("u1") % K
    ),
    "more rows": lambda file: file["folds/1/n_rows"].write_direct(np.array(77)),
    "a fold of no number": lambda file: file.move("folds/1", "folds/9"),
    "a negative fold": lambda file: file.move("folds/1", "folds/-1"),
    "a negative weight": lambda file: file["folds/1/weight"].write_direct(np.array(-1.0)),
    "a unit of nought": lambda file: file["shifts/target_unit"].write_direct(np.zeros(2)),
}


@pytest.mark.parametrize("change", list(CHANGES.values()), ids=list(CHANGES))
def test_an_index_that_does_not_tell_of_the_folds_is_refused(path, change):
    with h5py.File(path, "r+") as file:
        change(file)
    refused(path)


COUNTS = [{"n_folds": 0}, {"n_folds": 2}, {"n_folds": "four"}, {"n_targets": 3}, {"n_targets": 0}]


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_a_card_with_counts_that_cannot_be_is_refused(path, counts):
    with h5py.File(path, "r+") as file:
        card = json.loads(file["card"].asstr()[()])
        del file["card"]
        file["card"] = fixed(json.dumps(card | counts))
    refused(path)
