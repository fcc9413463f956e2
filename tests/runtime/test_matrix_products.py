"""Products on all cores: those of NumPy, and the same bits whatever the number of cores."""

import numpy as np
import pytest

from streamkern.runtime import matrix_products
from streamkern.runtime.matrix_products import product


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (5, 3, 0), (1, 1, 1), (700, 40, 7)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_numpy(shape, dtype):
    m, n, k = shape
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((n, m)).astype(dtype), rng.standard_normal((n, k))
    made = product(left.T, right)
    assert made.dtype == np.float64
    np.testing.assert_allclose(made, left.T @ right, rtol=1e-12, atol=1e-12)


def test_no_bit_depends_on_the_number_of_cores(monkeypatch):
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((1000, 300)), rng.standard_normal((300, 20))
    monkeypatch.setattr(matrix_products, "_PIECE", 1)
    made = []
    for n_cores in (1, 3):
        monkeypatch.setattr(matrix_products, "usable_cores", lambda n=n_cores: n)
        made.append(product(left, right))
    assert np.array_equal(*made)
