"""Rows predicted, by the model or that without their fold: scores and counts against loops."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score
from tolerances import assert_close

from streamkern.errors import DataError
from streamkern.features import Identity, RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.predict.evaluation import Evaluation, FoldPredictors, PredictionErrors
from streamkern.predict.predictor import Predictor
from streamkern.registry import extension
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


def pair_counts():
    return extension("report", "pair_counts").PairCounts


def bins(q=2):
    return pair_counts().about(np.arange(float(q)), np.full(q, 0.8), np.full(q, 0.5))


def statistic(q=2, rule=None):
    by_fold = FoldPredictors(RowFolds(K, 5) if rule is None else rule, predictors(q))
    return Evaluation(by_fold, PredictionErrors(q), bins(q))


def predicted_by_hand(X, q=2):
    made = predictors(q)
    folds = [naive.fold_of_row(i, K, 5) for i in range(N)]
    return np.array([x @ made[k].coef + k for x, k in zip(X, folds, strict=True)])


def bin_of(value, edges):
    """One more for every edge that is reached after the first, which is infinite."""
    return sum(value >= edge for edge in edges[1:])


def counts_by_hand(predicted, y, edges, others, second):
    table = np.zeros((y.shape[1], edges.shape[1] - 1, others.shape[1] - 1), dtype=int)
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
    residuals = counts_by_hand(predicted, y, edges.values, edges.errors, lambda f, t: t - f)
    zero = statistic(q)
    for found in (naive.accumulated(zero, cut), naive.merged(zero, cut, chance)):
        errors, counts = found.measures
        assert np.array_equal(counts.pairs, pairs)
        assert np.array_equal(counts.residuals, residuals)
        assert errors.n_rows == N
        assert_close(errors.weight, s.sum())
        assert_close(errors.squared, (s[:, None] * (y - predicted) ** 2).sum(axis=0))


def test_a_target_that_is_constant_has_bins_too():
    edges = pair_counts().about(np.array([3.0]), np.zeros(1), np.zeros(1))
    pairs, _ = edges.counted(np.full((5, 1), 3.0), np.full((5, 1), 3.0))
    # On the edge in the middle of 96 bins, which belongs to the bin above it.
    assert pairs.sum() == pairs[0, 49, 49] == 5


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


# Scores, against scikit-learn's too.

SCORES = ["rmse", "mae", "r2"]


def fourier(q: int = 2) -> Predictor:
    phi = RandomFourierFeatures(Gaussian(1.0), 8).draw(P)
    coef = np.random.default_rng(1).standard_normal((8, q))
    return Predictor(phi, coef, np.arange(1.0, q + 1), "double")


def errors_of(made: Predictor) -> Evaluation:
    return Evaluation(made, PredictionErrors(made.n_targets))


def linear(coef: float = 1.0) -> Predictor:
    """The function that says `coef` times the only input."""
    return Predictor(Identity().draw(1), np.array([[coef]]), np.zeros(1), "double")


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
@naive.quick
@given(cuts=naive.cuts(N), chance=st.randoms(use_true_random=False))
def test_any_cuts_and_merges_give_the_scores_of_the_formulas(q, weighted, cuts, chance):
    X, y, s = rows(q)
    made = fourier(q)
    cut = naive.blocks(X, y, cuts, s if weighted else None)
    phi = [naive.fourier_features(x, made.feature_map.frequencies, None) for x in X]
    predicted = np.array(phi) @ made.coef + made.intercept
    expected = naive.scores(predicted, y, s if weighted else np.ones(N))
    zero = errors_of(made)
    for found in (naive.accumulated(zero, cut), naive.merged(zero, cut, chance)):
        (errors,) = found.measures
        for score in SCORES:
            assert_close(getattr(errors, score), expected[score])
        assert errors.n_rows == N


@pytest.mark.parametrize("coef", [1.0, 2.0], ids=["hit", "missed"])
@pytest.mark.parametrize("value", [0.1, 3.0])
def test_r2_of_a_constant_target_is_that_of_scikit_learn(coef, value):
    y = np.full((10, 1), value)
    (errors,) = naive.accumulated(errors_of(linear(coef)), naive.blocks(y, y, [4])).measures
    assert errors.r2.tolist() == [r2_score(y, coef * y)]


def test_errors_of_targets_far_from_zero_keep_their_digits():
    X, far = rows()[0][:, :1], 2.0**30
    y = far + np.round(X * 2**10) / 2**10
    made = Predictor(Identity().draw(1), np.ones((1, 1)), np.full(1, far), "double")
    (errors,) = naive.accumulated(errors_of(made), naive.blocks(X, y, [7])).measures
    expected = naive.scores(made.predict(X), y, np.ones(N))
    for score in SCORES:
        # The predictions and targets themselves are rounded in steps of 2e-7.
        assert_close(getattr(errors, score), expected[score], steps=2, size=far)


def test_a_row_that_cannot_be_predicted_shows_in_the_scores():
    X, y, _ = rows()
    X[3, 0] = np.nan
    (errors,) = naive.accumulated(errors_of(fourier()), naive.blocks(X, y)).measures
    assert np.isnan(errors.rmse).all()
    assert np.isnan(errors.mae).all()
    assert np.isnan(errors.r2).all()
