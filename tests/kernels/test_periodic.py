"""The periodic kernel: values by loops, and frequencies that are whole multiples of one."""

from __future__ import annotations

import math
from functools import partial

import naive
import numpy as np
import pytest
from scipy.integrate import quad
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.kernels import Periodic
from streamkern.kernels.scaled import median_distance

EACH = ((1.0, 1.0, 1.0), (7.0, 0.3, 2.0))


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, 3))


def probability(j: int, c: float) -> float:
    """exp(-c) I_|j|(c), as the integral that defines it."""
    return (
        quad(lambda t: math.exp(c * (math.cos(t) - 1)) * math.cos(j * t), 0, math.pi)[0] / math.pi
    )


@pytest.mark.parametrize("periods", EACH)
@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (0.4, 3.0, 1.5)])
def test_the_value_is_that_of_the_formula(periods, scales):
    X, Z = rows(7), rows(5, seed=1)
    values = Periodic(scales, period=periods)(X, Z)
    expected = naive.kernel_matrix(partial(naive.periodic, periods=periods), X, Z, scales)
    assert_close(values, expected, steps=1000)


def test_rows_a_period_apart_are_the_same_and_half_a_period_the_farthest():
    kernel = Periodic(0.8, period=7.0)
    x = np.array([[1.3]])
    assert_close(kernel(x, x + 21.0), [[1.0]])
    assert_close(kernel(x, x + 3.5), [[math.exp(-2 / 0.8**2)]])
    assert kernel(x, x + 3.4)[0, 0] > kernel(x, x + 3.5)[0, 0] < kernel(x, x + 3.6)[0, 0]


@pytest.mark.parametrize("scales", [1.0, 0.3, 5.0, (0.2, 1.0, 2.0)])
def test_the_mean_cosine_over_spectral_draws_is_the_kernel(scales):
    n, periods = 100_000, (7.0, 0.3, 2.0)
    rng = np.random.default_rng(5)
    kernel = Periodic(scales, period=periods)
    frequencies = kernel.spectral(rng.standard_normal((n, 3)), rng.random((n, 1)))
    for share in (0.1, 0.3, 0.5, 1.0):
        t = share * np.array(periods) * (1.0, 0.4, -0.2)
        cosines = np.cos(frequencies @ t)
        expected = naive.periodic(t, np.zeros(3), np.broadcast_to(scales, 3), periods)
        assert abs(cosines.mean() - expected) <= 4.5 * cosines.std() / math.sqrt(n) + 1e-12


def test_frequencies_are_whole_multiples_with_the_probabilities_of_the_bessel_function():
    n, scale, period = 200_000, 0.7, 3.0
    normal = np.random.default_rng(1).standard_normal((n, 1))
    frequencies = Periodic(scale, period=period).spectral(normal, np.ones((n, 1)))
    harmonics = frequencies[:, 0] * period / (2 * math.pi)
    assert_close(harmonics, np.rint(harmonics))
    for j in range(-5, 6):
        expected = probability(j, scale**-2)
        counted = (np.rint(harmonics) == j).mean()
        assert abs(counted - expected) < 4.5 * math.sqrt(expected / n) + 1e-9


@pytest.mark.parametrize("scale", [1e-6, 0.99e-3, 1.01e-3, 1e-2, 30.0])
def test_frequencies_have_the_variance_of_the_curvature(scale):
    normal = np.random.default_rng(2).standard_normal((100_000, 1))
    harmonics = Periodic(scale, period=2 * math.pi).spectral(normal, np.ones((100_000, 1)))
    # k is about 1 - d^2 / (2 l^2) near 0.
    assert np.mean(harmonics**2) * scale**2 == pytest.approx(1.0, rel=0.02 if scale < 1 else 0.3)


def test_mirrored_normal_numbers_give_mirrored_frequencies():
    normal = rows(500)
    kernel, ones = Periodic((0.3, 1.0, 2.0)), np.ones((500, 1))
    np.testing.assert_array_equal(kernel.spectral(-normal, ones), -kernel.spectral(normal, ones))


@pytest.mark.parametrize("scale", [1e-8, 0.1, 1e8])
def test_extreme_normal_numbers_give_finite_frequencies(scale):
    normal = np.array([[0.0, -8.0, 1e-300], [8.0, -38.0, 38.0]])
    assert np.isfinite(Periodic(scale).spectral(normal, np.ones((2, 1)))).all()


def test_the_median_is_of_the_distances_on_the_circle():
    def chord(x, z) -> float:
        return math.sqrt(
            sum((2 * math.sin(math.pi * (a - b) / 2.5)) ** 2 for a, b in zip(x, z, strict=True))
        )

    kernel = Periodic("median", period=2.5)
    assert_close(median_distance(kernel, rows(30)), naive.median_distance(chord, rows(30)))
    assert kernel.resolved(rows(30)).length_scale == median_distance(kernel, rows(30))


def test_periods_follow_the_columns_that_are_kept():
    kernel = Periodic((1.0, 2.0, 3.0), period=(7.0, 8.0, 9.0))
    assert kernel.restricted([0, 2]) == Periodic((1.0, 3.0), period=(7.0, 9.0))
    some = Periodic("median", period=(7.0, 8.0, 9.0)).resolved(
        rows(20)[:, [0, 2]], np.array([0, 2])
    )
    assert some.period == (7.0, 8.0, 9.0)
    expected = median_distance(Periodic(1.0, period=(7.0, 9.0)), rows(20)[:, [0, 2]])
    assert some.length_scale == expected


def test_what_it_does_not_have_is_refused():
    with pytest.raises(ParameterError, match="have no density; take a map that draws"):
        Periodic(1.0).density(np.zeros((1, 1)))
    with pytest.raises(ParameterError, match="period must be one number or one per input, 3 here"):
        Periodic(1.0, period=(1.0, 2.0))(rows(2), rows(2))
    with pytest.raises(ParameterError, match="period must be one number or one per input"):
        Periodic("median", period=(1.0, 2.0)).check_inputs(3)
    with pytest.raises(ParameterError, match="period must be positive and finite, not 0; give a"):
        Periodic(1.0, period=0)
