"""A model that predicts with NumPy alone."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from streamkern import (
    Gaussian,
    Laplacian,
    LocalClassifier,
    Matern,
    RandomFeatureClassifier,
    RandomFeatureRidge,
)
from streamkern.errors import DataError

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 3)) * [1.0, 10.0, 0.1]
Y = np.stack([np.sin(X[:, 0]), X[:, 1]], axis=1)

MODELS = {
    "pairs": (Gaussian("median"), {}),
    "one target": (Gaussian("median"), {"precision": "double"}),
    "grid": (Matern(nu=1.5, length_scale=2.0), {"feature_map": "grid"}),
    "transforms": (Gaussian("median"), {"feature_map": "sorf"}),
    "binning": (Laplacian("median"), {"feature_map": "binning"}),
    "identity": (Gaussian("median"), {"feature_map": "identity"}),
}
# Everything but NumPy, this package and the standard library is as good as not installed.
CODE = """
import pickle, sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {"numpy", "streamkern", *sys.stdlib_module_names}:
            raise ImportError(f"{name} is not there")

sys.meta_path.insert(0, Nothing())
import numpy as np
for name in sys.argv[2:]:
    with open(f"{sys.argv[1]}/{name}.pickle", "rb") as file:
        X, local, predicted, features = pickle.load(file)
    assert np.array_equal(local.predict(X), predicted), name
    assert np.array_equal(local.transform(X), features), name
    assert local.n_features_in_ == 3
"""


def test_predictions_need_neither_dask_nor_hdf5_nor_anything_but_numpy(tmp_path):
    for name, (kernel, options) in MODELS.items():
        y = Y[:, 0] if name == "one target" else Y
        model = RandomFeatureRidge(kernel, **{"n_components": 32, "alpha": 0.1} | options).fit(X, y)
        parts = X, model.to_local(), model.predict(X), model.transform(X)
        (tmp_path / f"{name}.pickle").write_bytes(pickle.dumps(parts))
    done = subprocess.run(
        [sys.executable, "-c", CODE, tmp_path, *MODELS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


LABELS = np.array(["hay", "oats", "straw"])[np.digitize(Y[:, 0], [-0.4, 0.6])]
SAYS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform")
CLASSES_CODE = (
    CODE.partition("        X, local")[0]
    + """\
        X, local, said = pickle.load(file)
    for method, expected in said.items():
        assert np.array_equal(getattr(local, method)(X), expected), (name, method)
    assert np.array_equal(local.classes_, np.unique(said["predict"]))
"""
)


def test_classes_need_nothing_but_numpy_either(tmp_path):
    kinds = [(K, how) for K in (2, 3) for how in ("sigmoid", "isotonic", None)]
    for K, how in kinds:
        labels = LABELS if K == 3 else LABELS == "oats"
        model = RandomFeatureClassifier(n_components=32, alpha=0.1, calibration=how).fit(X, labels)
        local = model.to_local()
        assert isinstance(local, LocalClassifier)
        parts = X, local, {method: getattr(model, method)(X) for method in SAYS}
        (tmp_path / f"{K} {how}.pickle").write_bytes(pickle.dumps(parts))
    names = [f"{K} {how}" for K, how in kinds]
    done = subprocess.run(
        [sys.executable, "-c", CLASSES_CODE, tmp_path, *names],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_it_pickles_small_though_the_model_keeps_its_moments():
    model = RandomFeatureRidge(n_components=512, alpha=0.1).partial_fit(X, Y)
    local = model.to_local()
    local.predict(X)
    assert len(pickle.dumps(model)) > 4 * 512**2
    assert len(pickle.dumps(local)) < 8 * 512 * (3 + 2) + 4000


def test_tables_of_other_shapes_and_types_are_refused():
    local = RandomFeatureRidge(n_components=32, alpha=0.1).fit(X, Y).to_local()
    assert local.predict(X.tolist()).shape == (300, 2)
    for method in (local.predict, local.transform):
        with pytest.raises(DataError, match="must have 3 columns"):
            method(X[:, :2])
        with pytest.raises(DataError, match="must have 3 columns"):
            method(X[0])
        with pytest.raises(DataError, match="must hold floats or integers"):
            method([["a", "b", "c"]])


@pytest.mark.parametrize("make", [RandomFeatureRidge, RandomFeatureClassifier])
def test_columns_of_frames_are_compared_by_name(make):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = make(n_components=16, alpha=1.0).fit(frame, Y[:, 0] > 0)
    local = model.to_local()
    np.testing.assert_array_equal(local.predict(frame), model.predict(frame))
    with pytest.raises(DataError, match="must be a, b, c, but are b, a, c"):
        local.predict(frame[["b", "a", "c"]])
