"""Probabilities from scores in bins, against the same from every row."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.isotonic import IsotonicRegression

from streamkern.errors import ParameterError
from streamkern.extensions.classes.calibration_fit import (
    METHODS,
    ScoreSums,
    _likely,
    checked_method,
    fitted_calibrator,
    platt,
    sigmoid_of_sums,
)
from streamkern.extensions.classes.class_errors import ScoreTable
from streamkern.extensions.classes.class_rule import CALIBRATORS

N, KINDS = 4000, ["probabilities", "nothing", "the wrong way", "all"]


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
    for method in ("spline", "sigmoid", "isotonic"):
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


@pytest.mark.parametrize("curve", [lambda s: 2.0 * s - 0.7, lambda s: 3.0 * np.sinh(s) - 1.0])
def test_a_spline_finds_log_odds_of_any_shape_that_rises(curve):
    rng = np.random.default_rng(0)
    scores, at = rng.standard_normal(40_000), np.linspace(-1.5, 1.5, 30)
    is_class = rng.random(len(scores)) < 1 / (1 + np.exp(-curve(scores)))
    scored = table(scores, is_class, None)
    found = {m: fitted_calibrator(m, scored).log_odds(at[:, None])[:, 0] for m in METHODS[1:3]}
    off = {
        m: np.abs(1 / (1 + np.exp(-odds)) - 1 / (1 + np.exp(-curve(at)))).max()
        for m, odds in found.items()
    }
    assert off["spline"] < 0.02
    assert off["spline"] < off["sigmoid"] or off["sigmoid"] < 0.01


def test_a_spline_always_rises_and_goes_on_beyond_its_points():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal(300).round(1)
    found = fitted_calibrator(
        "spline", table(scores, rng.random(300) < 0.4 + 0.1 * np.sign(scores), None)
    )
    odds = found.log_odds(np.linspace(-20, 20, 400)[:, None])[:, 0]
    assert (np.diff(odds) > 0).all()
    far = np.array([[-1000.0], [-1001.0], [1000.0], [1001.0], [np.nan]])
    low, lower, high, higher, unknown = found.log_odds(far)[:, 0]
    (x,), (v,) = found.scores, found.odds
    assert low - lower == pytest.approx((v[1] - v[0]) / (x[1] - x[0]))
    assert higher - high == pytest.approx((v[-1] - v[-2]) / (x[-1] - x[-2]))
    assert np.isnan(unknown)


def test_a_spline_of_scores_that_tell_nothing_is_the_share_of_the_class():
    scores, is_class = np.repeat([-1.0, 1.0], 50), np.tile([True, False, False, False, False], 20)
    found = fitted_calibrator("auto", table(scores, is_class, None))
    assert found.name == "spline"
    alike = fitted_calibrator("sigmoid", table(scores, is_class, None)).log_odds(scores[:, None])
    np.testing.assert_allclose(found.log_odds(scores[:, None]), alike, rtol=1e-12)
    assert alike[0, 0] == pytest.approx(np.log(20 / 80), abs=0.01)


@pytest.mark.parametrize("method", ["auto", "sigmoid", "isotonic", None])
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
        ("spline", {"scores": [[0.0, 1.0]], "odds": [[0.5, 0.2]]}),
        ("spline", {"scores": [[0.0, 0.0]], "odds": [[0.0, 0.2]]}),
        ("spline", {"scores": [[0.0, 1.0]], "odds": [[0.5]]}),
    ],
)
def test_parameters_that_were_tampered_with_are_refused(name, parameters):
    with pytest.raises((KeyError, TypeError, ValueError)):
        CALIBRATORS[name].from_dict(parameters, 1)


def test_a_calibration_that_is_none_of_them_is_refused():
    with pytest.raises(
        ParameterError, match="must be one of auto, spline, sigmoid, isotonic, or None"
    ):
        checked_method("temperature")


# Sigmoids from sums over scores, against the scores.


def sigmoid(scores, is_class, weights=None):
    w = np.ones(len(scores)) if weights is None else weights
    t = np.where(is_class, 1.0, -1.0)
    sums = [np.array([w @ each]) for each in (t, scores, scores**2, scores * t)]
    found = sigmoid_of_sums([ScoreSums(len(scores), w.sum(), *sums)])
    return found.slope[0], found.offset[0]


def loss_and_mean(scores, is_class, weights=None):
    slope, offset = sigmoid(scores, is_class, weights)
    odds, share = slope * scores + offset, np.average(is_class, weights=weights)
    losses = np.logaddexp(0.0, odds) - is_class * odds
    plain = -share * np.log(share) - (1 - share) * np.log1p(-share)
    p = 1 / (1 + np.exp(-odds))
    return *(np.average(each, weights=weights) for each in (losses, p)), plain, share


def drawn(kind, share, seed=0):
    rng = np.random.default_rng(seed)
    is_class = np.arange(N) < max(round(share * N), 2)
    noise = rng.standard_normal(N)
    if kind == "probabilities":  # of a rare region that is known well
        p = rng.beta(share, 1 - share, N)
        return 2 * p - 1 + 0.05 * noise, rng.random(N) < p
    if kind == "heavy tails":
        return 2.0 * is_class - 1 + 0.3 * rng.standard_t(2, N), is_class
    if kind == "one that is far away":
        return np.where(np.arange(N) == N - 1, 1e3, 2.0 * is_class - 1 + 0.3 * noise), is_class
    if kind == "nothing":
        return noise, is_class
    if kind == "the wrong way":
        return noise - is_class, is_class
    return np.where(is_class, 1.0, -1.0), is_class  # all


@pytest.mark.parametrize("share", [0.003, 0.03, 0.5, 0.98])
@pytest.mark.parametrize("kind", [*KINDS, "heavy tails", "one that is far away"])
def test_no_scores_make_the_sigmoid_worse_than_the_share(kind, share):
    scores, is_class = drawn(kind, share)
    for weights in (None, np.random.default_rng(1).random(N) / N):
        loss, _, plain, _ = loss_and_mean(scores, is_class, weights)
        assert loss <= plain * (1 + 1e-3)  # one row counts beside those there are


@pytest.mark.parametrize("share", [0.003, 0.03, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_probability_is_near_the_share(kind, share):
    _, mean, _, found = loss_and_mean(*drawn(kind, share))
    assert mean == pytest.approx(found, rel=0.15)


def test_normal_scores_of_two_equal_classes_have_the_sigmoid_of_discriminant_analysis():
    scores = np.random.default_rng(0).standard_normal(N)
    is_class = np.arange(N) % 2 == 0
    scores[is_class] += 1.5
    known = LinearDiscriminantAnalysis().fit(scores[:, None], is_class)
    expected = known.coef_[0, 0], known.intercept_[0]
    assert sigmoid(scores, is_class) == pytest.approx(expected, rel=5e-3)


def test_one_class_alone_and_scores_that_are_all_alike_have_a_finite_constant():
    for is_class in (np.ones(8, bool), np.zeros(8, bool), np.arange(8) < 3):
        slope, offset = sigmoid(np.full(8, 0.3), is_class)
        assert slope == 0
        assert 1 / 12 < 1 / (1 + np.exp(-offset)) < 11 / 12


@pytest.mark.parametrize("share", [1e-5, 0.003, 0.5, 0.9])
@pytest.mark.parametrize("part", [1e-6, 0.3, 0.5, 1 / 3, 0.999])
def test_points_of_the_mixture_have_its_mean_and_variance(share, part):
    m = 2 * share - 1
    V = part * (1 - m * m)
    points, weights = _likely(m, V, np.sqrt(m * m + V))
    assert (weights.sum(), weights @ points) == pytest.approx((1.0, m), rel=1e-9, abs=1e-12)
    assert weights @ (points - m) ** 2 == pytest.approx(V, rel=1e-6)
