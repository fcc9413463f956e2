"""The periodic kernel, and the median length scale, against naive loops."""

from __future__ import annotations

import math
from functools import partial

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.spatial.distance import pdist
from tolerances import assert_close

from streamkern.errors import DataError, ParameterError
from streamkern.kernels import Cauchy, Gaussian, Laplacian, Matern, Periodic, RationalQuadratic
from streamkern.kernels.scaled import MEDIAN_ROWS, median_distance


def rows(n: int, p: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p))


def probability(j: int, c: float) -> float:
    """exp(-c) I_|j|(c), as the integral that defines it."""
    return (
        quad(lambda t: math.exp(c * (math.cos(t) - 1)) * math.cos(j * t), 0, math.pi)[0] / math.pi
    )


@pytest.mark.parametrize("periods", [(1.0, 1.0, 1.0), (7.0, 0.3, 2.0)])
@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (0.4, 3.0, 1.5)])
def test_the_value_is_that_of_the_formula(periods, scales):
    X, Z = rows(7), rows(5, seed=1)
    values = Periodic(scales, period=periods)(X, Z)
    expected = naive.kernel_matrix(partial(naive.periodic, periods=periods), X, Z, scales)
    assert_close(values, expected, steps=1000)


@pytest.mark.parametrize("scales", [0.3, 5.0, (0.2, 1.0, 2.0)])
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


# The median.


def manhattan(x, z) -> float:
    return sum(abs(a - b) for a, b in zip(x, z, strict=True))


every_distance = pytest.mark.parametrize(
    ("kernel", "distance"),
    [
        pytest.param(Gaussian(1.0), math.dist, id="gaussian"),
        pytest.param(Gaussian("median"), math.dist, id="gaussian-unresolved"),
        pytest.param(Matern(1.0, nu=0.5), math.dist, id="matern"),
        pytest.param(Laplacian(1.0), manhattan, id="laplacian"),
        pytest.param(RationalQuadratic(1.0), math.dist, id="rational-quadratic"),
        pytest.param(Cauchy("median"), math.dist, id="cauchy"),
    ],
)


@every_distance
def test_the_median_is_over_all_pairs(kernel, distance):
    for n in (2, 3, 4, 31, 60):
        X = rows(n)
        assert_close(median_distance(kernel, X), naive.median_distance(distance, X))


@every_distance
@naive.quick
@given(repeats=st.lists(st.integers(1, 9), min_size=8, max_size=8))
def test_pairs_of_equal_rows_do_not_count(kernel, distance, repeats):
    X = np.repeat(rows(8), repeats, axis=0)
    assert_close(median_distance(kernel, X), naive.median_distance(distance, X))


@every_distance
def test_the_first_thousand_rows_are_used_and_no_more(kernel, distance):
    X = rows(MEDIAN_ROWS + 50, p=2)
    X[MEDIAN_ROWS:] = 1e9
    metric = "euclidean" if distance is math.dist else "cityblock"
    expected = np.median(pdist(X[:MEDIAN_ROWS], metric))
    assert_close(median_distance(kernel, X), expected)


@every_distance
def test_fewer_than_two_different_rows_are_refused(kernel, distance):
    for far in (0.0, 1.0, 0.1, 1e6):
        for n in (0, 1, 20):
            with pytest.raises(DataError, match="two different rows, but all sampled rows are eq"):
                median_distance(kernel, np.repeat(rows(1) + far, n, axis=0))
