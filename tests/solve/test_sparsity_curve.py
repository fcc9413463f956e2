"""How many features a sparse model has, by errors on rows left out."""

from __future__ import annotations

import json

import naive
import numpy as np
import pytest
from tolerances import assert_close

from streamkern.features import Identity
from streamkern.solve.cross_validation import HeldOut
from streamkern.solve.sparse_selection import (
    METHODS,
    Sparsifier,
    SparsityCurve,
    sparse_errors,
    sparse_sizes,
    supports,
)
from streamkern.statistics import Moments

N, D, K = 120, 16, 3
SIZES = [1, 3, 8, 15]
every_method = pytest.mark.parametrize("method", list(METHODS))
every_intercept = pytest.mark.parametrize("intercept", [True, False])
every_alpha = pytest.mark.parametrize("alpha", [0.4, np.array([0.4, 9.0])], ids=["one", "each"])


def rows():
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((N, D)) @ (np.eye(D) + 0.5 * rng.standard_normal((D, D)))
    y = Phi @ rng.standard_normal((D, 2)) ** 3 + 3 * rng.standard_normal((N, 2)) + [5.0, -40.0]
    return Phi + rng.standard_normal(D), y, rng.random(N) + 0.5


FOLDS = np.random.default_rng(1).choice(K, N, p=[0.5, 0.3, 0.2])


def moments(those) -> Moments:
    Phi, y, s = (part[those] for part in rows())
    zero = Moments(Identity().draw(D), 2, precision="double", feature_shift=np.full(D, 0.3))
    return naive.accumulated(zero, naive.blocks(Phi, y, [], s))


@every_method
@every_intercept
@every_alpha
def test_errors_are_those_of_models_that_are_chosen_and_fitted_again(method, intercept, alpha):
    Phi, y, s = rows()
    total, sparsifier = moments(slice(None)), Sparsifier(method, alpha, 0.0)
    for k in range(K):
        held = k == FOLDS
        found = sparse_errors(total, moments(held), SIZES, sparsifier, intercept)
        assert_close(found.weight, s[held].sum())
        others = moments(~held).centred(intercept=intercept)
        for sse, support in zip(found.sse, supports(others, 0.4, SIZES, method), strict=True):
            expected = [
                naive.error_without(Phi[:, support], y, s, each, held, intercept=intercept)[j]
                for j, each in enumerate(np.broadcast_to(alpha, 2))
            ]
            assert sse == pytest.approx(expected, rel=1e-8)


def test_features_are_chosen_without_the_rows_that_are_left_out():
    # Only the rows left out say that feature 0 explains the target.
    rng = np.random.default_rng(2)
    Phi, held = rng.standard_normal((N, D)), np.arange(N) < N // 2
    y = np.where(held, 100.0 * Phi[:, 0], Phi[:, 1])[:, None]
    zero = Moments(Identity().draw(D), 1, precision="double")
    total, fold = (
        naive.accumulated(zero, naive.blocks(Phi[those], y[those])) for those in (slice(None), held)
    )
    found = sparse_errors(total, fold, [1], Sparsifier("forward", 1e-6, 0.0), True)
    w, mu = naive.weighted_ridge(Phi[~held, 1:2], y[~held], np.ones(N // 2), 1e-6, intercept=True)
    expected = ((y[held] - mu - Phi[held, 1:2] @ w) ** 2).sum(axis=0)
    assert found.sse[0] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("n", [1, 2, 7, 4096])
def test_sizes_go_from_one_to_all_by_halves_of_octaves(n):
    sizes = sparse_sizes(n)
    assert sizes[0] == 1
    assert sizes[-1] == n
    assert (np.diff(sizes) > 0).all()
    ratios = np.divide(sizes[1:], sizes[:-1])
    assert (ratios <= np.sqrt(2) * (1 + 0.5 / np.array(sizes[:-1])) + 0.5).all()
    assert all(isinstance(size, int) for size in sizes)
    assert sparse_sizes(64) == [1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64]


# Mean squared errors of two folds, of one target, for four sizes.
def curve(*scores, scale=(1.0,), weights=(1.0, 1.0)):
    held_out = [
        HeldOut(weight, weight * np.array(fold, dtype=float).reshape(len(fold), -1), 10)
        for weight, fold in zip(weights, scores, strict=True)
    ]
    return SparsityCurve.of_folds([2, 4, 8, 16][: len(scores[0])], held_out, np.array(scale))


def test_the_fewest_within_one_standard_error_of_the_best_are_taken():
    # The best has a mean of 2 and, over two folds at 1.5 and 2.5, a standard error of 0.5.
    assert curve([3.0, 2.4, 1.5, 2.2], [3.0, 2.4, 2.5, 2.2]).choose() == 1
    assert curve([3.0, 2.6, 1.5, 2.2], [3.0, 2.6, 2.5, 2.2]).choose() == 2
    assert curve([2.4, 2.6, 1.5, 2.2], [2.4, 2.6, 2.5, 2.2]).choose() == 0
    assert curve([3.0, 2.6, 2.5, 2.0], [3.0, 2.6, 2.5, 2.0]).choose() == 3


def test_targets_count_in_shares_of_their_variances():
    # The second target is large and says nothing; the first one decides.
    made = curve([[4, 1e6], [2, 1e6], [1, 1e6]], [[4, 1e6], [2, 1e6], [1, 1e6]], scale=(1.0, 1e7))
    assert made.choose() == 2
    scores, errors = made.relative()
    assert_close(scores, [2.05, 1.05, 0.55])
    assert_close(errors, np.zeros(3), size=1.0)


def test_folds_count_by_their_weights():
    made = curve([1.0, 4.0], [5.0, 2.0], weights=(3.0, 1.0))
    assert_close(made.rmse[:, 0] ** 2, [2.0, 3.5])
    assert_close(made.rmse_of(4), np.sqrt([3.5]))


@pytest.mark.parametrize("q", [1, 2])
def test_the_curve_is_plain_json(q):
    made = curve([[1.0] * q, [4.0] * q], [[3.0] * q, [4.0] * q], scale=(2.0,) * q)
    said = json.loads(json.dumps(made.as_dict(flat=q == 1)))
    assert said["n_components"] == [2, 4]
    assert said["cv_rmse"] == made.rmse[:, 0].tolist() if q == 1 else made.rmse.tolist()
    assert said["relative_mse"] == pytest.approx([1.0, 2.0])
    assert said["standard_errors"] == pytest.approx([0.5, 0.0])
