"""LAPACK's routines as the interpreter's lock is given up for them."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular
from tolerances import assert_close

from streamkern.runtime import lapack
from streamkern.runtime.lapack import routine, triangular_solution


def test_a_routine_that_fails_says_so():
    singular, pivots = np.zeros((2, 2)), np.zeros(2, dtype=np.intc)
    with pytest.raises(np.linalg.LinAlgError, match="dgetrf failed with code 1"):
        routine("dgetrf")(2, 2, singular, 2, pivots)


def lower(D: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.tril(rng.standard_normal((D, D)) / D) + np.eye(D)


@pytest.mark.parametrize("lay", [np.array, np.asfortranarray, lambda L: np.repeat(L, 2, 1)[:, ::2]])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (64,), (150,)])
@pytest.mark.parametrize("integers", [True, False])
def test_triangular_systems_are_solved(lay, transposed, shape, integers, monkeypatch):
    monkeypatch.setattr(lapack, "has_c_integers", lambda: integers)
    factor = lay(lower(90))
    columns = np.random.default_rng(1).standard_normal((90, *shape))
    before = columns.copy()
    found = triangular_solution(factor, columns, transposed=transposed)
    wanted = solve_triangular(factor, columns, lower=True, trans=int(transposed))
    assert_close(found, wanted, size=100.0)
    assert np.array_equal(columns, before)


def test_no_bit_of_a_triangular_system_depends_on_the_number_of_threads():
    factor, columns = lower(700), np.random.default_rng(1).standard_normal((700, 300))
    found = [triangular_solution(factor, columns, n_threads=n) for n in (1, 3)]
    assert np.array_equal(*found)
