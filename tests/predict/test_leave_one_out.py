"""Leave-one-out errors without fitting again, and the rows that matter most."""

from __future__ import annotations

from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from streamkern.features import Identity, RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.predict.deviation import Deviation, Largest, LeaveOneOut
from streamkern.predict.evaluation import Evaluation
from streamkern.predict.predictor import Predictor
from streamkern.solve import Eigenbasis, NormalEquations, solve_ridge
from streamkern.statistics import Moments

N, P, D, Q = 40, 3, 14, 2
every_alpha = pytest.mark.parametrize("alpha", [0.2, (0.02, 3.0)], ids=["one", "each"])


def table(n=N):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, P))
    y = np.stack([np.sin(X[:, 0]), 3 + X[:, 1] * X[:, 2]], axis=1)
    return X, y + 0.2 * rng.standard_normal(y.shape), rng.choice([0.5, 1.0, 2.0], n)


def statistic(alpha, X, y, s, *, feature_map=None, intercept=True, n_largest=5):
    """The statistic of no rows, for a model of these; and the features of the rows."""
    feature_map = feature_map or RandomFourierFeatures(Gaussian(1.5), D).draw(P)
    moments = naive.accumulated(
        Moments(feature_map, y.shape[1], precision="double"), naive.blocks(X, y, (), s)
    ).centred(intercept=intercept)
    one = np.ndim(alpha) == 0
    solution = solve_ridge(moments, alpha) if one else Eigenbasis.of(moments).solve(np.array(alpha))
    predictor = Predictor(feature_map, solution.coef, solution.intercept, "double")
    deviation = Deviation.of(feature_map, NormalEquations.of(moments, solution))
    return Evaluation(predictor, LeaveOneOut(deviation, n_largest)), feature_map.transform(X)


def accumulated(empty, rows):
    return naive.accumulated(empty, rows).measures


def left_out(Phi, y, s, alpha, intercept):
    """The errors of refitting without each row, (n, q), each target at its penalty."""
    errors = [
        naive.left_out_errors(Phi, y, s, each, intercept=intercept)[:, j]
        for j, each in enumerate(np.broadcast_to(alpha, Q))
    ]
    return np.stack(errors, axis=1)


def leverages(Phi, s, alpha, intercept):
    """The leverages of the rows with their weights, (n, 1) or (n, q)."""
    each = [
        s * naive.leverages(Phi, Phi, s, value, intercept=intercept)
        for value in np.atleast_1d(alpha)
    ]
    return np.stack(each, axis=1)


@pytest.mark.parametrize(
    ("alpha", "intercept", "weighted"),
    [
        (0.2, True, True),
        (0.2, False, False),
        ((0.02, 3.0), True, False),
        ((0.02, 3.0), False, True),
    ],
)
def test_errors_are_those_of_refitting_without_each_row(alpha, intercept, weighted):
    X, y, s = table()
    s = s if weighted else np.ones(N)
    empty, Phi = statistic(alpha, X, y, s, intercept=intercept, n_largest=N)
    (found,) = accumulated(empty, naive.blocks(X, y, [7, 30], s if weighted else None))
    errors = left_out(Phi, y, s, alpha, intercept)
    assert found.rmse == pytest.approx(np.sqrt(s @ errors**2 / s.sum()), rel=1e-8)
    in_order = np.argsort(found.errors.places)
    assert found.errors.places[in_order].tolist() == list(range(N))
    assert_close(found.errors.facts[in_order, 1:], errors, steps=1e6)
    assert found.weight == pytest.approx(s.sum(), rel=1e-14)
    assert (found.n_rows, found.n_whole) == (N, 0)
    expected = leverages(Phi, s, alpha, intercept)
    assert found.leverage == pytest.approx(expected.sum(axis=0), rel=1e-9)
    in_order = np.argsort(found.leverages.places)
    assert found.leverages.facts[in_order, 0] == pytest.approx(expected.max(axis=1), rel=1e-9)
    # Rows that are left out leave the places of the others.
    kept = np.random.default_rng(1).random(N) < 0.6
    (some,) = accumulated(empty, [b.where(kept[b.places()]) for b in naive.blocks(X, y, [9], s)])
    assert sorted(some.errors.places.tolist()) == np.flatnonzero(kept).tolist()


@naive.quick
@given(cuts=naive.cuts(N), chance=st.randoms(use_true_random=False))
def test_merging_in_any_order_gives_the_same_errors(cuts, chance):
    X, y, s = table()
    empty, _ = statistic((0.02, 3.0), X, y, s)
    (whole,) = accumulated(empty, naive.blocks(X, y, (), s))
    rows = naive.blocks(X, y, cuts, s)
    for merged in (naive.merged(empty, rows, chance), naive.accumulated(empty, rows)):
        (found,) = merged.measures
        assert_close(found.squared, whole.squared)
        assert_close(found.leverage, whole.leverage)
        assert found.weight == pytest.approx(whole.weight)
        assert (found.n_rows, found.n_whole) == (N, 0)
        for largest, expected in ((found.leverages, whole.leverages), (found.errors, whole.errors)):
            assert largest.places.tolist() == expected.places.tolist()
            assert_close(largest.values, expected.values)
            assert_close(largest.facts, expected.facts)


@every_alpha
@pytest.mark.parametrize("k", [1, 5, N + 3])
def test_the_largest_rows_are_the_first_of_a_full_sort(alpha, k):
    X, y, s = table()
    empty, Phi = statistic(alpha, X, y, s, n_largest=k)
    (found,) = accumulated(empty, naive.blocks(X, y, [11, 12, 30], s))
    h = leverages(Phi, s, alpha, intercept=True).max(axis=1)
    errors = left_out(Phi, y, s, alpha, intercept=True)
    size = np.abs(errors).max(axis=1)
    assert found.leverages.places.tolist() == sorted(range(N), key=lambda i: -h[i])[:k]
    assert found.errors.places.tolist() == sorted(range(N), key=lambda i: -size[i])[:k]
    assert found.leverages.values == pytest.approx(np.sort(h)[::-1][:k], rel=1e-9)
    assert found.errors.values == pytest.approx(np.sort(size)[::-1][:k], rel=1e-8)
    for largest in (found.leverages, found.errors):
        facts = np.column_stack([h, errors])[largest.places]
        assert_close(largest.facts, facts, steps=1e6)


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


def with_lonely_rows():
    """Inputs of which two rows alone determine a coefficient each."""
    X, y, s = table()
    X = np.column_stack([X, np.zeros(N), np.zeros(N)])
    X[4, 3], X[20, 4] = 1.0, -2.0
    return X, y, s


def test_rows_of_leverage_one_are_counted_and_left_out():
    X, y, s = with_lonely_rows()
    empty, Phi = statistic(0.0, X, y, s, feature_map=Identity().draw(P + 2), n_largest=N)
    (found,) = accumulated(empty, naive.blocks(X, y, [10], s))
    assert (found.n_rows, found.n_whole) == (N, 2)
    others = ~np.isin(np.arange(N), [4, 20])
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
    X, y, s = rng.standard_normal((4, 3)), rng.standard_normal((4, Q)), np.ones(4)
    empty, _ = statistic(0.0, X, y, s, feature_map=Identity().draw(3))
    (found,) = accumulated(empty, naive.blocks(X, y))
    assert (found.n_rows, found.n_whole, found.weight) == (4, 4, 0.0)
    assert np.isnan(found.rmse).all()
    assert found.rmse.shape == (Q,)
