"""Projections against their matrices, and cosines and sines against the library's own."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.features.cosines import cosines, cosines_and_sines
from streamkern.features.projection import HadamardProjection, block_size, small_matrices, transform
from streamkern.runtime.scratch import Scratch

ORDERS = [64, 80, 96, 128, 160, 192, 1024]


def matrix_of(order):
    whole = np.ones((1, 1))
    for matrix in small_matrices(order):
        whole = np.kron(whole, matrix)
    return whole


@pytest.mark.parametrize("order", [1, 2, 12, 20, *ORDERS])
def test_the_matrices_have_signs_and_orthogonal_rows(order):
    H = matrix_of(order)
    assert H.shape == (order, order)
    assert np.isin(H, (-1, 1)).all()
    assert np.array_equal(H @ H.T, order * np.eye(order))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("transposed", [False, True])
def test_transforms_are_products_with_the_matrix(order, transposed):
    X = np.random.default_rng(0).standard_normal((3, 2, order))
    H = matrix_of(order)
    expected = X @ (H if transposed else H.T)
    matrices = [matrix.astype(float) for matrix in small_matrices(order)]
    found, other = transform(X.copy(), np.empty_like(X), matrices, transposed=transposed)
    assert_close(found, expected)
    assert other.shape == X.shape
    assert not np.shares_memory(found, other)


@naive.quick
@given(p=st.integers(1, 30_000))
def test_a_block_is_the_smallest_that_holds_the_inputs(p):
    P = block_size(p)
    sizes = [order * 2**k for order in (1, 12, 20) for k in range(16)]
    assert min(size for size in sizes if size >= max(p, 64)) == P


@pytest.mark.parametrize("order", [3, 11, 28, 2047])
def test_other_orders_are_refused(order):
    with pytest.raises(ParameterError, match=f"{order} is no order of a Hadamard matrix"):
        small_matrices(order)


def projection(p=70, L=110, P=80):
    rng = np.random.default_rng(1)
    B = -(-L // P)
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), (B, 2, P))
    return HadamardProjection(rng.standard_normal((B, p)), signs, rng.random(L) + 0.5)


@pytest.mark.parametrize(("p", "L", "P"), [(70, 110, 80), (64, 64, 64), (3, 5, 64), (90, 192, 96)])
def test_frequencies_are_those_of_the_product_of_matrices(p, L, P):
    found = projection(p, L, P)
    H = matrix_of(P) / np.sqrt(P)
    blocks = []
    for inputs, (second, first) in zip(found.inputs, found.signs, strict=True):
        block = H @ np.diag(first) @ H @ np.diag(second) @ H[:, :p] @ np.diag(inputs)
        blocks.append(block)
    expected = found.lengths[:, None] * np.concatenate(blocks)[:L]
    assert_close(found.frequencies, expected)
    assert_close(found.rows(np.array([4, 0])), expected[[4, 0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_and_sums_are_products_with_the_frequencies(dtype):
    found, scratch = projection(), Scratch()
    rng = np.random.default_rng(2)
    X, S = rng.standard_normal((7, 70)).astype(dtype), rng.standard_normal((7, 110)).astype(dtype)
    angles, sums = np.empty((7, 110), dtype), np.empty((7, 70), dtype)
    found.prepared(np.dtype(dtype), scratch)(X, angles)
    found.pulled_back(np.dtype(dtype), scratch)(S.copy(), sums)
    assert_close(angles, X @ found.frequencies.T, dtype=dtype)
    assert_close(sums, S @ found.frequencies, dtype=dtype)


@pytest.mark.parametrize(
    "change",
    [
        {"signs": lambda held: held[:, :1]},
        {"signs": lambda held: 0 * held},
        {"signs": lambda held: held[:, :, :70]},
        {"inputs": lambda held: held[:1]},
        {"inputs": lambda held: np.hstack([held, held])},
        {"lengths": lambda held: held[:50]},
        {"lengths": lambda held: np.concatenate([held, held])},
    ],
)
def test_a_damaged_file_is_refused(change):
    arrays = projection().arrays()
    (name, damage), *_ = change.items()
    with pytest.raises(ParameterError, match="the file is damaged"):
        HadamardProjection.restore(arrays | {name: damage(arrays[name])})


# Cosines and sines, in both precisions and far from the origin.

ANGLES = {
    "near": np.random.default_rng(0).standard_normal(10_000) * 8,
    "far": np.random.default_rng(1).standard_normal(10_000) * 1e6,
    "of poles": np.pi * np.arange(-50, 51),
    "halves": np.pi / 2 * np.arange(-51, 51),
    "none": np.array([0.0, -0.0, 1e-300, 5e-324]),
}
TOLERANCE = {np.float32: 1e-7, np.float64: 5e-16}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("where", ANGLES)
def test_cosines_and_sines_are_those_of_numpy(dtype, where):
    angles = ANGLES[where].astype(dtype)
    out = np.empty((len(angles), 2), dtype)
    cosines_and_sines(angles.copy(), out[:, 0], out[:, 1])
    alone, sines = angles.copy(), angles.copy()
    cosines(alone, alone)
    cosines_and_sines(sines, np.empty_like(angles), sines)
    expected = np.cos(angles.astype(float)), np.sin(angles.astype(float))
    np.testing.assert_allclose(out[:, 0], expected[0], rtol=0, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(out[:, 1], expected[1], rtol=0, atol=TOLERANCE[dtype])
    np.testing.assert_array_equal(alone, out[:, 0])
    np.testing.assert_array_equal(sines, out[:, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_not_finite_has_no_cosine(dtype):
    angles = np.array([np.inf, -np.inf, np.nan], dtype)
    out = np.empty((2, 3), dtype)
    with np.errstate(invalid="ignore"):
        cosines_and_sines(angles, out[0], out[1])
    assert np.isnan(out).all()
