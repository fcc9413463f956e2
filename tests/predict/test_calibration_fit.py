"""Probabilities from scores in bins, against the same from every row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from streamkern.errors import ParameterError
from streamkern.predict.calibration_fit import checked_method, fitted_calibrator, platt
from streamkern.predict.class_errors import ScoreTable
from streamkern.predict.class_rule import CALIBRATORS


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(n)
    chance = 1 / (1 + np.exp(-(2.0 * scores - 0.7)))
    return scores, rng.random(n) < chance, rng.random(n) + 0.5


def table(scores, is_class, weights):
    made = ScoreTable(np.zeros(1), np.ones(1))
    made.count(scores[:, None], is_class[:, None], weights)
    return made


def sigmoid_by_hand(scores, is_class, weights):
    """Platt's likelihood with his targets, minimised by a general method."""
    N, rest = weights[is_class].sum(), weights[~is_class].sum()
    t = np.where(is_class, (N + 1) / (N + 2), 1 / (rest + 2))

    def loss(parameters):
        p = 1 / (1 + np.exp(-(parameters[0] * scores + parameters[1])))
        return -(weights * (t * np.log(p) + (1 - t) * np.log(1 - p))).sum()

    return minimize(loss, [1.0, 0.0], tol=1e-10).x


def test_the_sigmoid_is_the_most_likely_one():
    scores, is_class, weights = rows()
    found = platt(scores, weights, is_class.astype(float))
    assert found == pytest.approx(sigmoid_by_hand(scores, is_class, weights), rel=1e-4)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_sigmoid_does_not_mind_the_unit_of_scores(scale):
    scores, is_class, weights = rows()
    slope, offset = platt(scores, weights, is_class.astype(float))
    found = platt(1.0 + scale * scores, weights, is_class.astype(float))
    assert found == pytest.approx((slope / scale, offset - slope / scale), rel=1e-6)


def test_scores_that_tell_all_have_a_steep_but_finite_sigmoid():
    scores = np.array([-1.0, -0.9, 0.9, 1.0])
    slope, offset = platt(scores, np.ones(4), np.array([0.0, 0.0, 1.0, 1.0]))
    p = 1 / (1 + np.exp(-(slope * scores + offset)))
    # Platt's targets for two rows of each.
    np.testing.assert_allclose(p[[0, 3]], [1 / 4, 3 / 4], atol=0.03)


@pytest.mark.parametrize("scores", [np.zeros(4), np.array([1.0, 1.0, -1.0, -1.0])])
def test_scores_that_tell_nothing_give_everyone_the_share_of_the_class(scores):
    slope, offset = platt(scores, np.ones(4), np.array([0.0, 0.0, 1.0, 1.0]))
    assert (slope, offset) == (0.0, 0.0)


def test_bins_cost_the_sigmoid_little():
    found = fitted_calibrator("sigmoid", table(*rows()))
    by_hand = sigmoid_by_hand(*rows())
    assert [found.slope[0], found.offset[0]] == pytest.approx(by_hand, abs=2e-3)


def test_weights_count_as_rows_that_are_there_more_often():
    scores, is_class, _ = rows()
    times = np.random.default_rng(1).integers(0, 4, len(scores))
    repeated = table(scores.repeat(times), is_class.repeat(times), None)
    for method in ("sigmoid", "isotonic"):
        weighted = fitted_calibrator(method, table(scores, is_class, times.astype(float)))
        expected = fitted_calibrator(method, repeated)
        at = np.linspace(-3, 3, 50)[:, None]
        np.testing.assert_allclose(weighted.log_odds(at), expected.log_odds(at), atol=1e-9)


def test_isotonic_probabilities_are_those_of_scikit_learn():
    scores, is_class, weights = rows()
    found = fitted_calibrator("isotonic", table(scores, is_class, weights))
    least = 1 / (weights.sum() + 2)
    expected = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip")
    expected.fit(scores, is_class, sample_weight=weights)
    p = 1 / (1 + np.exp(-found.log_odds(scores[:, None])[:, 0]))
    assert np.abs(p - expected.predict(scores)).mean() < 0.005
    assert (np.diff(p[np.argsort(scores)]) >= -1e-15).all()


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", None])
def test_a_calibrator_goes_through_its_parameters(method):
    found = fitted_calibrator(method, table(*rows()))
    again = CALIBRATORS[found.name].from_dict(found.as_dict(), 1)
    at = np.linspace(-2, 2, 9)[:, None]
    np.testing.assert_array_equal(again.log_odds(at), found.log_odds(at))
    np.testing.assert_array_equal(again.decisions(at), found.decisions(at))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("sigmoid", {"slope": [1.0, 2.0], "offset": [0.0]}),
        ("sigmoid", {"slope": [float("nan")], "offset": [0.0]}),
        ("sigmoid", {}),
        ("isotonic", {"scores": [[0.0, 1.0]], "probabilities": [[0.5, 0.2]]}),
        ("isotonic", {"scores": [[0.0, 1.0]], "probabilities": [[0.0, 0.2]]}),
        ("isotonic", {"scores": [], "probabilities": []}),
    ],
)
def test_parameters_that_were_tampered_with_are_refused(name, parameters):
    with pytest.raises((KeyError, TypeError, ValueError)):
        CALIBRATORS[name].from_dict(parameters, 1)


def test_a_calibration_that_is_none_of_them_is_refused():
    with pytest.raises(ParameterError, match="must be one of sigmoid, isotonic, or None"):
        checked_method("temperature")
