"""Model files: what was fitted comes back bit for bit, and nothing damaged is used."""

from __future__ import annotations

import ast
import io
import json
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest

import streamkern
from streamkern.errors import ModelFileError, OutputError
from streamkern.features import Identity, RandomFourierFeatures, Standardized
from streamkern.features.standardized import Standardizer
from streamkern.kernels import Gaussian, Laplacian, Matern
from streamkern.models.component_files import read_components, write_components
from streamkern.models.ensemble_files import EnsembleFile, read_ensemble, write_ensemble
from streamkern.models.model_files import ModelFile, read_model, write_model
from streamkern.models.moments_files import MomentsFile, read_moments, write_moments
from streamkern.predict.deviation import Deviation
from streamkern.predict.ensemble import Ensemble, Round
from streamkern.predict.predictor import Predictor
from streamkern.predict.principal_components import PrincipalComponents
from streamkern.solve import NormalEquations
from streamkern.statistics import ByFold, Moments, RowFolds, RowIndex
from streamkern.statistics.triangle import Triangle
from streamkern.storage import holds_components, holds_ensemble, holds_moments
from streamkern.storage.untrusted import fixed

P, D = 5, 16
CARD = {"report": {"rows": 3, "alpha": 0.1}, "created": "ä"}


def standardized(inner):
    rng = np.random.default_rng(2)
    scaled = Standardizer(np.array([0, 2, 3]), rng.standard_normal(3), rng.random(3) + 0.1, P)
    return Standardized(scaled, inner.draw(3))


MAPS = {
    "orthogonal pairs": lambda: RandomFourierFeatures(Gaussian(0.7), D).draw(P),
    "independent phases": lambda: RandomFourierFeatures(
        Laplacian(1 / 3), 15, orthogonal=False, paired=False, random_state=7
    ).draw(P),
    "a length scale per input": lambda: RandomFourierFeatures(
        Matern((0.1, 0.2, 0.3, 0.4, 0.5), nu=1.5), D
    ).draw(P),
    "standardized": lambda: standardized(RandomFourierFeatures(Gaussian(1.0), 8)),
    "standardized identity": lambda: standardized(Identity()),
}


def predictor(name="orthogonal pairs", q=2, precision="single", *, flat=False):
    feature_map = MAPS[name]()
    rng = np.random.default_rng(1)
    coef = rng.standard_normal((feature_map.n_components, q))
    return Predictor(feature_map, coef, rng.standard_normal(q), precision, flat)


def model(name="orthogonal pairs", q=2, precision="single", *, intercept=True):
    """A model with its normal equations."""
    function = predictor(name, q, precision)
    order, rng = len(function.coef), np.random.default_rng(4)
    gram = Triangle(order, np.float32 if precision == "single" else np.float64)
    gram.add(np.eye(order) + (rows := rng.standard_normal((order, order))) + rows.T)
    mean = rng.standard_normal(order) if intercept else np.zeros(order)
    vectors = rng.random(q) + 0.1, 10.0, rng.random(q) + 1, rng.random(q)
    return ModelFile(function, CARD, NormalEquations(gram, mean, *vectors, intercept, 1e-6))


def components():
    rng, feature_map = np.random.default_rng(0), MAPS["orthogonal pairs"]()
    directions = np.linalg.qr(rng.standard_normal((D, 3)))[0].T.copy()
    variance = np.array([3.0, 2.0, 1.0])
    return PrincipalComponents(feature_map, rng.random(D), directions, variance, 9.0, 40.0)


def ensemble():
    return Ensemble("discrete", 3, tuple(Round(predictor(q=3), step) for step in (0.5, 0.25)))


def moments():
    rule, feature_map = RowFolds(4, 0), MAPS["orthogonal pairs"]()
    return MomentsFile(ByFold(rule, Moments(feature_map, 2)), RowIndex(rule), CARD)


# What is written and how it is read, how a file of the kind is called, and what writes it.
FILES = {
    "model": (
        lambda path, **options: write_model(path, model(), **options),
        read_model, "model", "streamkern fit",
    ),
    "moments": (
        lambda path, **options: write_moments(path, moments(), **options),
        lambda path: read_moments(path, with_folds=False), "moments file", "streamkern moments",
    ),
    "components": (
        lambda path, **options: write_components(path, components(), CARD, **options),
        read_components, "PCA", "streamkern pca",
    ),
    "ensemble": (
        lambda path, **options: write_ensemble(path, EnsembleFile(ensemble(), CARD), **options),
        read_ensemble, "boosted classifier", "streamkern fit --boost",
    ),
}  # fmt: skip
every_kind = pytest.mark.parametrize("kind", list(FILES))


@pytest.fixture
def path(tmp_path):
    write_model(tmp_path / "m.h5", model())
    return tmp_path / "m.h5"


@pytest.fixture
def file_of(tmp_path):
    """A file of a kind, how it is read, and the beginning of what is said of a damaged one."""

    def made(kind):
        write, read, name, command = FILES[kind]
        write(tmp_path / "m.h5")
        return tmp_path / "m.h5", read, name, command

    return made


def change(path, part, value):
    """Replace a part of a file, or remove it, or change the last number of it."""
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


def refused(path, read=read_model, name="model"):
    with pytest.raises(
        ModelFileError,
        match=rf"m\.h5 is a damaged {name} \(.*\); copy it again|is not declared here",
    ) as error:
        read(path)
    assert "\n" not in str(error.value)


def same(one, other):
    one, other = np.asarray(one), np.asarray(other)
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("name", MAPS)
def test_a_model_comes_back_bit_for_bit(tmp_path, name, precision, intercept):
    written = model(name, precision=precision, intercept=intercept)
    write_model(tmp_path / "m.h5", written)
    read = read_model(tmp_path / "m.h5")
    before, after = written.predictor, read.predictor
    assert same(after.coef, before.coef)
    assert same(after.intercept, before.intercept)
    assert (after.precision, after.flat) == (before.precision, before.flat)
    assert type(after.feature_map) is type(before.feature_map)
    assert after.feature_map.parameters() == before.feature_map.parameters()
    arrays = after.feature_map.arrays()
    assert arrays.keys() == before.feature_map.arrays().keys()
    assert all(same(arrays[key], array) for key, array in before.feature_map.arrays().items())
    X = np.random.default_rng(3).standard_normal((40, P))
    assert same(after.predict(X), before.predict(X))
    mine, theirs = read.equations, written.equations
    for key, value in vars(theirs).items():
        assert key == "gram" or same(getattr(mine, key), value)
    assert same(mine.gram.packed(), theirs.gram.packed())
    one, other = (
        Deviation.of(before.feature_map, each).standard_deviations(X) for each in (mine, theirs)
    )
    assert same(one, other)


def test_the_card_comes_back_also_from_a_file_that_is_written_again(path, tmp_path):
    first = read_model(path)
    assert (first.card["report"], first.card["created"]) == (CARD["report"], "ä")
    assert first.card["map"] == "fourier"
    write_model(tmp_path / "n.h5", first)
    again = read_model(tmp_path / "n.h5")
    assert again.card == first.card
    assert same(again.predictor.coef, first.predictor.coef)


def test_a_flat_model_predicts_flat_after_loading(tmp_path):
    write_model(tmp_path / "m.h5", ModelFile(predictor(q=1, flat=True), {}))
    assert read_model(tmp_path / "m.h5").predictor.predict(np.zeros((4, P))).shape == (4,)


def test_a_matrix_of_several_panels_comes_back(tmp_path):
    feature_map = RandomFourierFeatures(Gaussian(0.7), 600).draw(P)
    function = Predictor(feature_map, np.zeros((600, 1)), np.zeros(1))
    gram = Triangle(600, np.float32)
    gram.add(np.random.default_rng(0).standard_normal((600, 600)))
    fields = vars(model(q=1).equations) | {"gram": gram, "feature_mean": np.zeros(600)}
    write_model(tmp_path / "m.h5", ModelFile(function, {}, NormalEquations(**fields)))
    assert same(read_model(tmp_path / "m.h5").equations.gram.packed(), gram.packed())


def test_a_model_without_normal_equations_is_smaller_and_says_so(tmp_path, path):
    assert read_model(path).equations is not None
    write_model(tmp_path / "compact.h5", ModelFile(predictor(), {}))
    assert read_model(tmp_path / "compact.h5").equations is None
    difference = path.stat().st_size - (tmp_path / "compact.h5").stat().st_size
    assert difference > 4 * D * (D + 1) / 2


def test_normal_equations_that_are_not_wanted_are_not_read(path):
    change(path, "equations/gram", lambda array: np.full_like(array, np.nan))
    read = read_model(path, with_equations=False)
    assert read.equations is None
    assert np.array_equal(read.predictor.coef, predictor().coef)


def test_components_and_rounds_come_back_bit_for_bit(tmp_path):
    write_components(tmp_path / "c.h5", components(), CARD)
    found, card = read_components(tmp_path / "c.h5")
    assert card["created"] == "ä"
    for name, value in vars(components()).items():
        assert name == "feature_map" or same(getattr(found, name), value)
    write_ensemble(tmp_path / "e.h5", EnsembleFile(ensemble(), CARD))
    read = read_ensemble(tmp_path / "e.h5").ensemble
    assert (read.algorithm, read.n_classes) == ("discrete", 3)
    for mine, theirs in zip(read.rounds, ensemble().rounds, strict=True):
        assert mine.step == theirs.step
        assert same(mine.predictor.coef, theirs.predictor.coef)


@every_kind
def test_an_existing_file_is_kept_unless_forced(file_of, kind):
    path, read, *_ = file_of(kind)
    path.write_bytes(b"old")
    with pytest.raises(OutputError, match="exists already"):
        FILES[kind][0](path)
    assert path.read_bytes() == b"old"
    FILES[kind][0](path, force=True)
    read(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["m.h5"]


# Nothing that could run.


def test_no_module_imports_a_library_that_loads_code():
    never = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
    found = {}
    for module in Path(streamkern.__file__).parent.rglob("*.py"):
        tree = ast.parse(module.read_text())
        names = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
        names += [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        found[module] = never & {name.split(".")[0] for name in names}
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert ast.literal_eval(node.value) is False, module
    assert len(found) > 20
    assert not {name: used for name, used in found.items() if used}


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
    assert "map/frequencies" in kinds or "rounds/1/map/frequencies" in kinds


# What is refused.


@every_kind
def test_a_file_of_another_kind_is_refused_with_what_it_is(file_of, kind, tmp_path):
    path, _, name, _ = file_of(kind)
    for other, (_, read, wanted, command) in FILES.items():
        if other != kind:
            message = f"is a streamkern {name}, not a {wanted}; give a file that `{command}` wrote"
            with pytest.raises(ModelFileError, match=message):
                read(path)
    holds = {"moments": holds_moments, "components": holds_components, "ensemble": holds_ensemble}
    assert [k for k, each in holds.items() if each(path)] == [kind] * (kind != "model")
    assert not any(each(tmp_path / "none.h5") for each in holds.values())


@every_kind
def test_a_file_that_was_cut_short_is_refused(file_of, kind):
    path, read, name, _ = file_of(kind)
    whole = path.read_bytes()
    for length in (0, *(len(whole) * tenth // 10 for tenth in (1, 5, 9)), len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=rf"(was cut short|is not a streamkern {name})"):
            read(path)
    assert length == len(whole) - 1
    with pytest.raises(ModelFileError, match="was cut short: it is smaller than its header says"):
        read(path)


@every_kind
@pytest.mark.parametrize("version", ["two", [1, 1], 0, None, 3])
def test_a_format_version_that_is_newer_or_none_is_refused(file_of, kind, version):
    path, read, name, _ = file_of(kind)
    with h5py.File(path, "r+") as file:
        newest = file.attrs["format_version"]
        del file.attrs["format_version"]
        if version is not None:
            file.attrs["format_version"] = version
    if version != 3:
        return refused(path, read, name)
    message = f"format version 3, but this streamkern reads up to {newest}; install a newer"
    with pytest.raises(ModelFileError, match=message):
        read(path)
    return None


@every_kind
def test_a_file_that_is_none_of_ours_is_refused(file_of, kind):
    path, read, name, command = file_of(kind)
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
        with pytest.raises(ModelFileError, match="does not exist or is not a file"):
            read(missing)


TEXTS = ["", "{", '{"map": "fourier"', "[]", "3", "null", "{}", '{"map": []}', "\ud800"]


@every_kind
def test_a_damaged_card_is_refused(file_of, kind):
    path, read, name, _ = file_of(kind)
    for text in TEXTS:
        change(path, "card", np.bytes_(text.encode("utf-8", "surrogatepass") or b"\xff"))
        refused(path, read, name)
    change(path, "card", np.zeros(3))
    refused(path, read, name)


CARDS = {
    "unknown map": {"map": "os.system"},
    "map that is no name": {"map": 3},
    "map without parameters": {"map_parameters": {}},
    "parameters that are no object": {"map_parameters": "all"},
    "unknown parameter": {"map_parameters": {"import": "os"}},
    "number of features that is none": {"map_parameters": {"n_components": -1}},
    "other number of features": {"map_parameters": {"n_components": 32}},
    "unknown kernel": {"map_parameters": {"kernel": "os.system"}},
    "length scale that is none": {"map_parameters": {"kernel_parameters": {"length_scale": -1}}},
    "unknown precision": {"precision": "quadruple"},
}


@pytest.mark.parametrize("values", list(CARDS.values()), ids=list(CARDS))
@pytest.mark.parametrize("kind", ["model", "moments", "components"])
def test_a_card_with_values_that_cannot_be_is_refused(file_of, kind, values):
    path, read, name, _ = file_of(kind)
    change_card(path, values)
    refused(path, read, name)


FACTS = [{"algorithm": "os.system"}, {"n_classes": 1}, {"n_classes": "three"}, {"n_classes": 4}]
FACTS += [{"rounds": []}, {"rounds": [{"step": 1.0}]}]
STEPS = [{"step": -1.0}, {"step": None}, {"precision": "quadruple"}, {"map": "os.system"}]


@pytest.mark.parametrize("facts", FACTS + STEPS, ids=str)
def test_a_card_of_rounds_that_cannot_be_is_refused(file_of, facts):
    path, read, name, _ = file_of("ensemble")
    with h5py.File(path) as file:
        described = json.loads(file["card"].asstr()[()])["ensemble"]
    if facts in STEPS:
        facts = {"rounds": [{**described["rounds"][0], **facts}, described["rounds"][1]]}
    change_card(path, {"ensemble": facts})
    refused(path, read, name)


# Arrays of other shapes, and numbers that cannot be; of every part besides: none, text, a group.
TRIANGLE = D * (D + 1) // 2
ARRAYS = {
    "coef": [np.zeros(D), np.zeros((D - 1, 2)), np.zeros((D, 3)), np.zeros((0, 2))],
    "intercept": [np.zeros(3), np.zeros((2, 1)), np.float64(0)],
    "map/frequencies": [np.zeros((7, P)), np.zeros(8), np.float64(0)],
    "map/phases": [np.zeros(7), np.zeros((8, 1))],
    "equations/gram": [np.zeros(TRIANGLE - 1), np.zeros((TRIANGLE, 1)), np.float64(1)],
    "equations/feature_mean": [np.zeros(D - 1), np.zeros((D, 1)), np.float64(0)],
    "equations/alphas": [np.zeros(1), np.zeros(3), np.zeros((2, 1)), np.array([1.0, -1.0])],
    "equations/effective_dof": [np.zeros(1), np.zeros((1, 2)), np.array([1.0, -1.0])],
    "equations/train_rss": [np.zeros(0), np.zeros(5), np.array([1.0, -1.0])],
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
WRONG = [("model", part, value) for part, values in ARRAYS.items() for value in values]
WRONG += [("components", part, value) for part, values in COMPONENTS.items() for value in values]


def last_is(value):
    def changed(array):
        array = np.array(array, dtype=float)
        array.flat[-1] = value
        return array

    return changed


@pytest.mark.parametrize(("kind", "part", "value"), WRONG)
def test_arrays_of_other_shapes_and_numbers_that_cannot_be_are_refused(file_of, kind, part, value):
    path, read, name, _ = file_of(kind)
    change(path, part, value)
    refused(path, read, name)
    if part.startswith("equations"):
        assert read_model(path, with_equations=False).equations is None


PARTS = [("model", part) for part in (*ARRAYS, "map")] + [("components", p) for p in COMPONENTS]
PARTS += [("ensemble", f"rounds/1{part}") for part in ("", "/map", "/coef", "/intercept")]


@pytest.mark.parametrize(("kind", "part"), PARTS)
def test_a_part_that_is_missing_or_no_finite_numbers_is_refused(file_of, kind, part):
    path, read, name, _ = file_of(kind)
    whole = path.read_bytes()
    with h5py.File(path) as file:
        is_array = isinstance(file[part], h5py.Dataset)
    values = [lambda array: np.full(array.shape, b"a"), "group", last_is(np.nan), last_is(np.inf)]
    missing = [] if part.endswith("row_weight") else [None]
    for value in missing + values * is_array:
        path.write_bytes(whole)
        change(path, part, value)
        refused(path, read, name)


def test_a_link_or_an_array_in_the_place_of_a_group_is_refused(path):
    whole = path.read_bytes()
    change(path, "coef", h5py.ExternalLink("none.h5", "coef"))
    refused(path)
    path.write_bytes(whole)
    change(path, "equations", np.zeros(3))
    refused(path)
