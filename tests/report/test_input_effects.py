"""Effects of inputs, and curves over one of them, against what the formulas say."""

import numpy as np
import pytest

from streamkern import Gaussian, RandomFeatureClassifier, RandomFeatureRidge
from streamkern.report.input_effects import input_effects, partial_dependence


def rows(n=400):
    X = np.random.default_rng(0).standard_normal((n, 4)) * [1.0, 100.0, 0.01, 1.0]
    return X, np.sin(X[:, 0]) + X[:, 1] / 50 + 0.0 * X[:, 3]


def fitted(**options):
    options = {"n_components": 64, "precision": "double"} | options
    return RandomFeatureRidge(Gaussian(3.0), **options).fit(*rows())


@pytest.mark.parametrize("options", [{}, {"standardize": False}, {"metric": np.diag([1, 2, 3, 1])}])
def test_effects_are_mean_squared_slopes_in_deviations(options):
    (X, y), model = rows(), fitted(**options)
    found, expected = input_effects(model.model_, X), []
    for j, step in enumerate(1e-4 * X.std(axis=0)):
        moved = X + step * (np.arange(4) == j)
        slopes = (model.predict(moved) - model.predict(X)) / step
        expected.append(np.sqrt(np.mean(slopes**2)) * X[:, j].std() / y.std())
    assert found.by_gradients
    assert found.sizes == pytest.approx(expected, rel=1e-2, abs=1e-6)


@pytest.mark.parametrize(
    "options", [{"kernel": "gaussian"}, {"kernel": "laplacian", "feature_map": "binning"}]
)
def test_the_input_that_counts_most_is_first_with_gradients_and_without(options):
    X, y = rows()
    X[:, 3] = 7.0  # constant, and left out
    with pytest.warns(UserWarning, match="constant"):
        model = RandomFeatureRidge(n_components=64).set_params(**options).fit(X, y)
    found = input_effects(model.model_, X)
    assert found.sizes.argmax() == 1
    assert found.sizes[3] == 0
    assert found.by_gradients == ("feature_map" not in options)


def test_a_curve_is_the_mean_of_predictions_of_rows_with_one_value():
    (X, y), model = rows(), fitted()
    found = partial_dependence(model.model_, X, 1)
    for k in (0, 17, 40):
        same = X[:300].copy()
        same[:, 1] = found.values[k]
        predicted = model.predict(same)
        assert found.means[k, 0] == pytest.approx(predicted.mean())
        assert found.lows[k, 0] == pytest.approx(np.quantile(predicted, 0.1))
    X[:, 0] = np.arange(400) % 3
    assert partial_dependence(model.model_, X, 0).values.tolist() == [0, 1, 2]
    classes = RandomFeatureClassifier(n_components=32).fit(X, y > 0)
    curve = partial_dependence(classes.model_, X, 1)
    assert curve.means[:, 0] == pytest.approx(
        [classes.predict_proba(np.insert(X[:300, [0, 2, 3]], 1, v, axis=1))[:, 1].mean()
         for v in curve.values]
    )  # fmt: skip
