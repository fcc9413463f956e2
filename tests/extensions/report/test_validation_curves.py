"""Curves of a report: those of the fit, in standard deviations of the target."""

import numpy as np
import pytest

import streamkern
from streamkern import Gaussian, RandomFeatureRidge
from streamkern.extensions.report.choice_figures import (
    components_curve,
    penalty_curve,
    sparsity_curve,
)

N = 500


def rows(q=None):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3))
    smooth = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], 50 + 7 * X[:, 0] * X[:, 2]], axis=1)
    y = smooth + 0.2 * rng.standard_normal((N, 2))
    return X, y[:, 0] if q is None else y[:, :q]


def fitted(q=None, *, keep_moments=True, **options):
    options = {"n_components": 128, "precision": "double"} | options
    return RandomFeatureRidge(Gaussian(1.5), **options).fit(*rows(q), keep_moments=keep_moments)


def test_the_penalty_curve_is_that_of_the_report_over_the_deviation_and_a_given_one_has_none():
    model, (_, y) = fitted(), rows()
    curve, said = penalty_curve(model.model_), model.report_["alpha_curve"]
    assert curve.criterion == "cv"
    assert curve.x.tolist() == said["alphas"]
    assert curve.values == pytest.approx(np.array(said["values"]) / y.std(), rel=1e-9)
    assert curve.errors == pytest.approx(np.array(said["standard_errors"]) / y.std(), rel=1e-9)
    assert curve.x[curve.chosen[0]] == model.alpha_
    assert curve.folds.shape == (5, 30)
    # Folds of 100 rows each: the mean of squares is that of all rows.
    assert np.sqrt((curve.folds**2).mean(axis=0)) == pytest.approx(curve.values, rel=1e-9)
    assert (curve.targets, curve.threshold) == (None, None)
    given = fitted(alpha=0.5).model_
    assert (penalty_curve(given), components_curve(given)) == (None, None)


@pytest.mark.parametrize("per_target", [False, True])
def test_several_targets_are_averaged_as_squares_unless_each_has_its_own_curve(per_target):
    model, (_, y) = fitted(2, per_target=per_target), rows(2)
    curve = penalty_curve(model.model_)
    each = np.array(model.report_["alpha_curve"]["values"]) / y.std(axis=0)
    assert curve.values == pytest.approx(np.sqrt((each**2).mean(axis=1)), rel=1e-9)
    assert curve.x[curve.chosen].tolist() == np.atleast_1d(model.alpha_).tolist()
    assert (curve.targets is not None) == per_target
    if per_target:
        assert np.array_equal(curve.targets.argmin(axis=0), curve.chosen)


def test_the_rule_of_one_standard_error_has_a_threshold():
    curve = penalty_curve(fitted(one_standard_error=True).model_)
    (at,) = curve.chosen
    assert curve.values[at] <= curve.threshold < curve.values[at + 1]
    best = int(curve.values.argmin())
    assert best < at
    assert curve.threshold == pytest.approx(curve.values[best] + curve.errors[best], rel=0.01)


@pytest.mark.parametrize("criterion", ["gcv", "evidence"])
def test_criteria_without_folds_have_curves_too(criterion):
    model, (_, y) = fitted(alpha=criterion), rows()
    curve = penalty_curve(model.model_)
    assert (curve.folds, curve.errors) == (None, None)
    best = curve.values.argmax() if criterion == "evidence" else curve.values.argmin()
    assert curve.chosen == [best]
    said = np.array(model.report_["alpha_curve"]["values"], dtype=float)
    said = said if criterion == "evidence" else said / y.std()
    assert curve.values == pytest.approx(said, rel=1e-9)


@pytest.mark.parametrize("alpha", ["cv", "gcv", "evidence"])
def test_a_model_that_was_loaded_has_the_curve_of_its_card(alpha, tmp_path):
    model = fitted(alpha=alpha)
    model.save(tmp_path / "model.h5")
    loaded = streamkern.load(tmp_path / "model.h5")
    curve, expected = penalty_curve(loaded.model_), penalty_curve(model.model_)
    assert curve.values == pytest.approx(expected.values, rel=1e-9)
    assert (curve.chosen, curve.folds) == (expected.chosen, None)


def test_smaller_numbers_of_features_are_tried_as_auto_would_and_as_fits_of_that_size():
    model, (_, y) = fitted(), rows()
    curve = components_curve(model.model_)
    # Another length of the same draws: the leading frequencies of orthogonal blocks are the same.
    for at, fit, rel in ((0, fitted(n_components=64), 1e-6), (-1, model, 1e-9)):
        assert curve.values[at] == pytest.approx(fit.report_["cv_rmse"] / y.std(), rel=rel)
    auto = fitted(n_components="auto")
    assert auto.moments_.feature_map.n_components == 256
    expected = components_curve(auto.model_)
    assert curve.x.tolist() == [64.0, 128.0]
    assert expected.x.tolist() == [64.0, 128.0, 256.0]
    assert curve.x[curve.chosen[0]] == 128.0
    assert expected.x[expected.chosen[0]] == auto.report_["n_components"]


def test_sparse_models_have_a_curve_over_what_is_kept():
    model = fitted(sparse="auto")
    curve = sparsity_curve(model.model_)
    assert curve.x.tolist() == model.report_["sparse_curve"]["n_components"]
    assert curve.x[curve.chosen[0]] == model.report_["n_components"]
    assert components_curve(model.model_) is None
