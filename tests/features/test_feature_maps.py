"""Models of every feature map: fitted, saved, solved again, made sparse, read in strips."""

import numpy as np
import pytest

import streamkern
from streamkern import Gaussian, RandomFeatureRidge
from streamkern.errors import ParameterError
from streamkern.estimators.loading import template_of
from streamkern.features import FAMILIES, MAPS, Identity
from streamkern.parameters.parameters import Parameters

every_map = pytest.mark.parametrize("name", [name for name in FAMILIES if name != "identity"])


def rows(n=400, p=2):
    rng = np.random.default_rng(0)
    X = 3 + 2 * rng.standard_normal((n, p))
    return X, np.sin(X[:, 0]) * X[:, -1] + 0.05 * rng.standard_normal(n)


def model(name, **options):
    options = {"n_components": 64, "alpha": 1e-3, "precision": "double"} | options
    return RandomFeatureRidge(Gaussian(0.7), feature_map=name, **options)


def error(fitted) -> float:
    X, y = rows()
    return float(np.sqrt(np.mean((fitted.predict(X) - y) ** 2)) / y.std())


@every_map
def test_few_of_its_features_are_a_model_that_others_can_be_like(name, tmp_path):
    X, y = rows()
    fitted = model(name, sparse=15).fit(X, y)
    fitted.save(tmp_path / "model.h5")
    back = streamkern.load(tmp_path / "model.h5")
    assert np.array_equal(back.predict(X), fitted.predict(X))
    assert error(back) < 0.3
    again = model(name).fit(X, y, like=back)
    assert np.abs(again.predict(X) - fitted.predict(X)).max() < 1e-6
    assert template_of(back).options.n_components == 15


def test_fast_transforms_for_another_distance_are_refused_before_rows_are_read():
    with pytest.raises(ParameterError, match="for kernels of the Euclidean distance"):
        Parameters.of(RandomFeatureRidge(streamkern.Laplacian(), feature_map="sorf")).pass_options()


@pytest.mark.parametrize("name", ["orthogonal", "sorf", "qmc", "grid", "identity", "nystroem"])
def test_sums_of_features_that_are_nested_and_not_made_from_rows_can_be_made_in_strips(name):
    can_strip = Parameters.of(RandomFeatureRidge(feature_map=name)).pass_options().can_strip
    assert can_strip == (name not in ("identity", "nystroem"))


@pytest.mark.parametrize("names", [("fourier", "mine"), ("mine", "sorf")])
def test_a_name_that_another_map_has_is_refused(names):
    body = {"name": names[0], "families": {names[1]: ("another map", {})}}
    with pytest.raises(ParameterError, match=r"' is the name of streamkern\.features"):
        type("Mine", (Identity,), body)
    MAPS.pop("mine", None)
