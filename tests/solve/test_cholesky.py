"""Cholesky factors in panels, against LAPACK's of the whole matrix."""

import numpy as np
import pytest
from scipy.linalg import lapack
from tolerances import assert_close

from streamkern.solve import Cholesky, cholesky
from streamkern.statistics import Triangle

# One panel, two, several; whole and cut ones.
ORDERS = [1, 2, 255, 512, 513, 1537]
every_order = pytest.mark.parametrize("D", ORDERS)


def positive(D: int, decay: float = 2.0) -> np.ndarray:
    rng = np.random.default_rng(D)
    rows = rng.standard_normal((D + 5, D)) * np.logspace(0, -decay, D)
    return rows.T @ rows + 0.1 * np.eye(D)


def factorised(matrix: np.ndarray, n_threads: int | None = None) -> Cholesky:
    return Cholesky.of(Triangle.of(matrix), n_threads)


def lower(factor: Cholesky) -> np.ndarray:
    L = np.zeros((factor.order, factor.order))
    for panel in factor.panels:
        stop = panel.shape[1]
        L[stop - len(panel) : stop, :stop] = panel
    return L


@every_order
def test_factor_solutions_and_inverse_are_those_of_lapack(D):
    matrix, columns = positive(D), np.random.default_rng(0).standard_normal((D, 3))
    triangle, before, inverse = Triangle.of(matrix), columns.copy(), np.zeros((D, D))
    factor, expected = Cholesky.of(triangle), np.linalg.cholesky(matrix)
    assert_close(lower(factor), expected, size=10.0, steps=100)
    assert all(a is b for a, b in zip(factor.panels, triangle.panels, strict=True))
    assert_close(factor.solve(columns), np.linalg.solve(matrix, columns), steps=1e4)
    assert np.array_equal(columns, before)

    def put(columns: slice, part: np.ndarray) -> None:
        inverse[D - len(part) :, columns] = part

    factor.over_inverse(put)
    assert_close(inverse, np.linalg.inv(expected), steps=1e4)
    assert factor.inverse_trace() == pytest.approx(np.trace(np.linalg.inv(matrix)), rel=1e-11)


@every_order
@pytest.mark.parametrize("decay", [0.0, 3.0])
def test_the_condition_is_estimated_as_lapack_does(D, decay):
    matrix = positive(D, decay)
    norm = float(np.abs(matrix).sum(axis=0).max())
    reciprocal, _ = lapack.dpocon(np.asfortranarray(np.linalg.cholesky(matrix)), norm, uplo="L")
    found = factorised(matrix).condition(norm)
    assert found == pytest.approx(1.0 / reciprocal, rel=1e-6)
    assert found <= np.linalg.cond(matrix, 1) * 1.001


@pytest.mark.parametrize(("D", "i"), [(1, 0), (40, 39), (1100, 0), (1100, 1099)])
@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, "later"])
def test_a_matrix_that_is_not_positive_definite_is_refused(D, i, value):
    matrix = np.eye(D)
    if value == "later":  # only later columns show it
        matrix[i, 0] = matrix[0, i] = 1.5 if i else -1.0
    else:
        matrix[i, i] = value
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factorised(matrix, 2)


def test_it_works_on_several_threads(threads_in):
    seen = threads_in(cholesky, "_strip")
    factorised(positive(2560, 0.0), 2)
    assert len(seen) == 2
