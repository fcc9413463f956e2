"""Predictions by transforms are sums of features, and are taken where they take less."""

import numpy as np
import pytest

from streamkern import Matern
from streamkern.extensions.fields import waves
from streamkern.extensions.fields.frequency_grid import GridFourierFeatures
from streamkern.features import Combinations, Standardized, Standardizer
from streamkern.predict.predictor import PredictionBuffers, Predictor


def lattice_predictor(p, q=1, D=1201, rank=None, precision="single"):
    rng = np.random.default_rng(p)
    X = rng.uniform(-1.0, 2.0, (300, p))
    standardizer = Standardizer(np.arange(p), X.mean(axis=0), X.std(axis=0), p)
    grid = GridFourierFeatures(Matern(0.5, nu=1.5), D).draw(p, standardizer(X))
    inner = grid if rank is None else Combinations(grid, rng.standard_normal((D, rank)))
    coef, intercept = rng.standard_normal((inner.n_components, q)), rng.standard_normal(q)
    predictor = Predictor(Standardized(standardizer, inner), coef, intercept, precision)
    return predictor, X, predictor.feature_map.transform(X) @ coef + intercept


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(("q", "rank"), [(1, None), (3, None), (2, 5)])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_predictions_are_sums_of_features(monkeypatch, p, q, rank, precision):
    monkeypatch.setattr(waves, "_VALUES", 128 * q)  # in several parts
    monkeypatch.setattr(waves.NufftPredictions, "take_less", lambda *_: True)
    monkeypatch.delattr(PredictionBuffers, "predict")
    predictor, X, expected = lattice_predictor(p, q, rank=rank, precision=precision)
    X[7], expected[7], X[9], expected[9] = np.nan, np.nan, np.inf, np.nan
    atol = np.nanstd(expected) * (1e-7 if precision == "single" else 1e-11)
    np.testing.assert_allclose(predictor.predict(X), expected, rtol=0, atol=atol)  # NaN where NaN


@pytest.mark.parametrize(("q", "D", "n"), [(1, 100, 300), (1, 1201, 3), (50, 1201, 300)])
def test_features_are_made_where_they_take_less(monkeypatch, q, D, n):
    predictor, X, expected = lattice_predictor(2, q, D)
    monkeypatch.delattr(waves.NufftPredictions, "predict")
    np.testing.assert_allclose(predictor.predict(X[:n]), expected[:n], rtol=0, atol=1e-4)
