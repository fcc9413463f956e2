"""Cosines and sines against the library's own, in both precisions and far from the origin."""

import numpy as np
import pytest

from streamkern.features.cosines import cosines, cosines_and_sines

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
    alone, sines = np.empty_like(angles), angles.copy()
    cosines(angles, alone)
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


def test_cosines_may_take_the_place_of_their_angles():
    angles = np.linspace(-9, 9, 77)
    expected = np.cos(angles)
    cosines(angles, angles)
    np.testing.assert_allclose(angles, expected, rtol=0, atol=5e-16)
