"""The map 'auto' of a fit is landmarks where they go with the rest, else random frequencies."""

import numpy as np
import pytest
from scipy import sparse

from streamkern import RandomFeatureClassifier, RandomFeatureRidge, load
from streamkern.features.base import stream

OPTIONS = {"feature_map": "auto", "n_components": 64, "n_folds": 3}


def rows(n=600):
    X = stream(0).uniform(-1.0, 1.0, (n, 3))
    return X, np.abs(X[:, 0]) + 2.0 * (X[:, 1] > 0.3) + 0.1 * stream(1).standard_normal(n)


def map_of(model):
    return model.report_["feature_map"]


def test_landmarks_are_the_usual_map_with_the_kernel_that_is_chosen_for_them(tmp_path):
    X, y = rows()
    model = RandomFeatureRidge(**OPTIONS).fit(X, y)
    named = RandomFeatureRidge(**OPTIONS | {"feature_map": "nystroem"}).fit(X, y)
    assert map_of(model) == "nystroem"
    assert np.array_equal(model.predict(X), named.predict(X))
    usual = RandomFeatureRidge(n_components=64, n_folds=3).fit(X, y)
    assert model.report_["cv_rmse"] < usual.report_["cv_rmse"]
    model.save(tmp_path / "model.h5")
    loaded = load(tmp_path / "model.h5")
    assert loaded.get_params()["feature_map"] == "auto"
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert map_of(RandomFeatureRidge(**OPTIONS).fit(X, y, like=model)) == "nystroem"
    assert map_of(RandomFeatureClassifier(**OPTIONS).fit(X, y > 1)) == "nystroem"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"kernel": "polynomial"}, "nystroem"),
        ({"kernel": "linear"}, "orthogonal"),
        ({"precision": "int8"}, "orthogonal"),
        ({"precision": "auto"}, "orthogonal"),
        ({"sparse": 4}, "orthogonal"),
        ({"paired": False}, "orthogonal"),
        ({"n_components": "auto"}, "orthogonal"),
        ({"n_components": 8194, "alpha": 1.0, "kernel": "gaussian"}, "orthogonal"),
        ({"metric": "learn:1"}, "orthogonal"),
    ],
    ids=str,
)
def test_what_landmarks_do_not_go_with_has_random_frequencies(options, name):
    assert map_of(RandomFeatureRidge(**OPTIONS | options).fit(*rows(150))) == name


def test_sparse_rows_and_rows_that_others_follow_have_random_frequencies():
    (X, y), model = rows(), RandomFeatureRidge(**OPTIONS)
    assert map_of(model.fit(sparse.csr_array(X), y)) == "orthogonal"
    assert map_of(model.solve(model.moments(X, y))) == "orthogonal"
    grown = RandomFeatureRidge(**OPTIONS).partial_fit(X[:300], y[:300])
    assert map_of(grown.partial_fit(X[300:], y[300:])) == "orthogonal"
