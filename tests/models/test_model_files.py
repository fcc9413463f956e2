"""Files of models and moments: what was fitted comes back bit for bit, nothing damaged is used."""

import io
import json
import pickle
import re
import tracemalloc
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest

import streamkern
from streamkern import (
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    RandomFeatureClassifier,
    RandomFeatureRidge,
)
from streamkern.errors import ModelFileError
from streamkern.estimators.loading import load_fitted, read_fitted
from streamkern.models.data_moments import load_moments, moments_header
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.registry import fitted_kind
from streamkern.storage.codec import kind_of
from streamkern.storage.untrusted import fixed

P, D = 5, 16
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((60, P)), rng.standard_normal((60, 2))
LABELS = np.array(["ä", "b", "c"])[rng.integers(0, 3, 60)]


def ridge(kernel=Gaussian(0.7), **options):  # noqa: B008
    return RandomFeatureRidge(kernel, **{"n_components": D, "alpha": 0.1} | options)


# What is fitted, how it is read, how a file of the kind is called, and what writes it.
FILES = {
    "model": (
        lambda: ridge().fit(X, Y),
        partial(read_fitted, kind=FittedRidge), "model", "streamkern fit",
    ),
    "classifier": (
        lambda: RandomFeatureClassifier(Gaussian(0.7), n_components=D, alpha=0.1).fit(X, LABELS),
        partial(read_fitted, kind=FittedRidge), "model", "streamkern fit",
    ),
    "components": (
        lambda: streamkern.RandomFeaturePCA(Gaussian(0.7), n_components=3, n_random_features=D)
        .fit(X),
        lambda path: read_fitted(path, fitted_kind("streamkern-pca")), "PCA", "streamkern pca",
    ),
    "ensemble": (
        lambda: streamkern.RandomFeatureAdaBoost(ridge(), n_estimators=2, algorithm="discrete")
        .fit(X, LABELS),
        lambda path: read_fitted(path, fitted_kind("streamkern-boosted-model")),
        "boosted classifier", "streamkern fit --boost",
    ),
    "moments": (
        lambda: ridge(alpha="cv", n_folds=4).moments(X, Y).gathered(),
        load_moments, "moments file", "streamkern moments",
    ),
}  # fmt: skip
every_kind = pytest.mark.parametrize("kind", ["model", "components", "ensemble", "moments"])


@pytest.fixture(scope="module")
def fitted():
    return {kind: fit() for kind, (fit, *_) in FILES.items()}


@pytest.fixture
def file_of(tmp_path, fitted):
    """A file of a kind, how it is read, how it is called, and what writes it."""

    def made(kind):
        fitted[kind].save(tmp_path / "m.h5", force=True)
        return tmp_path / "m.h5", *FILES[kind][1:]

    return made


def change(path, part, value):
    """Replace a part of a file, or remove it, or change what it holds."""
    with h5py.File(path, "r+") as file:
        if callable(value):
            value = value(np.array(file[part]))
        del file[part]
        if isinstance(value, str):
            file.create_group(part)
        elif value is not None:
            file[part] = value


def change_card(path, values):
    with h5py.File(path, "r+") as file:
        card = json.loads(file["card"].asstr()[()])
    for key, value in values.items():
        merge = isinstance(value, dict) and value and isinstance(card[key], dict)
        card[key] = {**card[key], **value} if merge else value
    change(path, "card", fixed(json.dumps(card)))


def refused(path, read, name):
    message = rf"m\.h5 is a damaged {name} \(.*\); copy it again|is not declared here"
    with pytest.raises(ModelFileError, match=message) as error:
        read(path)
    assert "\n" not in str(error.value)


def test_a_kernel_of_a_file_is_no_text_that_grows(file_of):
    path, read, name, _ = file_of("model")
    with h5py.File(path) as file:
        inner = json.loads(file["card"].asstr()[()])["map_parameters"]["inner_parameters"]
    text = {"kernel": "*".join(["gaussian[0-999998]"] * 3), "kernel_parameters": {}}
    for change_of in (
        {"map_parameters": {"inner_parameters": inner | text}},
        {"report": text},
        {"option_kernel": {"name": text["kernel"], "parameters": {}}},
    ):
        file_of("model")
        change_card(path, change_of)
        tracemalloc.start()
        refused(path, read, name)
        assert tracemalloc.get_traced_memory()[1] < 20e6
        tracemalloc.stop()


def same(one, other):
    one, other = np.asarray(one), np.asarray(other)
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {"precision": "double", "fit_intercept": False},
        {"kernel": Laplacian(1 / 3), "n_components": 15, "feature_map": "iid", "paired": False},
        {"kernel": Matern((0.1, 0.2, 0.3, 0.4, 0.5), nu=1.5), "metric": None},
        {"kernel": Linear(), "feature_map": "identity", "precision": "double"},
        {"n_components": 600, "standardize": False, "metric": np.diag(np.arange(1.0, 6.0))},
    ],
    ids=str,
)
def test_a_model_comes_back_bit_for_bit(tmp_path, options):
    written = ridge(**options).fit(X, Y)
    written.save(tmp_path / "m.h5")
    read, card = read_fitted(tmp_path / "m.h5")
    before, after = written.model_.predictor, read.predictor
    assert (after.precision, after.flat) == (before.precision, before.flat)
    assert after.feature_map.equals(before.feature_map)
    assert same(after.coef, before.coef)
    assert same(after.intercept, before.intercept)
    means, deviations = written.predict(X, return_std=True)
    again = read.predict(X, return_std=True)
    assert same(again[0], means)
    assert same(again[1], deviations)
    for key, value in vars(written.model_.equations).items():
        found = getattr(read.equations, key)
        assert same(found.packed(), value.packed()) if key == "gram" else same(found, value)
    again = streamkern.load(tmp_path / "m.h5")
    assert repr(again.get_params()) == repr(written.get_params())
    again.save(tmp_path / "n.h5")
    assert read_fitted(tmp_path / "n.h5")[1] | {"created": ""} == card | {"created": ""}


def test_every_key_of_a_report_is_listed(fitted):
    searched = ridge(alpha="cv", sparse="auto").tune(X, Y, maps="iid")
    left = fitted["moments"].forget(X[:5], Y[:5])
    models = [fitted[kind].report_ for kind in ("model", "classifier", "components", "ensemble")]
    page = Path(__file__).parents[2] / "docs" / "reference" / "reports.md"
    listed = set(re.findall(r"(?m)^\| `(\w+)` ", page.read_text()))
    for report in (*models, searched.report_, left.report):
        assert report.keys() <= listed


# Nothing that could run.


def test_no_module_imports_a_library_that_loads_code():
    loading = re.compile(
        r"^\s*(import|from) (pickle|cloudpickle|dill|joblib|marshal|shelve)\b"
        r"|allow_pickle=(?!False)",
        re.MULTILINE,
    )
    modules = list(Path(streamkern.__file__).parent.rglob("*.py"))
    assert len(modules) > 20
    assert not [module for module in modules if loading.search(module.read_text())]


@every_kind
def test_a_file_is_plain_hdf5_with_numbers_and_one_text_and_no_pickle(file_of, kind, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, never)
    path, read, *_ = file_of(kind)
    read(path)
    kinds = {}
    with h5py.File(io.BytesIO(path.read_bytes())) as file:
        file.visititems(
            lambda name, item: kinds.update({name: item.dtype}) if hasattr(item, "dtype") else None
        )
        json.loads(file["card"].asstr()[()])
        assert file.attrs["format"].startswith(b"streamkern-")
        assert file.attrs["format_version"] == (2 if kind == "moments" else 1)
    assert h5py.check_string_dtype(kinds.pop("card"))
    assert {kind.kind for kind in kinds.values()} <= {"f", "i", "u"}
    assert {"map/inner_frequencies", "rounds/1/map/inner_frequencies"} & set(kinds)


# What is refused.


@every_kind
def test_a_file_of_another_kind_is_refused_with_what_it_is(file_of, kind, tmp_path):
    path, _, name, _ = file_of(kind)
    for _, read, wanted, command in FILES.values():
        if wanted != name:
            message = f"is a streamkern {name}, not a {wanted}; give a file that `{command}` wrote"
            with pytest.raises(ModelFileError, match=message):
                read(path)
    if kind in {"components", "ensemble"}:
        with pytest.raises(ModelFileError, match=f"is a streamkern {name}, not a model"):
            load_fitted(path, "is_linear", "evaluate")
    assert kind_of(path).name == name
    assert kind_of(tmp_path / "none.h5") is None


@every_kind
def test_a_file_that_is_none_of_ours_is_refused(file_of, kind):
    path, read, name, command = file_of(kind)
    whole = path.read_bytes()
    for length in (len(whole) // 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match="is a truncated HDF5 file"):
            read(path)
    for content in (b"", b"a,b\n", pickle.dumps([1]), b"\x00" * 10_000):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=f"is not a streamkern {name} .* `{command}`"):
            read(path)
    for mark in (None, "other", 3, b"\xff"):
        with h5py.File(path, "w") as file:
            file["X"] = np.zeros((3, 2))
            if mark is not None:
                file.attrs["format"] = mark
        with pytest.raises(ModelFileError, match=f"is HDF5 but not a streamkern {name}"):
            read(path)
    for missing in (path.with_name("none.h5"), path.parent):
        with pytest.raises(ModelFileError, match=r"does not exist|is a folder"):
            read(missing)


@every_kind
def test_a_format_version_that_is_newer_or_none_is_refused(file_of, kind):
    path, read, name, _ = file_of(kind)
    for version in ("two", [1, 1], 0, None, 3):
        with h5py.File(path, "r+") as file:
            file.attrs.pop("format_version", None)
            if version is not None:
                file.attrs["format_version"] = version
        if version != 3:
            refused(path, read, name)
    newest = 2 if kind == "moments" else 1
    message = f"format version 3, but this streamkern reads up to {newest}; install a newer"
    with pytest.raises(ModelFileError, match=message):
        read(path)


TEXTS = ["", "{", '{"map": "fourier"', "[]", "3", "null", "{}", '{"map": []}', "\ud800"]


@every_kind
def test_a_damaged_card_is_refused(file_of, kind):
    path, read, name, _ = file_of(kind)
    for text in TEXTS:
        change(path, "card", np.bytes_(text.encode("utf-8", "surrogatepass") or b"\xff"))
        refused(path, read, name)
    change(path, "card", np.zeros(3))
    refused(path, read, name)


OF_MAPS = [
    {"map": "os.system"},
    {"map": 3},
    {"map_parameters": {"inner_parameters": {}}},
    {"map_parameters": {"inner": "os.system"}},
    {"map_parameters": "all"},
    {"precision": "quadruple"},
]
OF_OPTIONS = [{"feature_names": names} for names in (["width"], [*"abcd", 5], 7)]
OF_OPTIONS += [{"options": {"import": "os"}}, {"report": {"kernel": "os.system"}}]
CARDS = {
    "model": [*OF_MAPS, *OF_OPTIONS, {"option_kernel": {"name": "os.system"}}],
    "classifier": [
        {"classifier": {"calibration": "sigmold"}},
        {"classifier": {"option_calibration": "sigmold"}},
        {"classifier": {"class_factors": [1]}},
        {"classifier": {"classes": {"kind": "text", "values": ["a", "b"]}}},
    ],
    "components": [*OF_MAPS, *OF_OPTIONS],
    "ensemble": [
        *OF_OPTIONS,
        *({"ensemble": {"algorithm": name}} for name in ("os.system", "real")),
        *({"ensemble": {"n_classes": K}} for K in (1, "three", 4)),
        *({"ensemble": {"rounds": rounds}} for rounds in ([], [{"step": 1.0}])),
    ],
    "moments": [
        *OF_MAPS,
        *({"n_folds": K} for K in (0, 2, "four")),
        *({"n_targets": q} for q in (0, 3)),
        *({"report": {"feature_names": names}} for names in (["width"], [*"abcd", 5])),
        *({"report": {"rows": n}} for n in (59, "many")),
        {"kernel": {"name": "os.system"}},
    ],
}


@pytest.mark.parametrize("kind", ["model", "moments"])
@pytest.mark.parametrize(
    ("gone", "last"),
    [("sketch", "27 November 2026"), ("binning", "28 November 2026"), ("chosen", "28 November")],
)
def test_a_map_that_is_gone_is_refused_with_the_version_that_reads_it(file_of, kind, gone, last):
    path, read, *_ = file_of(kind)
    change_card(path, {"map_parameters": {"inner": gone}})
    sentence = (
        rf"^the map '{gone}' of the file is gone: streamkern 0\.1\.0 of {last}.* reads the file"
    )
    with pytest.raises(ModelFileError, match=sentence):
        read(path)


@pytest.mark.parametrize("kind", CARDS)
def test_a_card_with_values_that_cannot_be_is_refused(file_of, kind):
    path, read, name, _ = file_of(kind)
    read(path)
    whole = path.read_bytes()
    for values in CARDS[kind]:
        path.write_bytes(whole)
        change_card(path, values)
        refused(path, read, name)


@pytest.mark.parametrize("values", [{"step": -1.0}, {"step": None}, {"precision": "quadruple"}])
def test_a_round_that_cannot_be_is_refused(file_of, values):
    path, read, name, _ = file_of("ensemble")
    with h5py.File(path) as file:
        first, second = json.loads(file["card"].asstr()[()])["ensemble"]["rounds"]
    change_card(path, {"ensemble": {"rounds": [first | values, second]}})
    refused(path, read, name)


# Arrays of other shapes, and numbers that cannot be; of every part besides: none, text, a group.
TRIANGLE = D * (D + 1) // 2
ARRAYS = {
    "coef": [np.zeros(D), np.zeros((D - 1, 2)), np.zeros((0, 2))],
    "intercept": [np.zeros(3), np.float64(0)],
    "map/inner_frequencies": [np.zeros((7, P)), np.float64(0)],
    "equations/gram": [np.zeros(TRIANGLE - 1), np.zeros((TRIANGLE, 1))],
    "equations/feature_mean": [np.zeros(D - 1), np.float64(0)],
    "equations/alphas": [np.zeros(3), np.zeros((2, 1)), np.array([1.0, -1.0])],
    "equations/effective_dof": [np.zeros(1), np.array([1.0, -1.0])],
    "equations/train_rss": [np.zeros(0), np.array([1.0, -1.0])],
    "equations/weight": [np.zeros(2), np.float64(0), np.float64(-1)],
    "equations/intercept": [np.zeros(2)],
    "equations/floor": [np.zeros(2)],
    "equations/row_weight": [np.float64(0), np.float64(1.5)],
}
COMPONENTS = {
    "components": [np.zeros((3, D - 1)), np.zeros((0, D)), np.zeros(D), np.ones((3, D), int)],
    "mean": [np.zeros(D - 1)],
    "explained_variance": [np.ones(2), np.array([1.0, 1.0, -1.0])],
    "total_variance": [np.float64(0), np.ones(1)],
    "weight": [np.float64(1)],
}
SUMS = ("gram", "cross", "target", "target_sum", "weight", "n_rows")
MOMENTS = {f"folds/1/{name}": [lambda array: np.stack([array] * 2)] for name in SUMS} | {
    "folds/1/weight": [np.float64(-1)],
    "folds/1/n_rows": [np.array(77)],
    "shifts/target_unit": [np.zeros(2), np.ones(3)],
    "index/hashes": [lambda hashes: hashes[::-1], lambda hashes: hashes[1:]],
    "index/folds": [lambda folds: np.minimum(folds, 2), lambda folds: folds + 4],
}
ROUNDS = dict.fromkeys(f"rounds/1/{name}" for name in ("coef", "intercept"))
PARTS = {"model": ARRAYS, "components": COMPONENTS, "moments": MOMENTS, "ensemble": ROUNDS}
GROUPS = {
    "model": ["map"],
    "moments": ["map", "shifts", "folds", "folds/0", "index"],
    "ensemble": ["rounds/1", "rounds/1/map"],
}


def last_is(value):
    def changed(array):
        array = np.array(array, dtype=float)
        array.flat[-1] = value
        return array

    return changed


@pytest.mark.parametrize(
    ("kind", "part"), [(k, part) for k, parts in PARTS.items() for part in parts]
)
def test_an_array_that_is_missing_or_cannot_be_is_refused(file_of, kind, part):
    path, read, name, _ = file_of(kind)
    read(path)
    whole = path.read_bytes()
    values = [lambda array: np.full(array.shape, b"a"), "group", last_is(np.nan), last_is(np.inf)]
    values += [] if part.endswith("row_weight") else [None]
    for value in values + (PARTS[kind][part] or []):
        path.write_bytes(whole)
        change(path, part, value)
        refused(path, read, name)
        if part.startswith("equations"):
            assert load_fitted(path, with_equations=False).equations is None


@pytest.mark.parametrize("kind", GROUPS)
def test_a_group_that_is_missing_is_refused(file_of, kind):
    for part in GROUPS[kind]:
        path, read, name, _ = file_of(kind)
        change(path, part, None)
        refused(path, read, name)


@pytest.mark.parametrize("name", ["9", "-1"])
def test_a_fold_of_no_number_is_refused(file_of, name):
    path, read, kind, _ = file_of("moments")
    with h5py.File(path, "r+") as file:
        file.move("folds/1", f"folds/{name}")
    refused(path, read, kind)


def test_a_link_or_an_array_in_the_place_of_a_group_is_refused(file_of):
    path, read, name, _ = file_of("model")
    whole = path.read_bytes()
    change(path, "coef", h5py.ExternalLink("none.h5", "coef"))
    refused(path, read, name)
    path.write_bytes(whole)
    change(path, "equations", np.zeros(3))
    refused(path, read, name)


# Moments.


@pytest.mark.parametrize(
    "options", [{}, {"precision": "double", "kernel": Linear(), "feature_map": "identity"}], ids=str
)
def test_moments_come_back_bit_for_bit(tmp_path, options):
    weights = np.random.default_rng(2).random(60)
    before = ridge(n_folds=4, alpha="cv", **options).moments(X, Y, weights)
    before.save(tmp_path / "m.h5")
    after = load_moments(tmp_path / "m.h5")
    before = before.gathered()
    assert after.n_folds == after.folds.rule.n_folds == 4
    assert after.folds.parts.keys() == before.folds.parts.keys()
    for fold, part in before.folds.parts.items():
        again = after.folds.parts[fold]
        assert same(again.gram.packed(), part.gram.packed())
        for name in (*SUMS[1:], "feature_shift", "target_shift", "target_unit"):
            assert same(getattr(again, name), getattr(part, name))
        assert again.precision == part.precision
        assert again.feature_map.equals(part.feature_map)
    assert same(after.index.hashes, before.index.hashes)
    assert same(after.index.labels, before.index.labels)
    assert after.report == before.report
    assert after.options.parameters() == before.options.parameters()


def test_a_fold_without_rows_is_no_fold_of_the_file(tmp_path):
    found = ridge(n_folds=4, alpha="cv", standardize=False).moments(X, Y)
    ridge().moments(X[:3], Y[:3], like=found).save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5") as file:
        assert len(file["folds"]) < 4
    assert load_moments(tmp_path / "m.h5").report["rows"] == 3


def test_the_header_is_read_without_the_sums(file_of):
    path, *_ = file_of("moments")
    change(path, "folds/1/gram", lambda array: np.full_like(array, np.nan))
    header = moments_header(path)
    assert header.report["rows"] == 60
    assert header.folds.parts == {}
    assert len(header.index) == 0


def test_products_of_all_targets_as_version_1_has_them_are_read(file_of):
    path, *_ = file_of("moments")
    whole = load_moments(path)
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = 1
        for group in file["folds"].values():
            squares = group["target"][:]
            del group["target"]
            group["target"] = np.diag(squares) + np.array([[0.0, 0.3], [0.3, 0.0]])
    found = load_moments(path)
    for fold, part in whole.folds.parts.items():
        assert np.array_equal(found.folds.parts[fold].target, part.target)
