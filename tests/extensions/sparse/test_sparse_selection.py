"""Which features forward selection and the lasso choose from G and C."""

import json

import naive
import numpy as np
import pytest
from sklearn.linear_model import lars_path
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.extensions.sparse.selection import (
    METHODS,
    Sparsifier,
    SparsityCurve,
    checked_size,
    sparse_errors,
    sparse_sizes,
)
from streamkern.features import Identity
from streamkern.solve.cross_validation import HeldOut
from streamkern.statistics import CentredMoments, Moments, Split, Triangle

N, D, K = 90, 14, 3
SIZES = [1, 2, 5, 9, 13]
every_method = pytest.mark.parametrize("method", list(METHODS))
every_alpha = pytest.mark.parametrize("alpha", [0.0, 0.5, 30.0])
every_intercept = pytest.mark.parametrize("intercept", [True, False])


def table(q=1, seed=0):
    """Features that resemble each other, of different sizes, and targets on a few of them."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(D) + 0.6 * rng.standard_normal((D, D))
    Phi = rng.standard_normal((N, D)) @ mixing * np.logspace(-0.5, 0.5, D) + rng.standard_normal(D)
    y = Phi @ rng.standard_normal((D, q)) ** 3 + rng.standard_normal((N, q))
    return Phi, y * np.logspace(0, 2, q) + 3.0


def centred(Phi, y, *, intercept=True):
    return (Phi - Phi.mean(axis=0), y - y.mean(axis=0)) if intercept else (Phi, y)


def moments(Phi, y, *, intercept=True) -> CentredMoments:
    A, B = centred(Phi, y, intercept=intercept)
    means = (Phi - A)[0], (y - B)[0]
    gram = Triangle.of(A.T @ A)
    return CentredMoments(
        gram, A.T @ B, (B**2).sum(axis=0), float(len(A)), *means, intercept=intercept
    )


def supports(moments, alpha, sizes, method="forward"):
    return Sparsifier(method, alpha, floor=0.0).supports(moments, sizes)


def augmented(Phi, y, alpha):
    """Rows whose least squares are the ridge objective, of features of length 1 and targets too."""
    A, B = centred(Phi, y)
    rows = np.vstack([A, np.sqrt(alpha) * np.eye(A.shape[1])])
    targets = np.vstack([B, np.zeros((A.shape[1], B.shape[1]))])
    return rows / np.linalg.norm(rows, axis=0), targets / np.linalg.norm(B, axis=0)


def on_the_path(Phi, y, alpha, K) -> set[int]:
    rows, targets = augmented(Phi, y, alpha)
    _, _, coef = lars_path(rows, targets[:, 0], method="lasso")
    used = coef != 0
    return set(np.flatnonzero(used[:, (used.sum(axis=0) == K).argmax()]))


@every_alpha
@every_intercept
@pytest.mark.parametrize("q", [1, 3])
def test_forward_selection_adds_what_new_fits_of_every_candidate_would_add(alpha, intercept, q):
    Phi, y = table(q)
    chosen = supports(moments(Phi, y, intercept=intercept), alpha, SIZES)
    order = naive.forward_selection(*centred(Phi, y, intercept=intercept), alpha, max(SIZES))
    for size, support in zip(SIZES, chosen, strict=True):
        assert support.tolist() == sorted(order[:size])


@every_alpha
def test_a_path_has_the_features_that_it_has_on_rows_where_they_first_are_so_many(alpha):
    Phi, y = table()
    for size, support in zip(SIZES, supports(moments(Phi, y), alpha, SIZES, "lasso"), strict=True):
        assert set(support) == on_the_path(Phi, y, alpha, size)


@pytest.mark.parametrize("seed", range(5))
def test_a_feature_that_left_the_path_of_the_lasso_is_not_chosen(seed):
    # Of so few sizes that the path is followed only as far as it must be.
    Phi, y = table(seed=seed)
    for size in (3, 8, 12):
        (support,) = supports(moments(Phi, y), 0.1, [size], "lasso")
        assert set(support) == on_the_path(Phi, y, 0.1, size)


@every_method
@pytest.mark.parametrize("q", [1, 3])
def test_so_many_features_are_chosen_as_were_asked_for_whatever_the_other_sizes(method, q):
    made, sizes = moments(*table(q)), [5, 1, D, 13, 5]
    together = supports(made, 0.3, sizes, method)
    for size, support in zip(sizes, together, strict=True):
        assert len(support) == size
        assert (np.diff(support) > 0).all()
        assert 0 <= support[0] <= support[-1] < D
        (alone,) = supports(made, 0.3, [size], method)
        assert np.array_equal(alone, support)


@every_method
def test_units_and_constant_targets_do_not_matter(method):
    Phi, y = table(2)
    constant = np.column_stack([y[:, 0], np.full(N, 7.0), y[:, 1]])

    def chosen(alpha, features, targets):
        return [
            each.tolist() for each in supports(moments(features, targets), alpha, SIZES, method)
        ]

    plain = chosen(0.5, Phi, y)
    assert chosen(0.5, Phi, y * [1e-9, 1e6]) == plain
    assert chosen(0.5, Phi, constant) == plain
    # The units of features do not matter without a penalty.
    assert chosen(0.0, Phi * np.logspace(-4, 4, D), y) == chosen(0.0, Phi, y)


@every_method
def test_one_of_two_equal_features_is_enough_except_for_the_lasso_with_a_penalty(method):
    Phi, y = table()
    twice = np.repeat(Phi, 2, axis=1)
    (support,) = supports(moments(twice, y), 1e-3, [6], method)
    # The grouping effect of the elastic net.
    assert len(set(support // 2)) == (3 if method == "lasso" else 6)


@every_method
def test_a_feature_that_is_constant_is_never_chosen_before_one_that_is_not(method):
    Phi, y = table()
    Phi[:, 4] = 2.0
    (support,) = supports(moments(Phi, y), 0.5, [D - 1], method)
    assert 4 not in support
    # Nor does it matter that none explains anything.
    (support,) = supports(moments(Phi, np.full((N, 1), 7.0)), 0.5, [4], method)
    assert len(support) == 4


@pytest.mark.parametrize("alpha", [0.5, np.array([0.5, 4.0])], ids=["one", "each"])
def test_coefficients_are_those_of_ridge_on_the_chosen_features(alpha):
    Phi, y = table(2)
    support = np.array([1, 4, 7])
    solution, equations = Sparsifier("forward", alpha, 0.0).solve(moments(Phi, y), support)
    A, B = centred(Phi[:, support], y)
    for j, each in enumerate(np.broadcast_to(alpha, 2)):
        expected = naive.ridge(A, B, each)[:, j]
        assert_close(solution.coef[:, j], expected, steps=1e4)
        rss = ((B[:, j] - A @ expected) ** 2).sum()
        assert solution.train_rss[j] == pytest.approx(rss, rel=1e-9)
    assert_close(solution.intercept, y.mean(axis=0) - Phi[:, support].mean(axis=0) @ solution.coef)
    assert_close(equations.gram.dense(), A.T @ A)
    assert_close(equations.feature_mean, Phi[:, support].mean(axis=0))


def test_features_are_chosen_for_the_smallest_penalty_and_none_below_the_floor():
    made = moments(*table(2))

    def chosen(alpha, floor):
        return Sparsifier("forward", alpha, floor).supports(made, SIZES)

    def the_same(one, other):
        return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))

    assert the_same(chosen(np.array([30.0, 0.5]), 0.0), supports(made, 0.5, SIZES))
    assert the_same(chosen(0.5, 30.0), supports(made, 30.0, SIZES))
    assert not the_same(supports(made, 0.5, SIZES), supports(made, 30.0, SIZES))


@pytest.mark.parametrize(
    ("value", "why"),
    [(value, "must be a whole number, not") for value in (2.5, "7", None, True, np.float64(3))]
    + [(0, "at least 1 feature, not 0"), (-3, "at least 1 feature, not -3")]
    + [(5000, "than the 4,096 that it is chosen from, not 5,000")],
)
def test_a_size_that_there_is_not_is_refused(value, why):
    assert checked_size(np.int64(4096), 4096) == 4096
    with pytest.raises(ParameterError, match=why):
        checked_size(value, 4096)


# How many features, by errors on rows left out.

each_alpha = pytest.mark.parametrize("alpha", [0.4, np.array([0.4, 9.0])], ids=["one", "each"])


def weighted_rows():
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((N, D)) @ (np.eye(D) + 0.5 * rng.standard_normal((D, D)))
    y = Phi @ rng.standard_normal((D, 2)) ** 3 + 3 * rng.standard_normal((N, 2)) + [5.0, -40.0]
    return Phi + rng.standard_normal(D), y, rng.random(N) + 0.5


FOLDS = np.random.default_rng(1).choice(K, N, p=[0.5, 0.3, 0.2])


def moments_of(those) -> Moments:
    Phi, y, s = (part[those] for part in weighted_rows())
    zero = Moments(Identity().draw(D), 2, precision="double", feature_shift=np.full(D, 0.3))
    return naive.accumulated(zero, naive.blocks(Phi, y, [], s))


@every_method
@every_intercept
@each_alpha
def test_errors_are_those_of_models_that_are_chosen_and_fitted_again(method, intercept, alpha):
    Phi, y, s = weighted_rows()
    total, sparsifier = moments_of(slice(None)), Sparsifier(method, alpha, 0.0)
    for k in range(K):
        held = k == FOLDS
        found = sparse_errors(total, Split(moments_of(held)), SIZES, sparsifier, intercept)
        assert_close(found.weight, s[held].sum())
        # To the last digit as they are made there: equal features are chosen by rounding.
        others = total.without(moments_of(held)).centred(intercept=intercept)
        for sse, support in zip(found.sse, supports(others, 0.4, SIZES, method), strict=True):
            expected = [
                naive.error_without(Phi[:, support], y, s, each, held, intercept=intercept)[j]
                for j, each in enumerate(np.broadcast_to(alpha, 2))
            ]
            assert sse == pytest.approx(expected, rel=1e-8)


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
        HeldOut(weight, weight * np.array(fold, dtype=float).reshape(len(fold), -1))
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
    said = made.as_dict(flat=False)
    assert_close(said["relative_mse"], [2.05, 1.05, 0.55])
    assert_close(said["standard_errors"], np.zeros(3), size=1.0)


def test_folds_count_by_their_weights():
    made = curve([1.0, 4.0], [5.0, 2.0], weights=(3.0, 1.0))
    assert_close(made.rmse[:, 0] ** 2, [2.0, 3.5])


@pytest.mark.parametrize("q", [1, 2])
def test_the_curve_is_plain_json(q):
    made = curve([[1.0] * q, [4.0] * q], [[3.0] * q, [4.0] * q], scale=(2.0,) * q)
    said = json.loads(json.dumps(made.as_dict(flat=q == 1)))
    assert said["n_components"] == [2, 4]
    assert said["cv_rmse"] == made.rmse[:, 0].tolist() if q == 1 else made.rmse.tolist()
    assert said["relative_mse"] == pytest.approx([1.0, 2.0])
    assert said["standard_errors"] == pytest.approx([0.5, 0.0])
