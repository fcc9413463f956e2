"""Rows predicted without their fold: squared errors, and counts in bins, against plain loops."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from streamkern.errors import DataError
from streamkern.features import Identity
from streamkern.predict.evaluation import (
    Evaluation,
    FoldPredictors,
    PairBins,
    PairCounts,
    PredictionErrors,
)
from streamkern.predict.predictor import Predictor
from streamkern.sources import Block
from streamkern.statistics import RowFolds, block_folds

N, P, K = 60, 2, 3


def rows(q=2):
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, P)), 3 * rng.standard_normal((N, q)), rng.random(N) + 0.1


def predictors(q=2):
    """A linear function for every fold."""
    feature_map, rng = Identity().draw(P), np.random.default_rng(1)
    return {
        k: Predictor(feature_map, rng.standard_normal((P, q)), np.full(q, k), "double")
        for k in range(K)
    }


def bins(q=2):
    return PairBins.about(np.arange(float(q)), np.full(q, 0.8), np.full(q, 0.5))


def statistic(q=2, rule=None):
    by_fold = FoldPredictors(RowFolds(K, 5) if rule is None else rule, predictors(q))
    return Evaluation(by_fold, PredictionErrors(q), PairCounts(bins(q)))


def predicted_by_hand(X, q=2):
    made = predictors(q)
    folds = [naive.fold_of_row(i, K, 5) for i in range(N)]
    return np.array([x @ made[k].coef + k for x, k in zip(X, folds, strict=True)])


def bin_of(value, edges):
    """0 below the first edge, one more for every edge that is reached."""
    return sum(value >= edge for edge in edges)


def counts_by_hand(predicted, y, edges, others, second):
    table = np.zeros((y.shape[1], edges.shape[1] + 1, others.shape[1] + 1), dtype=int)
    for f, t in zip(predicted, y, strict=True):
        for j in range(y.shape[1]):
            table[j, bin_of(f[j], edges[j]), bin_of(second(f[j], t[j]), others[j])] += 1
    return table


@pytest.mark.parametrize("q", [1, 2])
@naive.quick
@given(cuts=naive.cuts(N), chance=st.randoms(use_true_random=False))
def test_any_cuts_and_merges_give_the_counts_of_plain_loops(q, cuts, chance):
    X, y, s = rows(q)
    cut, predicted, edges = naive.blocks(X, y, cuts, s), predicted_by_hand(X, q), bins(q)
    pairs = counts_by_hand(predicted, y, edges.values, edges.values, lambda _, t: t)
    residuals = counts_by_hand(predicted, y, edges.values, edges.residuals, lambda f, t: t - f)
    zero = statistic(q)
    for found in (naive.accumulated(zero, cut), naive.merged(zero, cut, chance)):
        errors, counts = found.measures
        assert np.array_equal(counts.pairs, pairs)
        assert np.array_equal(counts.residuals, residuals)
        assert errors.n_rows == N
        assert_close(errors.weight, s.sum())
        assert_close(errors.squared, (s[:, None] * (y - predicted) ** 2).sum(axis=0))


def test_counts_add_up_to_the_rows_wherever_they_lie():
    X, y, _ = rows()
    _, found = naive.accumulated(statistic(), naive.blocks(X, 1e6 * y, [20])).measures
    assert found.pairs.sum(axis=(1, 2)).tolist() == [N, N]
    assert found.residuals.sum(axis=(1, 2)).tolist() == [N, N]
    # All but what is hit by chance lies beyond the edges.
    assert found.pairs[:, :, 1:-1].sum() == 0
    assert found.residuals[:, :, [0, -1]].sum() == 2 * N


def test_a_target_that_is_constant_has_bins_too():
    edges = PairBins.about(np.array([3.0]), np.zeros(1), np.zeros(1))
    pairs, _ = edges.counted(np.full((5, 1), 3.0), np.full((5, 1), 3.0))
    assert pairs.sum() == pairs[0, 1:-1, 1:-1].sum() == 5


def test_rows_that_were_left_out_keep_their_folds():
    X, y, _ = rows()
    kept = np.arange(N) % 4 > 0
    block = Block(X, y, 0).where(kept)
    found = statistic()
    found.update([block])
    expected = bins().counted(predicted_by_hand(X)[kept], y[kept])
    assert np.array_equal(found.measures[1].pairs, expected[0])


def test_a_row_of_a_fold_without_rows_is_refused():
    X, y, _ = rows()
    found = statistic(rule=block_folds(N, K))
    del found.predictor.predictors[1]
    with pytest.raises(DataError, match="row 20 is in fold 2, which had no rows"):
        found.update(naive.blocks(X, y))
