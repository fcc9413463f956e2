"""Kernels against scalar loops of their formulas, and their spectral distributions."""

from __future__ import annotations

import json
import math
from functools import partial

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.kernels import KERNELS, Gaussian, Laplacian, Linear, Matern, kernel_from

SHIFT_INVARIANT = [
    pytest.param(Gaussian(), naive.gaussian, id="gaussian"),
    pytest.param(Matern(nu=0.5), partial(naive.matern, nu=0.5), id="matern12"),
    pytest.param(Matern(nu=1.5), partial(naive.matern, nu=1.5), id="matern32"),
    pytest.param(Matern(nu=2.5), partial(naive.matern, nu=2.5), id="matern52"),
    pytest.param(Laplacian(), naive.laplacian, id="laplacian"),
]
every_kernel = pytest.mark.parametrize(("kernel", "formula"), SHIFT_INVARIANT)


def rows(n: int, p: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p))


@every_kernel
@pytest.mark.parametrize("scale", [1.0, 0.6, (0.5, 2.0, 30.0)])
def test_the_value_is_that_of_the_formula(kernel, formula, scale):
    X, Z = rows(7), rows(5, seed=1)
    values = kernel.with_length_scale(scale)(X, Z)
    assert values.dtype == np.float64
    assert_close(values, naive.kernel_matrix(formula, X, Z, np.broadcast_to(scale, 3)))


def test_the_linear_kernel_is_the_inner_product():
    X, Z = rows(7), rows(5, seed=1)
    assert_close(Linear()(X, Z), naive.kernel_matrix(naive.linear, X, Z, None))


@every_kernel
def test_values_at_one_length_scale_are_known_numbers(kernel, formula):
    known = {
        Gaussian(): math.exp(-0.5),
        Laplacian(): math.exp(-1),
        Matern(nu=0.5): math.exp(-1),
        Matern(nu=1.5): (1 + math.sqrt(3)) * math.exp(-math.sqrt(3)),
        Matern(nu=2.5): (1 + math.sqrt(5) + 5 / 3) * math.exp(-math.sqrt(5)),
    }
    origin, away = np.zeros((1, 2)), np.array([[0.0, 1.0]])
    assert_close(kernel(origin, away), [[known[kernel]]], steps=10)
    assert_close(formula(origin[0], away[0], (1.0, 1.0)), known[kernel], steps=10)


@every_kernel
def test_the_kernel_of_rows_with_themselves_is_symmetric(kernel, formula):
    X = rows(40)
    K = kernel(X, X)
    assert_close(K, K.T, steps=10)


@every_kernel
def test_a_row_with_itself_has_the_value_one(kernel, formula):
    X = 3.0 * rows(50, p=7)
    # Squared distances from products are uncertain by eps |x|^2.
    assert_close(np.diagonal(kernel(X, X)), np.ones(50), steps=10, size=(X**2).sum(axis=1).max())


@every_kernel
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_the_kernel_is_positive_semidefinite(kernel, formula, scale):
    X = np.concatenate([rows(30), rows(10)])  # ten rows occur twice
    K = kernel.with_length_scale(scale)(X, X)
    assert np.linalg.eigvalsh(K).min() >= -100 * np.finfo(float).eps * len(X)


@every_kernel
def test_a_length_scale_per_input_divides_that_input(kernel, formula):
    X, Z, scales = rows(6), rows(4, seed=1), (0.3, 1.0, 4.0)
    assert_close(kernel.with_length_scale(scales)(X, Z), kernel(X / scales, Z / scales))


@every_kernel
@naive.quick
@given(left=naive.cuts(20), right=naive.cuts(15))
def test_pieces_of_the_rows_give_pieces_of_the_matrix(kernel, formula, left, right):
    X, Z = rows(20), rows(15, seed=1)
    whole = kernel(X, Z)
    pieces = [
        [kernel(X[a:b], Z[c:d]) for c, d in zip([0, *right], [*right, 15], strict=True)]
        for a, b in zip([0, *left], [*left, 20], strict=True)
    ]
    assert_close(np.block(pieces), whole)


@every_kernel
def test_more_rows_than_are_held_at_once_give_the_same_values(kernel, formula):
    X, Z = rows(2500), rows(3, seed=1)
    pieces = [kernel(X[start : start + 100], Z) for start in range(0, 2500, 100)]
    assert_close(kernel(X, Z), np.concatenate(pieces))


@every_kernel
def test_rows_far_from_the_origin_keep_their_digits(kernel, formula):
    far = 1e6
    X, Z = far + rows(6), far + rows(4, seed=1)
    expected = naive.kernel_matrix(formula, X, Z, (1.0, 1.0, 1.0))
    assert_close(kernel(X, Z), expected, size=far)


@every_kernel
def test_near_rows_keep_digits_beside_far_ones(kernel, formula):
    far = 1e3
    X = np.concatenate([rows(4), far + rows(4)])
    Z = np.concatenate([rows(3, seed=1), far + rows(3, seed=1)])
    expected = naive.kernel_matrix(formula, X, Z, (1.0, 1.0, 1.0))
    assert_close(kernel(X, Z), expected, size=far**2)


@every_kernel
def test_lists_and_integers_are_rows_too(kernel, formula):
    X = [[0, 1], [2, 3]]
    assert_close(kernel(X, X), kernel(np.array(X, dtype=float), np.array(X, dtype=float)), steps=0)


@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_exp_minus_gamma_r2_is_the_gaussian_at_one_over_root_two_gamma(gamma):
    X, Z = rows(6), rows(4, seed=1)
    assert_close(Gaussian(1 / math.sqrt(2 * gamma))(X, Z), rbf_kernel(X, Z, gamma=gamma))


@every_kernel
@pytest.mark.parametrize("scale", [1.0, 3.0, (0.5, 2.0, 8.0)])
def test_the_mean_cosine_over_spectral_draws_is_the_kernel(kernel, formula, scale):
    n = 100_000
    rng = np.random.default_rng(5)
    kernel = kernel.with_length_scale(scale)
    frequencies = kernel.spectral(rng.standard_normal((n, 3)), rng.random((n, 1)))
    for lag in (0.1, 0.4, -0.9):
        t = lag * np.broadcast_to(scale, 3) * (1.0, 0.3, -2.0)
        cosines = np.cos(frequencies @ t)
        expected = formula(t, np.zeros(3), np.broadcast_to(scale, 3))
        assert abs(cosines.mean() - expected) <= 4.5 * cosines.std() / math.sqrt(n)


@every_kernel
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_the_density_over_a_grid_of_frequencies_sums_to_the_kernel(kernel, formula, scale):
    # One input, where the tails of every density are short enough for a grid.
    cell, n = 0.01, 200_000
    grid = cell * np.arange(-n, n + 1)
    density = kernel.with_length_scale(scale).density(grid[:, None])
    tail = 2 * density[0] * grid[-1]
    for lag in (0.3, 1.0, 2.5):
        sum_of_waves = cell * (density * np.cos(lag * grid)).sum()
        assert abs(sum_of_waves - formula((lag,), (0.0,), (scale,))) < 1e-6 + tail


@every_kernel
def test_the_density_of_many_inputs_is_that_of_the_draws(kernel, formula):
    # Under draws of a kernel twice as long, densities are in the mean those of the ratio.
    n, scale = 100_000, (0.5, 2.0, 8.0)
    rng = np.random.default_rng(6)
    kernel = kernel.with_length_scale(scale)
    wide = kernel.stretched(0.8)
    frequencies = wide.spectral(rng.standard_normal((n, 3)), rng.random((n, 1)))
    weights = kernel.density(frequencies) / wide.density(frequencies)
    for lag in (0.0, 0.4, 1.2):
        t = lag * np.array(scale)
        waves = weights * np.cos(frequencies @ t)
        error = abs(waves.mean() - formula(t, np.zeros(3), scale))
        assert error <= 4.5 * waves.std() / math.sqrt(n)


@every_kernel
def test_extreme_normal_and_uniform_numbers_give_finite_frequencies(kernel, formula):
    normal = np.array([[0.0, -8.0], [8.0, 1e-300], [-1.0, 1.0]])
    for uniform in (2.0**-53, 0.5, 1.0):
        assert np.isfinite(kernel.spectral(normal, np.full((3, 1), uniform))).all()


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(2.0),
        Gaussian((1.0, 2.0)),
        Gaussian("median"),
        Matern(0.5, nu=2.5),
        Laplacian([1, 2, 3]),
        Linear(),
    ],
    ids=repr,
)
def test_a_kernel_survives_its_name_and_json_parameters(kernel):
    parameters = json.loads(json.dumps(kernel.parameters(), allow_nan=False))
    assert kernel_from(kernel.name, parameters) == kernel


def test_every_kernel_is_listed_under_its_own_name():
    matern = {"matern12", "matern32", "matern52"}
    assert {"gaussian", "laplacian", "linear"} | matern == set(KERNELS)
    assert all(KERNELS[name].name == name for name in KERNELS)


@pytest.mark.parametrize(
    "scale", [0, -1.0, math.nan, math.inf, (), (1.0, 0.0), (1.0, math.nan), [[1.0, 2.0]], None, {}]
)
def test_a_length_scale_that_is_not_positive_and_finite_is_refused(scale):
    with pytest.raises(ParameterError, match="length_scale must be positive and finite, not"):
        Gaussian(scale)


def test_a_word_that_is_not_a_length_scale_is_refused():
    with pytest.raises(ParameterError, match=r"'median', a positive number .* not 'mean'"):
        Gaussian("mean")


@every_kernel
def test_a_length_scale_that_is_not_resolved_is_refused(kernel, formula):
    with pytest.raises(ParameterError, match="'median' is known only once a model is fitted"):
        kernel.with_length_scale("median")(rows(2), rows(2))
    with pytest.raises(ParameterError, match="'median' must be resolved"):
        kernel.with_length_scale("median").spectral(rows(2), np.full((2, 1), 0.5))


@every_kernel
def test_another_number_of_length_scales_than_inputs_is_refused(kernel, formula):
    with pytest.raises(ParameterError, match="one number or one per input, 3 here, not 2"):
        kernel.with_length_scale((1.0, 2.0))(rows(2), rows(2))


@every_kernel
def test_rows_of_different_widths_are_refused(kernel, formula):
    with pytest.raises(ParameterError, match="same number of columns, not 3 and 2"):
        kernel(rows(2), rows(2, p=2))


@every_kernel
def test_a_single_row_without_its_second_dimension_is_refused(kernel, formula):
    with pytest.raises(ParameterError, match="must be a 2-D array"):
        kernel(np.zeros(3), rows(2))


@naive.quick
@given(nu=st.floats().filter(lambda nu: nu not in (0.5, 1.5, 2.5)))
def test_another_smoothness_than_the_closed_forms_is_refused(nu):
    with pytest.raises(ParameterError, match=r"nu must be 0\.5, 1\.5 or 2\.5"):
        Matern(nu=nu)


def test_an_unknown_kernel_or_parameter_is_refused():
    with pytest.raises(ParameterError, match=r"kernel must be one of gaussian, .* not 'gausian'"):
        kernel_from("gausian", {})
    with pytest.raises(ParameterError, match=r"takes \['length_scale'\], not \['gamma'\]"):
        kernel_from("gaussian", {"gamma": 1.0})
