"""Kernel matrices: one penalty by Cholesky, every penalty by one eigendecomposition."""

import numpy as np
import pytest
from tolerances import assert_close

from streamkern.kernels import Gaussian, Laplacian
from streamkern.solve import kernel_system
from streamkern.solve.kernel_system import KernelBasis, solve_dual

N = 30

with_and_without = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])


def rows(n=N, q=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    y = np.array([40.0, -3.0]) + np.sin(X.sum(axis=1, keepdims=True) * [1.0, 2.0])
    return X, (y + 0.1 * rng.standard_normal((n, 2)))[:, :q]


def test_nothing_is_left_over_for_leave_one_out_unless_it_is_asked_for():
    X, y = rows()
    assert solve_dual(Gaussian(1.0)(X, X), y, 1.0, intercept=True).loo_residuals is None


@pytest.mark.parametrize("alpha", [1e-6, 1.0])
def test_a_constant_added_to_the_kernel_is_the_intercepts(alpha):
    X, y = rows()
    K = Gaussian(1.5)(X, X)
    base, moved = (
        KernelBasis.of(K + shift, y, intercept=True).solve(alpha) for shift in (0.0, 100.0)
    )
    assert_close(moved.coef, base.coef, steps=1e4 / alpha)
    assert_close(moved.loo_residuals, base.loo_residuals, steps=1e4 / alpha)


@with_and_without
def test_more_rows_than_are_worked_on_at_once_give_the_same(monkeypatch, intercept):
    monkeypatch.setattr(kernel_system, "_ROWS_AT_ONCE", 13)
    X, y = rows()
    K = Laplacian(1.0)(X, X)
    direct = solve_dual(K.copy(), y, 0.5, intercept=intercept, leave_one_out=True)
    basis = KernelBasis.of(K, y, intercept=intercept)
    assert_close(basis.solve(0.5).coef, direct.coef, steps=1e4)
    assert_close(basis.solve(0.5).loo_residuals, direct.loo_residuals, steps=1e4)


@with_and_without
def test_the_grid_goes_from_rounding_to_the_largest_eigenvalue(intercept):
    X, y = rows()
    K = Gaussian(1.5)(X, X)
    centring = np.eye(N) - intercept / N
    largest = np.linalg.eigvalsh(centring @ K @ centring)[-1]
    grid = KernelBasis.of(K.copy(), y, intercept=intercept).grid(5)
    assert len(grid) == 5
    assert grid[-1] == pytest.approx(largest)
    assert grid[0] == pytest.approx(4 * N * np.finfo(float).eps * largest)
    np.testing.assert_allclose(grid[1:] / grid[:-1], (grid[-1] / grid[0]) ** 0.25)


def test_a_kernel_that_is_nought_has_a_grid_of_one():
    basis = KernelBasis.of(np.zeros((4, 4)), np.arange(4.0)[:, None], intercept=True)
    assert basis.grid(5).tolist() == [1.0]
