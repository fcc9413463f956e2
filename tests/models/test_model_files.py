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
from streamkern.models.model_files import ModelFile, read_model, write_model
from streamkern.predict.deviation import Deviation
from streamkern.predict.predictor import Predictor
from streamkern.solve import NormalEquations
from streamkern.statistics.triangle import Triangle
from streamkern.storage.untrusted import fixed

P = 5


def standardized(inner):
    rng = np.random.default_rng(2)
    scaled = Standardizer(np.array([0, 2, 3]), rng.standard_normal(3), rng.random(3) + 0.1, P)
    return Standardized(scaled, inner.draw(3))


MAPS = {
    "orthogonal pairs": lambda: RandomFourierFeatures(Gaussian(0.7), 16).draw(P),
    "independent phases": lambda: RandomFourierFeatures(
        Laplacian(1 / 3), 15, orthogonal=False, paired=False, random_state=7
    ).draw(P),
    "a length scale per input": lambda: RandomFourierFeatures(
        Matern((0.1, 0.2, 0.3, 0.4, 0.5), nu=1.5), 16
    ).draw(P),
    "identity": lambda: Identity().draw(P),
    "standardized": lambda: standardized(RandomFourierFeatures(Gaussian(1.0), 8)),
    "standardized identity": lambda: standardized(Identity()),
}


def model(name="orthogonal pairs", q=2, precision="single", *, flat=False):
    feature_map = MAPS[name]()
    rng = np.random.default_rng(1)
    coef = rng.standard_normal((feature_map.n_components, q))
    predictor = Predictor(feature_map, coef, rng.standard_normal(q), precision, flat)
    return ModelFile(predictor, {"report": {"rows": 3, "alpha": 0.1}, "created": "ä"})


@pytest.fixture
def path(tmp_path):
    write_model(tmp_path / "m.h5", model())
    return tmp_path / "m.h5"


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("name", MAPS)
def test_a_model_comes_back_bit_for_bit(tmp_path, name, precision):
    written = model(name, precision=precision)
    write_model(tmp_path / "m.h5", written)
    read = read_model(tmp_path / "m.h5")
    before, after = written.predictor, read.predictor
    assert after.coef.tobytes() == before.coef.tobytes()
    assert after.intercept.tobytes() == before.intercept.tobytes()
    assert (after.precision, after.flat) == (before.precision, before.flat)
    assert type(after.feature_map) is type(before.feature_map)
    assert after.feature_map.parameters() == before.feature_map.parameters()
    arrays = after.feature_map.arrays()
    assert arrays.keys() == before.feature_map.arrays().keys()
    for key, array in before.feature_map.arrays().items():
        assert (arrays[key].dtype, arrays[key].tobytes()) == (array.dtype, array.tobytes())
    X = np.random.default_rng(3).standard_normal((40, P))
    assert after.predict(X).tobytes() == before.predict(X).tobytes()


def test_the_card_comes_back(path):
    card = read_model(path).card
    assert card["report"] == {"rows": 3, "alpha": 0.1}
    assert card["created"] == "ä"
    assert card["map"] == "fourier"


def test_a_flat_model_predicts_flat_after_loading(tmp_path):
    write_model(tmp_path / "m.h5", model(q=1, flat=True))
    assert read_model(tmp_path / "m.h5").predictor.predict(np.zeros((4, P))).shape == (4,)


def test_a_model_written_again_says_the_same(path, tmp_path):
    write_model(tmp_path / "n.h5", read_model(path))
    again, first = read_model(tmp_path / "n.h5"), read_model(path)
    assert again.card == first.card
    assert again.predictor.coef.tobytes() == first.predictor.coef.tobytes()


def test_an_existing_model_is_kept_unless_forced(path):
    before = path.read_bytes()
    with pytest.raises(OutputError, match="exists already"):
        write_model(path, model("identity"))
    assert path.read_bytes() == before
    write_model(path, model("identity"), force=True)
    assert read_model(path).card["map"] == "identity"
    assert [entry.name for entry in path.parent.iterdir()] == ["m.h5"]


# Nothing that could run.


def test_no_module_imports_a_library_that_loads_code():
    never = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
    found = {}
    for module in Path(streamkern.__file__).parent.rglob("*.py"):
        tree = ast.parse(module.read_text())
        names = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
        names += [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        found[module.name] = never & {name.split(".")[0] for name in names}
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert ast.literal_eval(node.value) is False, module
    assert len(found) > 20
    assert not {name: used for name, used in found.items() if used}


def test_a_model_is_written_and_read_without_pickle(tmp_path, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, never)
    write_model(tmp_path / "m.h5", model())
    read_model(tmp_path / "m.h5")


def test_a_model_file_holds_numbers_and_one_text(path):
    kinds = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: (
                kinds.update({name: item.dtype}) if isinstance(item, h5py.Dataset) else None
            )
        )
        json.loads(file["card"].asstr()[()])
    assert h5py.check_string_dtype(kinds.pop("card"))
    assert kinds.keys() == {"coef", "intercept", "map/frequencies", "map/phases"}
    assert {kind.kind for kind in kinds.values()} == {"f"}


# What is refused.


@pytest.mark.parametrize("tenth", range(10))
def test_a_model_cut_short_is_refused(path, tenth):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * tenth // 10])
    with pytest.raises(ModelFileError, match=r"m\.h5 (was cut short|is not a streamkern model)"):
        read_model(path)


def test_a_model_one_byte_short_is_refused(path):
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="was cut short: it is smaller than its header says"):
        read_model(path)


def test_a_newer_format_is_refused_with_both_versions(path):
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = 2
    with pytest.raises(ModelFileError, match=r"format version 2, but .* up to 1; install a newer"):
        read_model(path)


@pytest.mark.parametrize("version", ["two", [1, 1], 0, None])
def test_a_format_version_that_is_none_is_refused(path, version):
    with h5py.File(path, "r+") as file:
        del file.attrs["format_version"]
        if version is not None:
            file.attrs["format_version"] = version
    with pytest.raises(ModelFileError, match=r"m\.h5"):
        read_model(path)


@pytest.mark.parametrize("content", [b"", b"a,b\n", pickle.dumps([1]), b"\x00" * 10_000])
def test_a_file_that_is_not_hdf5_is_refused(tmp_path, content):
    (tmp_path / "m.h5").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"is not a streamkern model .* `streamkern fit`"):
        read_model(tmp_path / "m.h5")


@pytest.mark.parametrize("mark", [None, "other", 3, b"\xff"])
def test_a_data_file_is_not_a_model(tmp_path, mark):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["X"] = np.zeros((3, 2))
        if mark is not None:
            file.attrs["format"] = mark
    with pytest.raises(ModelFileError, match="is HDF5 but not a streamkern model"):
        read_model(tmp_path / "m.h5")


@pytest.mark.parametrize("name", ["none.h5", "."])
def test_a_missing_file_or_a_folder_is_refused(tmp_path, name):
    with pytest.raises(ModelFileError, match="does not exist or is not a file"):
        read_model(tmp_path / name)


@pytest.mark.parametrize("part", ["card", "coef", "intercept", "map", "map/frequencies"])
def test_a_model_with_a_part_missing_is_refused(path, part):
    with h5py.File(path, "r+") as file:
        del file[part]
    with pytest.raises(ModelFileError, match="is a damaged model"):
        read_model(path)


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"map": "fourier"', "[]", "3", "null", "{}", '{"map": []}', "\ud800"],
    ids=repr,
)
def test_a_damaged_card_is_refused(path, text):
    with h5py.File(path, "r+") as file:
        del file["card"]
        file["card"] = np.bytes_(text.encode("utf-8", "surrogatepass") or b"\xff")
    with pytest.raises(ModelFileError, match="is a damaged model"):
        read_model(path)


def test_a_card_that_is_not_a_text_is_refused(path):
    with h5py.File(path, "r+") as file:
        del file["card"]
        file["card"] = np.zeros(3)
    with pytest.raises(ModelFileError, match="is a damaged model"):
        read_model(path)


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


@pytest.mark.parametrize("change", CARDS)
def test_a_card_with_values_that_cannot_be_is_refused(path, change):
    with h5py.File(path, "r+") as file:
        card = json.loads(file["card"].asstr()[()])
        for key, value in CARDS[change].items():
            merge = isinstance(value, dict) and value and isinstance(card[key], dict)
            card[key] = {**card[key], **value} if merge else value
        del file["card"]
        file["card"] = fixed(json.dumps(card))
    with pytest.raises(ModelFileError, match=r"is a damaged model|is not declared here"):
        read_model(path)


ARRAYS = {
    "coef": [np.zeros(16), np.zeros((15, 2)), np.zeros((16, 3)), np.zeros((0, 2))],
    "intercept": [np.zeros(3), np.zeros((2, 1)), np.float64(0)],
    "map/frequencies": [np.zeros((7, P)), np.zeros(8), np.float64(0)],
    "map/phases": [np.zeros(7), np.zeros((8, 1))],
}


@pytest.mark.parametrize(
    ("part", "value"),
    [(part, value) for part, values in ARRAYS.items() for value in values],
)
def test_arrays_of_other_shapes_are_refused(path, part, value):
    with h5py.File(path, "r+") as file:
        del file[part]
        file[part] = value
    with pytest.raises(ModelFileError, match="is a damaged model"):
        read_model(path)


@pytest.mark.parametrize("part", ARRAYS)
def test_text_in_place_of_numbers_of_the_right_shape_is_refused(path, part):
    with h5py.File(path, "r+") as file:
        shape = file[part].shape
        del file[part]
        file[part] = np.full(shape, b"a")
    with pytest.raises(ModelFileError, match="is a damaged model"):
        read_model(path)


def test_a_group_in_place_of_an_array_is_refused(path):
    with h5py.File(path, "r+") as file:
        del file["coef"]
        file.create_group("coef")
    with pytest.raises(ModelFileError, match="is a damaged model"):
        read_model(path)


def test_a_link_that_leads_nowhere_is_refused(path):
    with h5py.File(path, "r+") as file:
        del file["coef"]
        file["coef"] = h5py.ExternalLink("none.h5", "coef")
    with pytest.raises(ModelFileError, match="is a damaged model"):
        read_model(path)


def test_a_model_is_a_plain_hdf5_file_that_says_what_it_is(path):
    with h5py.File(io.BytesIO(path.read_bytes())) as file:
        assert file.attrs["format"] == b"streamkern-model"
        assert file.attrs["format_version"] == 1


# The normal equations.


def with_equations(name="orthogonal pairs", q=2, dtype=np.float32, *, intercept=True):
    written = model(name, q)
    D, rng = len(written.predictor.coef), np.random.default_rng(4)
    rows = rng.standard_normal((3 * D, D))
    gram = Triangle(D, dtype)
    gram.add(rows.T @ rows)
    mean = rng.standard_normal(D) if intercept else np.zeros(D)
    vectors = rng.random(q) + 0.1, 10.0, rng.random(q) + 1, rng.random(q)
    equations = NormalEquations(gram, mean, *vectors, intercept, 1e-6)
    return ModelFile(written.predictor, written.card, equations)


@pytest.fixture
def whole(tmp_path):
    write_model(tmp_path / "m.h5", with_equations())
    return tmp_path / "m.h5"


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MAPS)
def test_normal_equations_come_back_bit_for_bit(tmp_path, name, dtype, intercept):
    written = with_equations(name, dtype=dtype, intercept=intercept)
    write_model(tmp_path / "m.h5", written)
    before, after = written.equations, read_model(tmp_path / "m.h5").equations
    for key in ("feature_mean", "alphas", "effective_dof", "train_rss"):
        one, other = getattr(before, key), getattr(after, key)
        assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
    assert (after.weight, after.intercept) == (before.weight, before.intercept)
    assert after.gram.packed().dtype == dtype
    assert after.gram.packed().tobytes() == before.gram.packed().tobytes()
    X = np.random.default_rng(3).standard_normal((40, P))
    one, other = (
        Deviation.of(written.predictor.feature_map, equations).standard_deviations(X)
        for equations in (before, after)
    )
    assert one.tobytes() == other.tobytes()


def test_a_matrix_of_several_panels_comes_back(tmp_path):
    predictor = Predictor(
        RandomFourierFeatures(Gaussian(0.7), 600).draw(P), np.zeros((600, 1)), np.zeros(1)
    )
    written = with_equations(q=1)
    gram = Triangle(600, np.float32)
    gram.add(np.random.default_rng(0).standard_normal((600, 600)))
    fields = vars(written.equations) | {"gram": gram, "feature_mean": np.zeros(600)}
    write_model(tmp_path / "m.h5", ModelFile(predictor, {}, NormalEquations(**fields)))
    read = read_model(tmp_path / "m.h5").equations
    assert read.gram.packed().tobytes() == gram.packed().tobytes()


def test_a_model_without_normal_equations_is_smaller_and_says_so(tmp_path, whole):
    assert read_model(whole).equations is not None
    compact = ModelFile(with_equations().predictor, {})
    write_model(tmp_path / "compact.h5", compact)
    read = read_model(tmp_path / "compact.h5")
    assert read.equations is None
    difference = whole.stat().st_size - (tmp_path / "compact.h5").stat().st_size
    assert difference > 4 * 16 * 17 / 2


def test_normal_equations_that_are_not_wanted_are_not_read(whole):
    with h5py.File(whole, "r+") as file:
        file["equations/gram"][:] = np.nan
    read = read_model(whole, with_equations=False)
    assert read.equations is None
    assert np.array_equal(read.predictor.coef, with_equations().predictor.coef)


def replaced(value):
    def change(file, part):
        del file[part]
        if value is not None:
            file[part] = value

    return change


def with_element(value):
    def change(file, part):
        array = np.array(file[part])
        array.flat[-1] = value
        del file[part]
        file[part] = array

    return change


TRIANGLE = 16 * 17 // 2
EQUATIONS = {
    "gram": [np.zeros(TRIANGLE - 1), np.zeros(120), np.zeros((TRIANGLE, 1)), np.float64(1)],
    "feature_mean": [np.zeros(15), np.zeros((16, 1)), np.float64(0)],
    "alphas": [np.zeros(1), np.zeros(3), np.zeros((2, 1)), np.float64(0)],
    "effective_dof": [np.zeros(1), np.zeros((1, 2))],
    "train_rss": [np.zeros(0), np.zeros(5)],
    "weight": [np.zeros(2), np.float64(0), np.float64(-1)],
    "intercept": [np.zeros(2)],
}  # fmt: skip


def refused_as_damaged(path):
    with pytest.raises(
        ModelFileError, match=r"m\.h5 is a damaged model \(.*\); copy it again"
    ) as e:
        read_model(path)
    assert "\n" not in str(e.value)
    assert read_model(path, with_equations=False).equations is None


@pytest.mark.parametrize(
    ("part", "value"), [(part, value) for part, values in EQUATIONS.items() for value in values]
)
def test_normal_equations_of_other_shapes_are_refused(whole, part, value):
    with h5py.File(whole, "r+") as file:
        replaced(value)(file, f"equations/{part}")
    refused_as_damaged(whole)


@pytest.mark.parametrize("part", list(EQUATIONS))
def test_normal_equations_with_a_part_missing_are_refused(whole, part):
    with h5py.File(whole, "r+") as file:
        replaced(None)(file, f"equations/{part}")
    refused_as_damaged(whole)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", [part for part in EQUATIONS if part != "intercept"])
def test_normal_equations_that_are_not_finite_are_refused(whole, part, value):
    with h5py.File(whole, "r+") as file:
        with_element(value)(file, f"equations/{part}")
    refused_as_damaged(whole)


@pytest.mark.parametrize("part", ["alphas", "effective_dof", "train_rss", "weight"])
def test_normal_equations_with_numbers_below_zero_are_refused(whole, part):
    with h5py.File(whole, "r+") as file:
        with_element(-1.0)(file, f"equations/{part}")
    refused_as_damaged(whole)


@pytest.mark.parametrize("part", list(EQUATIONS))
def test_text_in_place_of_normal_equations_is_refused(whole, part):
    with h5py.File(whole, "r+") as file:
        shape = file[f"equations/{part}"].shape
        replaced(np.full(shape, b"a"))(file, f"equations/{part}")
    refused_as_damaged(whole)


def test_a_group_in_place_of_a_part_is_refused(whole):
    with h5py.File(whole, "r+") as file:
        del file["equations/gram"]
        file.create_group("equations/gram")
    refused_as_damaged(whole)


def test_an_array_in_place_of_the_normal_equations_is_refused(whole):
    with h5py.File(whole, "r+") as file:
        del file["equations"]
        file["equations"] = np.zeros(3)
    refused_as_damaged(whole)
