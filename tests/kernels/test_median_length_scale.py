"""The median length scale against a naive loop."""

from __future__ import annotations

import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from tolerances import assert_close

from streamkern.errors import DataError
from streamkern.kernels import Cauchy, Gaussian, Laplacian, Matern, RationalQuadratic
from streamkern.kernels.scaled import MEDIAN_ROWS, median_distance


def manhattan(x, z) -> float:
    return sum(abs(a - b) for a, b in zip(x, z, strict=True))


every_kernel = pytest.mark.parametrize(
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


def rows(n: int = 30, p: int = 5) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, p))


@every_kernel
@pytest.mark.parametrize("n", [2, 3, 4, 31, 60])
def test_the_median_is_over_all_pairs(kernel, distance, n):
    expected = naive.median_distance(distance, rows(n))
    assert_close(median_distance(kernel, rows(n)), expected)


@every_kernel
@naive.quick
@given(order=st.permutations(range(12)), unit=st.floats(1e-3, 1e3))
def test_the_median_follows_the_unit_and_not_the_order(kernel, distance, order, unit):
    expected = unit * median_distance(kernel, rows(12))
    assert_close(median_distance(kernel, unit * rows(12)[order]), expected)


@every_kernel
@naive.quick
@given(repeats=st.lists(st.integers(1, 9), min_size=8, max_size=8))
def test_pairs_of_equal_rows_do_not_count(kernel, distance, repeats):
    X = np.repeat(rows(8), repeats, axis=0)
    assert_close(median_distance(kernel, X), naive.median_distance(distance, X))


@every_kernel
def test_the_first_thousand_rows_are_used_and_no_more(kernel, distance):
    X = rows(MEDIAN_ROWS + 50, p=2)
    X[MEDIAN_ROWS:] = 1e9
    metric = "euclidean" if distance is math.dist else "cityblock"
    expected = np.median(pdist(X[:MEDIAN_ROWS], metric))
    assert_close(median_distance(kernel, X), expected)


@every_kernel
@pytest.mark.parametrize("far", [0.0, 1.0, 0.1, 1e6])
def test_rows_that_are_all_equal_are_refused(kernel, distance, far):
    X = np.repeat(rows(1) + far, 20, axis=0) if far else np.zeros((20, 5))
    with pytest.raises(DataError, match="needs two different rows, but all sampled rows are equal"):
        median_distance(kernel, X)


@every_kernel
@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_rows_are_refused(kernel, distance, n):
    with pytest.raises(DataError, match="needs two different rows"):
        median_distance(kernel, rows(n))
