"""Scores in bins: areas and shares against every pair and every row."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tolerances import assert_close

from streamkern.extensions.classes.class_errors import ScoreTable
from streamkern.sources import Block

N, P = 60, 2


def table(scores, is_class, weights=None, centre=0.0, unit=1.0):
    q = scores.shape[1]
    made = ScoreTable(np.full(q, centre), np.full(q, unit))
    made.count(scores, is_class, weights)
    return made


def scored(n=500, q=1, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    is_class = rng.random((n, q)) < 0.3
    return scale * (rng.standard_normal((n, q)) + is_class), is_class, rng.random(n)


@pytest.mark.parametrize(("scale", "unit"), [(1.0, 1.0), (1e-3, 1e-3), (1e3, 1.0)])
def test_the_area_is_within_its_error_of_the_exact_one(scale, unit):
    scores, is_class, weights = scored(scale=scale, q=2)
    made = table(scores, is_class, weights, unit=unit)
    exact = [roc_auc_score(is_class[:, j], scores[:, j], sample_weight=weights) for j in range(2)]
    assert (np.abs(made.auc - exact) <= made.auc_error + 1e-12).all()


def test_equal_scores_count_half():
    is_class = np.array([[True], [False], [True], [False]])
    made = table(np.array([[2.0], [2.0], [3.0], [1.0]]), is_class)
    assert made.auc[0] == pytest.approx(roc_auc_score(is_class[:, 0], [2, 2, 3, 1]))
    assert made.auc_error[0] == pytest.approx(1 / 8)


def test_the_area_of_one_class_alone_is_unknown():
    made = table(np.zeros((3, 1)), np.ones((3, 1), dtype=bool))
    assert np.isnan(made.auc[0])


def test_bins_know_the_mean_score_and_the_share_of_the_class():
    scores, is_class, weights = scored()
    means, held, shares = table(scores, is_class, weights).shares(0)
    assert (np.diff(means) > 0).all()
    assert_close(held.sum(), weights.sum())
    assert_close(held @ means, weights @ scores[:, 0])
    assert_close(held @ shares, weights @ is_class[:, 0])


def test_scores_of_any_size_have_a_bin():
    scores = np.array([[-1e300], [1e300], [0.0], [-0.0]])
    made = table(scores, np.ones((4, 1), dtype=bool), unit=1e-30)
    assert made.weights.sum() == 4


def test_many_classes_have_fewer_bins():
    sizes = [ScoreTable(np.zeros(q), np.ones(q)).weights.nbytes for q in (1, 100, 1024)]
    assert max(sizes) <= 16 << 20


def test_rows_count_by_weight_and_class_and_those_that_are_not_finite_do_not():
    y, scores = np.array([[1.0, -1.0], [np.nan, np.nan], [1.0, 1.0]]), np.zeros((3, 2))
    scores[2, 0] = np.inf
    found = ScoreTable(np.zeros(2), np.ones(2))
    found.add(Block(np.ones((3, 1)), y, 0, np.array([2.5, 1.0, 1.0])), scores)
    # Of the first row alone: it is of the first class, and not of the second.
    assert found.weights.sum(axis=2).tolist() == [[0.0, 2.5], [2.5, 0.0]]
