"""Choosing the number of features from one reading of the rows."""

import numpy as np
import pytest

from streamkern import Gaussian, Laplacian, Linear, RandomFeatureRidge
from streamkern.errors import ParameterError
from streamkern.solvers.fold_solution import nested_sizes

P = 3


def rows(n=1500, q=None, *, rough=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, P))
    waves = [np.sin((9 if rough else 1) * X[:, 0]) + X[:, 1] * X[:, 2], 7 + X[:, 2] ** 2]
    y = np.stack(waves, axis=1) + 0.2 * rng.standard_normal((n, 2))
    return X, y[:, 0] if q is None else y[:, :q]


@pytest.fixture
def largest(monkeypatch):
    """Set the number of features that 'auto' makes."""

    def set_largest(n_components):
        monkeypatch.setattr("streamkern.parameters.parameters.AUTO_COMPONENTS", n_components)
        return nested_sizes(n_components)

    return set_largest


def ridge(n_components="auto", **options):
    options = {"precision": "double", "kernel": Gaussian(1.0)} | options
    return RandomFeatureRidge(n_components=n_components, **options)


def assert_curve_is_that_of_fits(curve, options, X, y, sizes):
    for size, found, alpha in zip(
        curve["n_components"], curve["cv_rmse"], curve["alpha"], strict=True
    ):
        if size in sizes:
            alone = ridge(size, **options).fit(X, y)
            assert found == pytest.approx(alone.report_["cv_rmse"], rel=1e-6)
            assert np.broadcast_to(alone.alpha_, len(alpha)) == pytest.approx(alpha, rel=1e-6)


VARIANTS = {
    "pairs": {"one_standard_error": True, "alpha": [0.01, 0.1, 1.0]},
    "phases": {"paired": False, "fit_intercept": False, "feature_map": "iid"},
    "Laplacian": {"kernel": Laplacian("median"), "fold_by": "blocks", "n_folds": 3},
}


@pytest.mark.parametrize("variant", list(VARIANTS))
def test_the_curve_is_that_of_fits_with_fewer_features(largest, variant):
    sizes, (X, y) = largest(256), rows()
    model = ridge(**VARIANTS[variant]).fit(X, y)
    curve = model.report_["components_curve"]
    assert curve["n_components"] == sizes == [64, 128, 256]
    assert_curve_is_that_of_fits(curve, VARIANTS[variant], X, y, sizes)


def test_the_model_is_that_of_a_fit_with_the_chosen_size(largest):
    largest(256)
    X, y = rows()
    model, new = ridge().fit(X, y), rows(50)[0] + 0.5
    chosen = model.report_["n_components"]
    alone = ridge(chosen).fit(X, y)
    assert chosen < 256
    assert model.coef_.shape == (chosen,)
    assert model.feature_map_.n_components == chosen
    assert model.transform(new).shape == (50, chosen)
    assert model.transform(new) == pytest.approx(alone.transform(new), rel=1e-12, abs=1e-12)
    for name in ("cv_rmse", "train_rmse", "alpha", "effective_dof", "noise"):
        assert model.report_[name] == pytest.approx(alone.report_[name], rel=1e-6)
    for found, expected in zip(
        model.predict(new, return_std=True), alone.predict(new, return_std=True), strict=True
    ):
        assert found == pytest.approx(expected, rel=1e-6)


def test_where_there_is_one_size_there_is_no_curve(largest):
    largest(256)
    assert ridge(64).fit(*rows(300)).report_["components_curve"] is None
    X = np.random.default_rng(0).standard_normal((600, 128))
    y = X[:, 0] + 0.1 * X[:, 1]
    for inputs in (X, X[:, :3]):
        model = ridge(kernel=Linear()).fit(inputs, y)
        assert model.report_["n_components"] == inputs.shape[1]
        assert model.report_["components_curve"] is None


def test_other_choices_of_the_penalty_and_other_words_are_refused():
    for alpha in (0.0, 1.0, "gcv", "evidence"):
        with pytest.raises(ParameterError, match="'auto' is chosen by cross-validation; take alp"):
            ridge(alpha=alpha).fit(*rows(100))
    for word in ("Auto", "all", ""):
        with pytest.raises(ParameterError, match="n_components must be a whole number"):
            ridge(word).fit(*rows(100))
