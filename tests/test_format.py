"""The page about model files is true: its predictor predicts, and its tables leave nothing out."""

import json
import re
from functools import partial
from pathlib import Path

import h5py
import harvests
import numpy as np
import pytest

import streamkern
from streamkern import Gaussian, Laplacian, Linear
from streamkern.errors import StreamkernWarning
from streamkern.features import MAPS

PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "file-format.md").read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
METRIC = np.array([[1.0, 0.5, 0.0], [0.5, 2.0, 0.0], [0.0, 0.0, 1.0]])

MODELS = {
    "orthogonal": {},
    "single": {"precision": "single"},
    "metric": {"metric": METRIC},
    "diagonal metric": {"metric": np.diag([1.0, 4.0, 0.25])},
    "bound": {"scale": "robust"},
    "knots": {"scale": "quantile"},
    "phases": {"paired": False},
    "an odd number": {"n_components": 7},
    "one cosine": {"n_components": 1},
    "another kernel": {"kernel": Laplacian(4.0), "feature_map": "qmc"},
    "grid": {"feature_map": "grid"},
    "sparse": {"sparse": 8},
    "sparse grid": {"sparse": 8, "feature_map": "grid"},
    "landmarks": {"feature_map": "nystroem", "kernel": Gaussian((1.0, 2.0, 3.0))},
    "sparse landmarks": {"feature_map": "nystroem", "sparse": 8},
    "identity": {"feature_map": "identity", "kernel": Linear()},
}


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -1.0]
    return X, np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)


ridge = partial(harvests.ridge, n_components=64, alpha=1e-3)


def page_predict(path, X):
    names = {}
    exec(compile(CODE, "file-format.md", "exec"), names)  # noqa: S102  our own page
    return names["predict"](path, X)


@pytest.mark.parametrize("options", list(MODELS.values()), ids=list(MODELS))
def test_the_predictor_of_the_page_predicts_what_the_model_predicts(options, tmp_path):
    (X, y), (new, _) = rows(), rows(40, seed=1)
    for i, targets in enumerate((y, y[:, 0], y[:, :1])):
        model, path = ridge(**options).fit(X, targets), tmp_path / f"{i}.h5"
        model.save(path, compact=bool(i))
        expected, found = model.predict(new), page_predict(path, new)
        assert found.shape == expected.shape
        apart = np.abs(found - expected).max() / np.abs(expected).max()
        assert apart < (1e-4 if options.get("precision") == "single" else 1e-9)


def test_a_constant_input_is_left_out(tmp_path):
    X, y = rows()
    X = np.insert(X, 1, 7.0, axis=1)
    with pytest.warns(StreamkernWarning, match="constant"):
        model = ridge().fit(X, y)
    model.save(tmp_path / "model.h5")
    X[:, 1] = 8.0
    assert np.abs(page_predict(tmp_path / "model.h5", X) - model.predict(X)).max() < 1e-9


@pytest.mark.parametrize("name", ["metric", "grid", "sparse landmarks", "landmarks"])
def test_the_page_names_all_that_a_file_holds(name, tmp_path):
    ridge(**MODELS[name]).fit(*rows()).save(tmp_path / "model.h5")
    with h5py.File(tmp_path / "model.h5") as file:
        card, names = json.loads(file["card"][()]), [*file, *file["map"]]
        assert dict(file.attrs) == {"format": b"streamkern-model", "format_version": 1}
        assert {file[name].dtype.str for name in ("coef", "intercept", "map/mean")} == {"<f8"}
        assert file["map/columns"].dtype == np.int64
    for each in [*card, *names, *card["map_parameters"]]:
        assert each.removeprefix("inner_") in PAGE, each


def test_the_page_names_every_map_that_a_model_may_have():
    # Sums are made of levelled values, and predictions of plain ones; neither is in a model.
    own = {name for name, made in MAPS.items() if made.__module__.startswith("streamkern.")}
    for name in own - {"flattened", "similarities"}:
        assert f"`{name}`" in PAGE


def test_the_page_says_how_principal_components_take_rows_to_scores(tmp_path):
    X, _ = rows()
    pca = streamkern.RandomFeaturePCA(
        Gaussian(1.5), n_components=3, n_random_features=32, precision="double"
    )
    scores = pca.fit_transform(X)
    pca.save(tmp_path / "pca.h5")
    with h5py.File(tmp_path / "pca.h5") as file:
        assert all(f"`/{name}`" in PAGE for name in file if name not in {"card", "map"})
        components, mean = file["components"][()], file["mean"][()]
    about = pca.feature_map_.transform(X) - mean
    assert np.abs(about @ components.T - scores).max() < 1e-12
