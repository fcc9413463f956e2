"""Weights of the inputs, by descent of the cross-validated error of exact ridge."""

import tracemalloc

import numpy as np
import pytest

from streamkern.choice.input_weights import (
    descent_bytes,
    descent_rows,
    has_descent,
    objective,
    weights_by_descent,
)
from streamkern.kernels import Cauchy, Gaussian, Laplacian, Matern, RationalQuadratic

P = 4
EACH = np.arange(P)  # of a group of its own
KERNELS = [
    Laplacian(1.5),
    Matern(1.5, 0.5),
    Matern(1.5, 1.5),
    RationalQuadratic(1.5),
    Gaussian(1.5),
]


def rows(n=60, seed=0):
    """The second input matters most, the third less, the others not at all."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P))
    y = np.column_stack([np.sin(2.5 * X[:, 1]) + np.cos(1.5 * X[:, 2]), np.abs(X[:, 1])])
    return X, (y - y.mean(axis=0)) / y.std(axis=0), rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_the_error_is_that_of_fits_without_each_fold_and_the_slopes_are_its_own(kernel):
    X, y, counts = rows()
    X[1] = X[0]  # distances of 0 have no slope
    folds = np.split(np.arange(len(X)), 10)
    numbers = np.log([0.5, 0.8, 0.5, 0.3, 0.1])
    value, slopes = objective(numbers, kernel, X, y, counts, EACH)

    Z, penalty, squares = X * np.exp(numbers[:-1]), np.exp(numbers[-1]), 0.0
    unit = kernel.with_length_scale(1.0)
    for held in folds:
        rest = np.setdiff1d(np.arange(len(X)), held)
        K = unit(Z[rest], Z[rest]) + np.diag(penalty / counts[rest])
        errors = y[held] - unit(Z[held], Z[rest]) @ np.linalg.solve(K, y[rest])
        squares += (counts[held, None] * errors**2).sum()
    off = numbers[:-1] - numbers[:-1].mean()
    prior = off @ off / (0.5**2 * len(X))
    expected = np.log(squares / (counts.sum() * y.shape[1])) + prior
    assert value == pytest.approx(expected, rel=1e-9)

    assert_slopes(slopes, numbers, kernel, X, y, counts, EACH)


def assert_slopes(slopes, numbers, *of, step=1e-5):
    for slope, unit_vector in zip(slopes, np.eye(len(numbers)), strict=True):
        beside = [objective(numbers + sign * step * unit_vector, *of)[0] for sign in (1, -1)]
        assert slope == pytest.approx((beside[0] - beside[1]) / (2 * step), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_inputs_that_matter_weigh_most_and_the_scale_is_that_of_equal_weights(kernel):
    X, y, counts = rows(200)
    weights = weights_by_descent(kernel, X, y, counts, EACH)
    assert np.mean(weights**2) == pytest.approx(1.0)
    assert np.argsort(weights)[-2:].tolist() == [2, 1]
    assert weights[[0, 3]].max() < 0.5 * weights[2]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_group_has_one_weight_whose_slope_is_its_own(kernel):
    X, y, counts = rows(200)
    groups = np.array([0, 1, 2, 0])
    weights = weights_by_descent(kernel, X, y, counts, groups)
    assert weights[0] == weights[3]
    assert np.argsort(weights[:3]).tolist() == [0, 2, 1]
    numbers = np.log([0.5, 0.8, 0.3, 0.1])
    slopes = objective(numbers, kernel, X, y, counts, groups)[1]
    assert_slopes(slopes, numbers, kernel, X, y, counts, groups)


def test_of_noise_weights_stay_near_each_other():
    X, _, _ = rows(200)
    noise = np.random.default_rng(5).standard_normal((200, 1))
    weights = weights_by_descent(Laplacian(1.5), X, noise, None, EACH)
    assert weights.max() < 6.0 * weights.min()


def test_rows_beyond_those_of_the_inputs_do_not_count():
    X, y, counts = rows(80)
    few = weights_by_descent(KERNELS[0], X[:50], y[:50], counts[:50], EACH)
    assert weights_by_descent(KERNELS[0], X[:50], y, counts, EACH) == pytest.approx(few, rel=1e-12)


def test_a_kernel_that_is_not_of_distances_is_left_out():
    assert all(has_descent(kernel) for kernel in KERNELS)
    assert not has_descent(Cauchy(1.5))
    assert not has_descent(Matern(1.5, 0.7))


@pytest.mark.parametrize("wider", [1, 100])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_descent_holds_no_more_than_it_says(kernel, wider):
    X, y, counts = rows(500)
    X, groups, numbers = np.tile(X, wider), np.tile(EACH, wider), np.zeros(P + 1)
    objective(numbers, kernel, X[:20], y[:20], counts[:20], groups)  # what is imported
    tracemalloc.start()
    objective(numbers, kernel, X, y, counts, groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    said = descent_bytes(500, P * wider)
    assert 0.6 * said < peak < said


def test_descents_have_rows_for_their_time_and_memory_and_for_every_input():
    def rows(*sizes):
        return descent_rows(*sizes, (500, 3000))

    assert rows(9000, 8, 1e15, 1e15) == 3000
    assert rows(700, 8, 1e15, 1e15) == 700
    assert 500 < rows(9000, 8, 3e10, 1e15) < 3000
    assert rows(9000, 8, 1e9, 1e15) == 0
    assert 500 < rows(9000, 8, 1e15, 1e8) < 1300
    assert rows(9000, 8, 1e15, 1e15) > rows(9000, 800, 1e12, 1e15) > 500
