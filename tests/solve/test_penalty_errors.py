"""Leave-one-out errors of every penalty, without fitting again."""

import naive
import numpy as np
import pytest
from tolerances import assert_close

from streamkern.features import RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.solve import Eigenbasis, penalty_errors
from streamkern.solve.penalty_errors import PenaltyErrors, PenaltyModels, leave_one_out_scores
from streamkern.statistics import Moments

N, P, D, Q = 40, 3, 14, 3
ALPHAS = np.array([0.02, 0.2, 5.0])


def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = np.stack([np.sin(X[:, 0]), 3 + X[:, 1] * X[:, 2], 1e6 * X[:, 0]], axis=1)
    return X, y * (1 + 0.2 * rng.standard_normal(y.shape)), rng.choice([0.0, 0.5, 2.0], N)


def empty(X, y, s, alphas=ALPHAS, *, intercept=True, precision="double"):
    """The statistic of no rows, for the models of these; and the features of the rows."""
    feature_map = RandomFourierFeatures(Gaussian(1.5), D).draw(P)
    zero = Moments(feature_map, Q, precision="double")
    moments = naive.accumulated(zero, naive.blocks(X, y, (), s)).centred(intercept=intercept)
    models = PenaltyModels.of(feature_map, Eigenbasis.of(moments), alphas, precision)
    return PenaltyErrors(models, len(alphas), Q), feature_map.transform(X)


def squared(found):
    return found.squared * found.models.target_unit**2


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_errors_are_those_of_fitting_without_each_row(precision, intercept, weighted):
    X, y, s = table()
    s = s if weighted else np.ones(N)
    zero, Phi = empty(X, y, s, intercept=intercept, precision=precision)
    found = naive.accumulated(zero, naive.blocks(X, y, (), s))
    unit = found.models.target_unit
    for alpha, sums in zip(ALPHAS, squared(found), strict=True):
        errors = naive.left_out_errors(Phi, y, s, alpha, intercept=intercept)
        expected = (s[:, None] * errors**2).sum(axis=0)
        dtype = np.float32 if precision == "single" else np.float64
        assert_close(sums / unit**2, expected / unit**2, dtype=dtype, steps=1000)
    assert found.weight == pytest.approx(s.sum())


def test_blocks_of_rows_penalties_and_targets_give_the_same_errors(monkeypatch):
    X, y, s = table()
    zero, _ = empty(X, y, s)
    whole = naive.accumulated(zero, naive.blocks(X, y, (), s))
    for pairs in (1, 2, 4, 6):
        monkeypatch.setattr(penalty_errors, "_PAIRS", pairs)
        monkeypatch.setattr(penalty_errors, "_ROWS", 7)
        parts = naive.accumulated(zero, naive.overwritten(naive.blocks(X, y, [11, 30], s)))
        assert_close(parts.squared, whole.squared)
        assert_close(parts.spare, whole.spare)


def test_models_travel_once_and_sums_without_them():
    X, y, s = table()
    zero, _ = empty(X, y, s)
    found = naive.accumulated(zero, naive.blocks(X, y, (), s))
    assert found.detached().keys() == {"weight", "squared", "spare"}
    again = zero.attached(found.detached())
    assert np.array_equal(again.merge(found).squared, 2 * found.squared)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_scores_are_means_of_squares_and_infinite_where_these_are_rounding(precision):
    X, y, s = table()
    feature_map = RandomFourierFeatures(Gaussian(1.5), 2 * N).draw(P)
    alphas = np.append(1e-14, ALPHAS)
    zero = Moments(feature_map, Q, precision=precision)
    total, rows = naive.accumulated(zero, naive.blocks(X, y, (), s)), naive.blocks(X, y, (), s)
    basis = Eigenbasis.of(total.centred())
    found = leave_one_out_scores(total, basis, alphas, rows)
    for alpha, scores in zip(ALPHAS, found[1:], strict=True):
        errors = naive.left_out_errors(feature_map.transform(X), y, s, alpha, intercept=True)
        expected = (s[:, None] * errors**2).sum(axis=0) / s.sum()
        assert scores == pytest.approx(expected, rel=1e-2 if precision == "single" else 1e-8)
    # More features than rows fit all of these at the least penalty, and tell nothing of others.
    assert np.isinf(found[0]).all()
    assert leave_one_out_scores(total, basis, alphas[:1], rows) is None
