"""Leverages, standard deviations and leave-one-out errors: formulas, and what intervals hold."""

import math
from dataclasses import replace
from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from streamkern import Gaussian, RandomFeatureRidge
from streamkern.features import Identity, RandomFourierFeatures, Standardized
from streamkern.features.standardized import Standardizer
from streamkern.kernels import Laplacian
from streamkern.predict.deviation import Deviation, Largest, LeaveOneOut, without_rows
from streamkern.predict.evaluation import Evaluation
from streamkern.predict.predictor import Predictor
from streamkern.solve import Eigenbasis, NormalEquations, solve_ridge
from streamkern.statistics import Moments, Triangle

N, P = 70, 3
# 90% of a normal distribution lie within so many standard deviations of its mean.
WITHIN = 1.6448536269514722
LEVEL = 0.9

MAPS = {
    "pairs": lambda: RandomFourierFeatures(Gaussian(1.3), 12).draw(P),
    "phases": lambda: RandomFourierFeatures(Laplacian(2.0), 7, paired=False).draw(P),
    "inputs": lambda: Identity().draw(P),
    "one feature": lambda: RandomFourierFeatures(Gaussian(2.0), 1, paired=False).draw(P),
    "standardised": lambda: Standardized(
        Standardizer(np.array([0, 2]), np.array([0.5, -1.0]), np.array([2.0, 0.5]), P),
        RandomFourierFeatures(Gaussian(1.0), 8).draw(2),
    ),
}
every_map = pytest.mark.parametrize("name", list(MAPS))
every_intercept = pytest.mark.parametrize("intercept", [True, False])


def table(q=3, n=N):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, P))
    y = np.stack([np.sin(X[:, 0]), 4 + 9 * X[:, 1] ** 2, X[:, 2]], axis=1)[:, :q]
    return X, y + 0.2 * rng.standard_normal(y.shape), rng.random(n) + 0.5


def fitted(phi, alpha, *, q=3, intercept=True, precision="double", flat=False, rows=None):
    """The map, the predictor, the equations and the deviation of a fit, one penalty or q."""
    feature_map = MAPS[phi]() if isinstance(phi, str) else phi
    X, y, s = table(q) if rows is None else rows
    zero = Moments(feature_map, y.shape[1], precision=precision)
    moments = naive.accumulated(zero, naive.blocks(X, y, [30], s)).centred(intercept=intercept)
    one = np.ndim(alpha) == 0
    solution = solve_ridge(moments, alpha) if one else Eigenbasis.of(moments).solve(np.array(alpha))
    predictor = Predictor(feature_map, solution.coef, solution.intercept, "double")
    equations = NormalEquations.of(moments, solution)
    return feature_map, predictor, equations, Deviation.of(feature_map, equations, flat)


def new_rows(n=25):
    return np.random.default_rng(2).standard_normal((n, P))


def expected_leverages(Phi, new, s, alpha, *, intercept):
    """The formula on explicit features, (n, t)."""
    each = [naive.leverages(Phi, new, s, a, intercept=intercept) for a in np.atleast_1d(alpha)]
    return np.stack(each, axis=1)


@every_map
@pytest.mark.parametrize(
    ("intercept", "alpha"),
    [(True, 1e-3), (False, 100.0), (True, (0.01, 2.0, 0.3)), (False, (0.01, 2.0, 0.3))],
)
def test_leverages_are_those_of_the_formula_and_sum_to_the_degrees_of_freedom(
    name, intercept, alpha
):
    feature_map, _, equations, deviation = fitted(name, alpha, intercept=intercept)
    found, (X, _, s) = deviation.leverages(new_rows()), table()
    Phi, new = feature_map.transform(X), feature_map.transform(new_rows())
    assert found.shape == (25, np.size(alpha))
    expected = expected_leverages(Phi, new, s, alpha, intercept=intercept)
    assert found == pytest.approx(expected, rel=1e-9)
    own = np.broadcast_to(s @ deviation.leverages(X), 3)
    assert own == pytest.approx(equations.effective_dof, rel=1e-9)
    single = fitted(name, alpha, intercept=intercept, precision="single")[-1].leverages(new_rows())
    assert not np.array_equal(single, found)
    assert_close(single, found, dtype=np.float32, steps=50)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("share", [1e-2, 1e-1, 10.0])
def test_they_do_so_above_and_below_the_precision_floor(precision, share):
    X = np.random.default_rng(0).uniform(-1, 1, (2000, P))
    feature_map = RandomFourierFeatures(Gaussian(3.0), 64).draw(P)
    shift = feature_map.transform(X).mean(axis=0) / feature_map.scale
    moments = naive.accumulated(
        Moments(feature_map, 1, precision=precision, feature_shift=shift),
        naive.blocks(X, X[:, :1] ** 2),
    ).centred()
    solution = solve_ridge(moments, share * solve_ridge(moments, 1.0).floor)
    assert (solution.n_clipped > 0) == (share < 1)
    deviation = Deviation.of(feature_map, NormalEquations.of(moments, solution))
    own = deviation.leverages(X).sum(axis=0)
    # Each eigenvalue just above the floor is known to a part of itself only.
    assert own == pytest.approx(solution.effective_dof, rel=0.03)


def test_eigenvalues_below_zero_by_rounding_count_as_zero():
    feature_map, _, equations, _ = fitted("pairs", 0.3)
    values, vectors = np.linalg.eigh(equations.gram.dense())
    rounded = np.concatenate([[-1e-9, -1e-10], values[2:]])
    gram = vectors @ np.diag(rounded) @ vectors.T
    gram = (gram + gram.T) / 2
    alpha = 5e-10
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(gram + alpha * np.eye(len(gram)))
    equations = replace(equations, gram=Triangle.of(gram), alphas=np.full(3, alpha))
    found = Deviation.of(feature_map, equations).leverages(new_rows())
    centred = feature_map.transform(new_rows()) - equations.feature_mean
    along = (centred @ vectors) ** 2
    expected = 1 / equations.weight + along @ (1 / (np.maximum(rounded, 0) + alpha))
    # Of the smallest eigenvalues, known to 1e-15, and what they are divided by, 5e-10.
    assert found[:, 0] == pytest.approx(expected, rel=1e-4)


@every_intercept
@pytest.mark.parametrize("alpha", [0.3, np.array([0.01, 2.0, 0.3])], ids=["one", "each"])
def test_deviations_are_those_of_the_noise_and_of_the_coefficients(intercept, alpha):
    feature_map, *_, deviation = fitted("pairs", alpha, intercept=intercept)
    X, y, s = table()
    Phi = feature_map.transform(X)
    found = deviation.standard_deviations(new_rows())
    assert found.shape == (25, 3)
    assert deviation.standard_deviations(new_rows()[:0]).shape == (0, 3)
    flat = fitted("pairs", 0.3, q=1, intercept=intercept, flat=True)[-1]
    assert flat.standard_deviations(new_rows()).shape == (25,)
    for j, each in enumerate(np.broadcast_to(alpha, 3)):
        w, mu = naive.weighted_ridge(Phi, y, s, each, intercept=intercept)
        rss = (s * (y - mu - Phi @ w)[:, j] ** 2).sum()
        dof = s @ naive.leverages(Phi, Phi, s, each, intercept=intercept)
        noise = rss / (s.sum() - dof)
        new = feature_map.transform(new_rows())
        h = naive.leverages(Phi, new, s, each, intercept=intercept)
        assert found[:, j] == pytest.approx(np.sqrt(noise * (1 + h)), rel=1e-8)


@pytest.mark.parametrize(
    ("name", "value"), [("pairs", np.nan), ("inputs", 1e300), ("standardised", -np.inf)]
)
def test_a_row_that_is_not_finite_has_nan_and_no_other_has(name, value):
    deviation, rows = fitted(name, 0.3)[-1], new_rows()
    before = deviation.leverages(rows)
    rows[[4, 9]] = value
    found = deviation.leverages(rows)
    bad = np.isin(np.arange(25), [4, 9])
    assert np.isnan(found[bad]).all()
    assert np.array_equal(found[~bad], before[~bad])
    assert np.isnan(deviation.standard_deviations(rows)[bad]).all()


# How often the intervals hold what they should.


def smooth_rows(n, noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1] + noise * rng.standard_normal(n)


@pytest.mark.parametrize(("noise", "precision"), [(0.01, "single"), (1.0, "double")])
def test_intervals_of_90_per_cent_hold_90_per_cent_of_new_targets(noise, precision):
    n, m = 4000, 20_000
    model = RandomFeatureRidge(Gaussian(1.5), n_components=128, precision=precision)
    model.fit(*smooth_rows(n, noise, seed=0))
    X, y = smooth_rows(m, noise, seed=1)
    mean, deviation = model.predict(X, return_std=True)
    covered = (np.abs(y - mean) <= WITHIN * deviation).mean()
    # What m targets leave open, and what n rows leave open of the noise: 1 / sqrt(2 n) of it.
    density = math.exp(-(WITHIN**2) / 2) / math.sqrt(2 * math.pi)
    error = math.hypot(math.sqrt(LEVEL * (1 - LEVEL) / m), 2 * WITHIN * density / math.sqrt(2 * n))
    assert abs(covered - LEVEL) < 4 * error
    assert model.report_["noise"] == pytest.approx(noise, rel=0.03)


def test_far_from_all_landmarks_the_deviation_is_that_of_the_prior():
    rng = np.random.default_rng(3)
    X, Z = rng.standard_normal((300, 1)), np.array([[0.0], [1.5], [3.0], [5.0], [50.0]])
    y, alpha, kernel = np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(300), 0.02, Gaussian(0.5)
    options = {"standardize": False, "fit_intercept": False, "precision": "double"}
    landmarks = {"n_components": 64, "feature_map": "nystroem"}
    model = RandomFeatureRidge(kernel, alpha=alpha, **landmarks, **options).fit(X, y)
    beside = kernel(Z, X)
    inverse = np.linalg.inv(kernel(X, X) + alpha * np.eye(300))
    left = 1.0 - np.einsum("ij,jk,ik->i", beside, inverse, beside)
    exact = model.report_["noise"] * np.sqrt(1.0 + left / alpha)
    assert model.predict(Z, return_std=True)[1] == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("unit", [0.3, 0.01, 1e-6])
def test_deviations_do_not_depend_on_the_unit_of_weights_that_cannot_count_rows(unit):
    X, y, s = table(1, n=400)
    s = s / s.mean()
    options = {"kernel": Gaussian(2.0), "n_components": 64, "precision": "double"}
    one = RandomFeatureRidge(**options, alpha=0.1).fit(X, y, sample_weight=s)
    other = RandomFeatureRidge(**options, alpha=0.1 * unit).fit(X, y, sample_weight=unit * s)
    deviations = other.predict(new_rows(), return_std=True)[1]
    assert deviations == pytest.approx(one.predict(new_rows(), return_std=True)[1], rel=1e-6)
    assert np.isfinite(deviations).all()
    assert "take them over their mean" in other.report_["note"]
    assert "take them over their mean" not in one.report_["note"]


# Leave-one-out errors without fitting again, and the rows that matter most.

M, D, Q = 40, 14, 2
EACH = 0.02, 3.0


def small_table(n=M):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, P))
    y = np.stack([np.sin(X[:, 0]), 3 + X[:, 1] * X[:, 2]], axis=1)
    return X, y + 0.2 * rng.standard_normal(y.shape), rng.choice([0.5, 1.0, 2.0], n)


def leave_one_out(alpha, rows, *, phi=None, intercept=True, cuts=(7, 30), weighted=True):
    """The measure of rows by a model of them, all of them told, and their features."""
    X, y, s = rows
    phi = phi or RandomFourierFeatures(Gaussian(1.5), D).draw(P)
    _, predictor, _, deviation = fitted(phi, alpha, rows=rows, intercept=intercept)
    empty = Evaluation(predictor, LeaveOneOut(deviation, M))
    blocks = naive.blocks(X, y, cuts, s if weighted else None)
    (found,) = naive.accumulated(empty, blocks).measures
    return found, phi.transform(X), empty


def left_out(Phi, y, s, alpha, intercept):
    """The errors of refitting without each row, (n, q), each target at its penalty."""
    errors = [
        naive.left_out_errors(Phi, y, s, each, intercept=intercept)[:, j]
        for j, each in enumerate(np.broadcast_to(alpha, Q))
    ]
    return np.stack(errors, axis=1)


@pytest.mark.parametrize(
    ("alpha", "intercept", "weighted"),
    [(0.2, True, True), (0.2, False, False), (EACH, True, False), (EACH, False, True)],
)
def test_errors_are_those_of_refitting_without_each_row(alpha, intercept, weighted):
    X, y, s = small_table()
    s = s if weighted else np.ones(M)
    found, Phi, empty = leave_one_out(alpha, (X, y, s), intercept=intercept, weighted=weighted)
    errors = left_out(Phi, y, s, alpha, intercept)
    assert found.rmse == pytest.approx(np.sqrt(s @ errors**2 / s.sum()), rel=1e-8)
    in_order = np.argsort(found.errors.places)
    assert found.errors.places[in_order].tolist() == list(range(M))
    assert_close(found.errors.facts[in_order, 1:], errors, steps=1e6)
    assert found.weight == pytest.approx(s.sum(), rel=1e-14)
    assert found.n_whole == 0
    expected = s[:, None] * expected_leverages(Phi, Phi, s, alpha, intercept=intercept)
    assert found.leverage == pytest.approx(expected.sum(axis=0), rel=1e-9)
    in_order = np.argsort(found.leverages.places)
    assert found.leverages.facts[in_order, 0] == pytest.approx(expected.max(axis=1), rel=1e-9)
    # Rows that are left out leave the places of the others.
    kept = np.random.default_rng(1).random(M) < 0.6
    few = [block.where(kept[block.places()]) for block in naive.blocks(X, y, [9], s)]
    (some,) = naive.accumulated(empty, few).measures
    assert sorted(some.errors.places.tolist()) == np.flatnonzero(kept).tolist()


@naive.quick
@given(
    values=st.lists(st.integers(0, 3), min_size=1, max_size=30),
    k=st.integers(1, 8),
    cuts=st.lists(st.integers(0, 30), max_size=5).map(sorted),
    chance=st.randoms(use_true_random=False),
)
def test_rows_of_equal_value_are_named_by_their_place(values, k, cuts, chance):
    places = list(range(len(values)))
    expected = sorted(places, key=lambda i: (-values[i], i))[:k]
    ends = [0, *(cut for cut in cuts if cut <= len(values)), len(values)]
    parts = [slice(a, b) for a, b in pairwise(ends) if b > a]
    chance.shuffle(parts)
    largest = Largest(k)
    for part in parts:
        some = np.array(values[part], dtype=float)
        facts = np.stack([some, np.array(places[part])], axis=1)
        largest.add(some, np.array(places[part]), facts)
    assert largest.places.tolist() == expected
    assert largest.values.tolist() == [values[i] for i in expected]
    assert largest.facts[:, 1].tolist() == expected


def test_rows_of_leverage_one_are_counted_and_left_out():
    X, y, s = small_table()
    # Two rows alone determine a coefficient each.
    X = np.column_stack([X, np.zeros(M), np.zeros(M)])
    X[4, 3], X[20, 4] = 1.0, -2.0
    found, Phi, _ = leave_one_out(0.0, (X, y, s), phi=Identity().draw(P + 2))
    assert found.n_whole == 2
    others = ~np.isin(np.arange(M), [4, 20])
    # Without the two rows their inputs are constant, and the fit to the others is the same.
    errors = naive.left_out_errors(Phi[others, :P], y[others], s[others], 0.0, intercept=True)
    assert found.weight == pytest.approx(s[others].sum())
    assert found.rmse == pytest.approx(np.sqrt(s[others] @ errors**2 / found.weight), rel=1e-8)
    assert sorted(found.leverages.places[:2].tolist()) == [4, 20]
    assert found.leverages.values[:2] == pytest.approx(1.0)
    assert found.leverage == pytest.approx(P + 3, rel=1e-9)
    assert np.array_equal(
        found.errors.facts[np.isin(found.errors.places, [4, 20]), 1:], [[0, 0]] * 2
    )


def test_where_every_row_has_leverage_one_no_error_is_known():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4, 3)), rng.standard_normal((4, Q)), np.ones(4)
    found, *_ = leave_one_out(0.0, rows, phi=Identity().draw(3), cuts=())
    assert (found.n_whole, found.weight) == (4, 0.0)
    assert np.isnan(found.rmse).all()
    assert found.rmse.shape == (Q,)


@every_intercept
def test_deviations_without_a_row_are_those_of_a_fit_to_the_others(intercept):
    X, y, s = table(1)
    s = s + 1.0  # which count rows, with and without the one
    feature_map, _, equations, _ = fitted("pairs", 0.3, rows=(X, y, s), intercept=intercept)
    _, found = without_rows(feature_map, equations, X, s)
    for i in range(0, N, 9):
        others = np.arange(N) != i
        rest = fitted("pairs", 0.3, rows=(X[others], y[others], s[others]), intercept=intercept)
        _, variances = rest[-1].spread(X[[i]])
        expected = np.sqrt(equations.noise_variance * (1.0 + variances))
        assert found[[i]] == pytest.approx(expected, rel=1e-6)
