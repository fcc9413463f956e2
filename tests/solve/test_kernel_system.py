"""Kernel matrices: one penalty by Cholesky, every penalty by one eigendecomposition."""

import naive
import numpy as np
import pytest
from tolerances import assert_close

from streamkern.errors import SingularSystemError
from streamkern.kernels import Gaussian, Laplacian, Linear
from streamkern.solve import kernel_system
from streamkern.solve.kernel_system import KernelBasis, solve_dual

N = 30

with_and_without = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])
kernels = pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplacian(2.0), Linear()], ids=repr)
alphas = pytest.mark.parametrize("alpha", [1e-3, 0.3, 20.0])


def rows(n=N, q=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    y = np.array([40.0, -3.0]) + np.sin(X.sum(axis=1, keepdims=True) * [1.0, 2.0])
    return X, (y + 0.1 * rng.standard_normal((n, 2)))[:, :q]


@kernels
@with_and_without
@alphas
def test_both_ways_solve_the_bordered_system_and_leave_one_row_out_as_n_refits_do(
    kernel, intercept, alpha
):
    X, y = rows()
    K = kernel(X, X)
    dual, mu = naive.kernel_ridge(K, y, alpha, intercept=intercept)
    expected = naive.kernel_left_out_errors(K, y, alpha, intercept=intercept)
    basis = KernelBasis.of(K.copy(), y, intercept=intercept)
    for solution in (
        solve_dual(K.copy(), y, alpha, intercept=intercept, leave_one_out=True),
        basis.solve(alpha),
    ):
        np.testing.assert_allclose(K @ solution.coef + solution.intercept, K @ dual + mu, atol=1e-8)
        np.testing.assert_allclose(solution.coef, dual, rtol=0, atol=1e-8 / alpha)
        np.testing.assert_allclose(solution.loo_residuals, expected, rtol=0, atol=1e-8)
    mean_squares = basis.loo_mean_squares(np.array([alpha, 7.0]))
    np.testing.assert_allclose(mean_squares[0], (expected**2).mean(axis=0), rtol=1e-8)


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


def test_a_singular_matrix_is_refused_without_a_penalty():
    with pytest.raises(SingularSystemError, match="singular at alpha 0; give a larger alpha"):
        solve_dual(np.ones((3, 3)), np.ones((3, 1)), 0.0, intercept=False)
