"""Moments files: sums come back bit for bit, and nothing damaged or mistaken is used."""

from __future__ import annotations

import io
import json
import pickle

import h5py
import naive
import numpy as np
import pytest

from streamkern.errors import ModelFileError, OutputError
from streamkern.features import Identity, RandomFourierFeatures, Standardized, Standardizer
from streamkern.kernels import Gaussian
from streamkern.models.model_files import ModelFile, read_model, write_model
from streamkern.models.moments_files import MomentsFile, read_moments, write_moments
from streamkern.predict.predictor import Predictor
from streamkern.statistics import ByFold, Moments, RowFolds, RowIndex
from streamkern.storage import holds_moments
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
        assert again.gram.dense().tobytes() == part.gram.dense().tobytes()
        for sums in SUMS:
            assert np.asarray(getattr(again, sums)).tobytes() == (
                np.asarray(getattr(part, sums)).tobytes()
            )
        assert again.precision == precision
        assert again.feature_map.equals(part.feature_map)
        for shift in ("feature_shift", "target_shift", "target_unit"):
            assert getattr(again, shift).tobytes() == getattr(part, shift).tobytes()
    assert read.index.hashes.tobytes() == written.index.hashes.tobytes()
    assert read.index.labels.tobytes() == written.index.labels.tobytes()
    assert read.index.labels.dtype == written.index.labels.dtype


def test_the_card_comes_back(path):
    card = read_moments(path).card
    assert card["report"] == {"rows": 50}
    assert card["created"] == "ä"
    assert (card["map"], card["n_folds"], card["n_targets"]) == ("fourier", K, 2)


def test_a_fold_without_rows_is_no_fold_of_the_file(tmp_path):
    write_moments(tmp_path / "m.h5", moments(n=3))
    assert len(read_moments(tmp_path / "m.h5").folds.parts) == 3


def test_a_triangle_is_packed_and_a_row_takes_nine_bytes(path):
    with h5py.File(path) as file:
        for group in file["folds"].values():
            assert group["gram"].shape == (D * (D + 1) // 2,)
        assert file["index/hashes"].dtype.itemsize + file["index/folds"].dtype.itemsize == 9


def test_the_header_is_read_without_the_sums(path):
    header = read_moments(path, with_folds=False)
    whole = read_moments(path)
    assert header.card == whole.card
    assert header.folds.parts == {}
    assert len(header.index) == 0
    assert header.folds.empty.feature_shift.tobytes() == whole.folds.empty.feature_shift.tobytes()


def test_existing_moments_are_kept_unless_forced(path):
    before = path.read_bytes()
    with pytest.raises(OutputError, match="exists already"):
        write_moments(path, moments("identity"))
    assert path.read_bytes() == before
    write_moments(path, moments("identity"), force=True)
    assert read_moments(path).card["map"] == "identity"
    assert [entry.name for entry in path.parent.iterdir()] == ["m.h5"]


def test_moments_are_written_and_read_without_pickle(tmp_path, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("pickle was used")

    made = moments()
    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, never)
    write_moments(tmp_path / "m.h5", made)
    read_moments(tmp_path / "m.h5")


def test_a_moments_file_holds_numbers_and_one_text(path):
    kinds = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: (
                kinds.update({name: item.dtype}) if isinstance(item, h5py.Dataset) else None
            )
        )
        json.loads(file["card"].asstr()[()])
    assert h5py.check_string_dtype(kinds.pop("card"))
    assert {kind.kind for kind in kinds.values()} == {"f", "i", "u"}


# What is refused.


def test_a_model_is_not_moments_nor_are_moments_a_model(tmp_path, path):
    predictor = Predictor(fourier(), np.zeros((D, 1)), np.zeros(1))
    write_model(tmp_path / "model.h5", ModelFile(predictor, {}))
    with pytest.raises(ModelFileError, match=r"is a streamkern model, not a moments file; .*ments"):
        read_moments(tmp_path / "model.h5")
    with pytest.raises(ModelFileError, match=r"is a streamkern moments file, not a model; .*fit"):
        read_model(path)
    assert holds_moments(path)
    assert not holds_moments(tmp_path / "model.h5")
    assert not holds_moments(tmp_path / "none.h5")


@pytest.mark.parametrize("tenth", range(10))
def test_moments_cut_short_are_refused(path, tenth):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * tenth // 10])
    with pytest.raises(ModelFileError, match=r"m\.h5 (was cut short|is not a streamkern moments)"):
        read_moments(path)


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


def test_a_newer_format_is_refused_with_both_versions(path):
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = 3
    with pytest.raises(ModelFileError, match=r"format version 3, but .* up to 2; install a newer"):
        read_moments(path)


@pytest.mark.parametrize("version", ["two", [1, 1], 0, None])
def test_a_format_version_that_is_none_is_refused(path, version):
    with h5py.File(path, "r+") as file:
        del file.attrs["format_version"]
        if version is not None:
            file.attrs["format_version"] = version
    with pytest.raises(ModelFileError, match=r"m\.h5 is a damaged moments file"):
        read_moments(path)


@pytest.mark.parametrize("content", [b"", b"a,b\n", pickle.dumps([1]), b"\x00" * 10_000])
def test_a_file_that_is_not_hdf5_is_refused(tmp_path, content):
    (tmp_path / "m.h5").write_bytes(content)
    with pytest.raises(
        ModelFileError, match=r"not a streamkern moments file .* `streamkern moments`"
    ):
        read_moments(tmp_path / "m.h5")


@pytest.mark.parametrize("mark", [None, "other", 3, b"\xff"])
def test_a_data_file_is_not_moments(tmp_path, mark):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["X"] = np.zeros((3, 2))
        if mark is not None:
            file.attrs["format"] = mark
    with pytest.raises(ModelFileError, match="is HDF5 but not a streamkern moments file"):
        read_moments(tmp_path / "m.h5")


@pytest.mark.parametrize("name", ["none.h5", "."])
def test_a_missing_file_or_a_folder_is_refused(tmp_path, name):
    with pytest.raises(ModelFileError, match="does not exist or is not a file"):
        read_moments(tmp_path / name)


PARTS = ["card", "map", "map/frequencies", "shifts", "shifts/target_unit", "folds", "folds/0"]
PARTS += [f"folds/1/{name}" for name in ("gram", *SUMS)] + ["index", "index/hashes", "index/folds"]


@pytest.mark.parametrize("part", PARTS)
def test_moments_with_a_part_missing_are_refused(path, part):
    with h5py.File(path, "r+") as file:
        del file[part]
    with pytest.raises(ModelFileError, match="is a damaged moments file"):
        read_moments(path)


NUMBERS = [f"folds/1/{name}" for name in ("gram", *SUMS)] + ["shifts/feature_shift", "index/hashes"]


@pytest.mark.parametrize("part", NUMBERS)
@pytest.mark.parametrize("change", ["longer", "text", "group"])
def test_arrays_of_another_shape_or_kind_are_refused(path, part, change):
    with h5py.File(path, "r+") as file:
        values = file[part][()]
        del file[part]
        if change == "longer":
            file[part] = np.stack([values, values])
        elif change == "text":
            file[part] = np.full(np.shape(values), b"a")
        else:
            file.create_group(part)
    with pytest.raises(ModelFileError, match="is a damaged moments file"):
        read_moments(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["folds/1/gram", "folds/0/cross", "folds/2/weight"])
def test_sums_that_are_not_finite_are_refused(path, part, value):
    with h5py.File(path, "r+") as file:
        where = () if file[part].ndim == 0 else (0,) * file[part].ndim
        file[part][where] = value
    with pytest.raises(ModelFileError, match=r"is a damaged moments file .* not finite"):
        read_moments(path)


def change_hash(file):
    file["index/hashes"][0] = file["index/hashes"][-1]


def change_fold(file):
    file["index/folds"][0] = (file["index/folds"][0] + 1) % K


def change_count(file):
    file["folds/1/n_rows"][()] = 77


def move_fold(file):
    file.move("folds/1", "folds/9")


def change_unit(file):
    file["shifts/target_unit"][0] = 0.0


@pytest.mark.parametrize("change", [change_hash, change_fold, change_count, move_fold, change_unit])
def test_an_index_that_does_not_tell_of_the_folds_is_refused(path, change):
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(ModelFileError, match="is a damaged moments file"):
        read_moments(path)


CARDS = {
    "unknown map": {"map": "os.system"},
    "no folds": {"n_folds": 0},
    "fewer folds": {"n_folds": 2},
    "folds that are no number": {"n_folds": "four"},
    "more targets": {"n_targets": 3},
    "unknown precision": {"precision": "quadruple"},
    "other number of features": {"map_parameters": {"n_components": 32}},
}


@pytest.mark.parametrize("change", CARDS)
def test_a_card_with_values_that_cannot_be_is_refused(path, change):
    with h5py.File(path, "r+") as file:
        card = json.loads(file["card"].asstr()[()])
        for key, value in CARDS[change].items():
            card[key] = {**card[key], **value} if isinstance(value, dict) else value
        del file["card"]
        file["card"] = fixed(json.dumps(card))
    with pytest.raises(ModelFileError, match=r"is a damaged moments file|is not declared here"):
        read_moments(path)


def test_moments_are_a_plain_hdf5_file_that_says_what_it_is(path):
    with h5py.File(io.BytesIO(path.read_bytes())) as file:
        assert file.attrs["format"] == b"streamkern-moments"
        assert file.attrs["format_version"] == 2
