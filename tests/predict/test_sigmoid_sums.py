"""Sigmoids from sums over scores, against the scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from streamkern.predict.calibration_fit import ScoreSums, _likely, sigmoid_of_sums

N, KINDS = 4000, ["probabilities", "nothing", "the wrong way", "all"]


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
