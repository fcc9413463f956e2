"""Cholesky factors in panels, against LAPACK's of the whole matrix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import lapack
from tolerances import assert_close

from streamkern.solve import Cholesky, cholesky
from streamkern.statistics.triangle import Triangle

# One panel, two, several; whole and cut ones.
ORDERS = [1, 2, 7, 255, 511, 512, 513, 1024, 1100, 1537]
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
def test_the_factor_is_that_of_lapack(D):
    matrix = positive(D)
    assert_close(lower(factorised(matrix)), np.linalg.cholesky(matrix), size=10.0, steps=100)


@every_order
def test_the_factor_takes_the_place_of_the_matrix(D):
    triangle = Triangle.of(positive(D))
    factor = Cholesky.of(triangle)
    for mine, theirs in zip(factor.panels, triangle.panels, strict=True):
        assert mine is theirs


@every_order
@pytest.mark.parametrize("k", [1, 3])
def test_solutions_solve(D, k):
    matrix, columns = positive(D), np.random.default_rng(0).standard_normal((D, k))
    before = columns.copy()
    expected = np.linalg.solve(matrix, columns)
    assert_close(factorised(matrix).solve(columns), expected, steps=1e4)
    assert np.array_equal(columns, before)


@every_order
def test_the_trace_of_the_inverse_is_exact(D):
    matrix = positive(D)
    expected = np.trace(np.linalg.inv(matrix))
    assert factorised(matrix).inverse_trace() == pytest.approx(expected, rel=1e-11)


@every_order
def test_the_parts_of_the_inverse_are_all_of_it(D):
    matrix = positive(D)
    inverse = np.zeros((D, D))

    def put(columns: slice, part: np.ndarray) -> None:
        inverse[D - len(part) :, columns] = part

    factorised(matrix).over_inverse(put)
    assert_close(inverse, np.linalg.inv(np.linalg.cholesky(matrix)), steps=1e4)


@every_order
@pytest.mark.parametrize("decay", [0.0, 3.0])
def test_the_condition_is_estimated_as_lapack_does(D, decay):
    matrix = positive(D, decay)
    norm = float(np.abs(matrix).sum(axis=0).max())
    reciprocal, _ = lapack.dpocon(np.asfortranarray(np.linalg.cholesky(matrix)), norm, uplo="L")
    found = factorised(matrix).condition(norm)
    assert found == pytest.approx(1.0 / reciprocal, rel=1e-6)
    assert found <= np.linalg.cond(matrix, 1) * 1.001


@pytest.mark.parametrize("D", [1, 512, 513, 1200])
def test_no_bit_depends_on_the_number_of_threads(D):
    matrix, columns = positive(D), np.ones((D, 2))
    norm, found = Triangle.of(matrix).norm(), []
    for n_threads in (1, 2, 4):
        factor = factorised(matrix, n_threads)
        facts = np.array([factor.inverse_trace(), factor.condition(norm)])
        found.append([*factor.panels, facts, factor.solve(columns)])
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("D", [1, 40, 513, 1537])
@pytest.mark.parametrize("where", ["first", "last"])
@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan])
def test_a_matrix_that_is_not_positive_definite_is_refused(D, where, value):
    matrix = np.eye(D)
    i = 0 if where == "first" else D - 1
    matrix[i, i] = value
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factorised(matrix, 2)


def test_a_matrix_that_only_later_columns_show_to_be_indefinite_is_refused():
    matrix = np.eye(1100)
    matrix[1099, 0] = matrix[0, 1099] = 1.5
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factorised(matrix, 2)


def test_it_works_on_several_threads(threads_in):
    seen = threads_in(cholesky, "_strip")
    factorised(positive(2560, 0.0), 2)
    assert len(seen) == 2


def test_nothing_is_held_beside_the_panels_but_blocks():
    D = 2048
    triangle = Triangle.of(positive(D))
    tracemalloc.start()
    factor = Cholesky.of(triangle, 2)
    factoring = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    factor.inverse_trace()
    inverting = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    block = 8 * 512**2
    assert factoring < 4 * block + 6 * block  # the diagonal, and what two strips work with
    # The diagonal and its inverse, and two parts.
    assert inverting < 2 * 4 * block + 2 * 8 * 128 * D + 4 * block
