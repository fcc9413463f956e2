"""Kernels against scalar loops of their formulas, and their spectral distributions."""

from __future__ import annotations

import json
import math
from functools import partial

import naive
import numpy as np
import pytest
from scipy.integrate import quad
from tolerances import assert_close

from streamkern.errors import ModelFileError, ParameterError
from streamkern.kernels import (
    KERNELS,
    Cauchy,
    Gaussian,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    ScaledKernel,
    kernel_from,
)

FORMULAS = {
    Gaussian(1.0): naive.gaussian,
    **{Matern(1.0, nu=nu): partial(naive.matern, nu=nu) for nu in (0.5, 1.5, 2.5, 0.3, 4.0)},
    Laplacian(1.0): naive.laplacian,
    RationalQuadratic(1.0): partial(naive.rational_quadratic, shape=1.0),
    RationalQuadratic(1.0, shape=3.5): partial(naive.rational_quadratic, shape=3.5),
    InverseMultiquadric(1.0): partial(naive.rational_quadratic, shape=0.5),
    Cauchy(1.0): naive.cauchy,
}
every_kernel = pytest.mark.parametrize(
    ("kernel", "formula"), FORMULAS.items(), ids=[kernel.name for kernel in FORMULAS]
)


def rows(n: int, p: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p))


@every_kernel
@pytest.mark.parametrize("scale", [1.0, 0.6, (0.5, 2.0, 30.0)])
def test_the_value_is_that_of_the_formula(kernel, formula, scale):
    X = np.concatenate([rows(7), 1e3 + rows(4)])
    Z = np.concatenate([rows(5, seed=1), X[::3], 1e3 + rows(3, seed=1)])
    values = kernel.with_length_scale(scale)(X, Z)
    expected = naive.kernel_matrix(formula, X, Z, np.broadcast_to(scale, 3))
    assert values.dtype == np.float64
    assert_close(values[:7, :5], expected[:7, :5])
    assert_close(values, expected, size=1e3)


@every_kernel
def test_more_rows_than_are_held_at_once_give_the_same_values(kernel, formula):
    X, Z = rows(2500), rows(3, seed=1)
    pieces = [kernel(X[start : start + 100], Z) for start in range(0, 2500, 100)]
    assert_close(kernel(X, Z), np.concatenate(pieces))


def test_lists_and_integers_are_rows_too():
    X = [[0, 1], [2, 3]]
    for name, kernel in KERNELS.items():
        made = kernel if name in ("polynomial", "linear") else kernel.with_length_scale(1.0)
        assert_close(made(X, X), made(np.array(X, dtype=float), np.array(X, dtype=float)), steps=0)


@every_kernel
@pytest.mark.parametrize("scale", [3.0, (0.5, 2.0, 8.0)])
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
def test_the_waves_of_all_frequencies_by_their_density_are_the_kernel(kernel, formula):
    scale = 0.7
    kernel = kernel.with_length_scale(scale)

    def density(w: float) -> float:
        return kernel.density(np.array([[w]]))[0]

    for lag in (0.3, 1.0, 2.5):
        low, _ = quad(lambda w, lag=lag: density(w) * math.cos(lag * w), 0.0, 1.0)
        high, _ = quad(density, 1.0, np.inf, weight="cos", wvar=lag, epsabs=1e-8)
        assert 2 * (low + high) == pytest.approx(formula((lag,), (0.0,), (scale,)), abs=1e-6)


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


# Beside those of test_combined.py.
OTHERS = [
    *(Gaussian((1.0, 2.0)), Matern("median", nu=1 / 3), InverseMultiquadric(3.0), Linear()),
    *(Periodic(2.0, period=(7, 365.25)), Polynomial(3, constant=0), Polynomial(np.int64(2))),
]


@pytest.mark.parametrize("kernel", OTHERS, ids=repr)
def test_a_kernel_survives_its_name_and_json_parameters(kernel):
    parameters = json.loads(json.dumps(kernel.parameters(), allow_nan=False))
    assert kernel_from(kernel.name, parameters) == kernel


def test_every_kernel_is_listed_under_its_own_name():
    assert set(KERNELS) == {
        *("gaussian", "laplacian", "matern", "matern12", "matern32", "matern52", "linear"),
        *("rational-quadratic", "inverse-multiquadric", "cauchy", "periodic", "polynomial", "rbf"),
    }
    assert all(KERNELS[name].name == name for name in KERNELS if name not in ("matern", "rbf"))
    assert (KERNELS["matern"].name, KERNELS["rbf"].name) == ("matern32", "gaussian")


def test_the_length_scale_is_the_median_unless_it_is_given():
    scaled = [kernel for kernel in KERNELS.values() if isinstance(kernel, ScaledKernel)]
    assert len(scaled) == len(KERNELS) - 2  # polynomial and linear have none
    assert {kernel.length_scale for kernel in scaled} == {"median"}
    assert (Laplacian().on([0]) * Matern()).length_scale == "median"
    assert repr(Laplacian()) == "Laplacian(length_scale='median')"
    with pytest.raises(ParameterError, match="'median' is known only once a model is fitted"):
        Laplacian()([[1.0]], [[2.0]])


BAD = [0, -1.0, math.nan, math.inf, "1", None]
POSITIVE = "must be positive and finite, not"


@pytest.mark.parametrize(
    ("made", "values", "words"),
    [
        (Gaussian, [*BAD[:4], (), (1.0, 0.0), [[1.0, 2.0]], None, {}], f"length_scale {POSITIVE}"),
        (Gaussian, ["mean"], r"'median', a positive number .* not 'mean'"),
        (lambda value: Matern(1.0, nu=value), [*BAD, True, (1.0, 2.0)], f"nu {POSITIVE}"),
        (lambda value: RationalQuadratic(1.0, shape=value), [*BAD, True], f"shape {POSITIVE}"),
        (lambda value: Periodic(1.0, period=value), [0], f"period {POSITIVE} 0; give a"),
        (Polynomial, [0, -1, 1.5, "2", None, True], "degree must be a whole number of at least 1"),
        (lambda value: Polynomial(constant=value), BAD[1:], "constant must be a number of at le"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(made, values, words):
    for value in values:
        with pytest.raises(ParameterError, match=words):
            made(value)


@every_kernel
def test_rows_and_length_scales_that_do_not_go_together_are_refused(kernel, formula):
    unresolved, uniform = kernel.with_length_scale("median"), np.full((2, 1), 0.5)
    two = kernel.with_length_scale((1.0, 2.0))
    for use, words in (
        (lambda: unresolved(rows(2), rows(2)), "'median' is known only once a model is fitted"),
        (lambda: unresolved.spectral(rows(2), uniform), "'median' must be resolved"),
        (lambda: two(rows(2), rows(2)), "one number or one per input, 3 here, not 2"),
        (lambda: kernel(rows(2), rows(2, p=2)), "same number of columns, not 3 and 2"),
        (lambda: kernel(np.zeros(3), rows(2)), "must be a 2-D array"),
    ):
        with pytest.raises(ParameterError, match=words):
            use()


def test_so_smooth_a_kernel_that_it_is_the_gaussian_is_refused():
    with pytest.raises(ParameterError, match="at most 100, not 101; take"):
        Matern(1.0, nu=101)
    r = np.linspace(0, 4, 50)[:, None]
    assert np.abs(Matern(1.0, nu=100)(r, r) - Gaussian(1.0)(r, r)).max() < 0.01


@pytest.mark.parametrize("nu", [0.01, 0.3, 1.0, 2.0, 7.5, 30.0, 100.0])
def test_matern_values_fall_from_one_to_nothing_at_any_distance(nu):
    r = np.concatenate([[0.0], np.logspace(-10, 300, 2000)])
    values = Matern(1.0, nu=nu).profile(r)
    assert values[0] == 1.0
    assert values[-1] == 0.0
    assert (np.diff(values) <= 1e-12).all()
    assert Matern(1.0, nu=nu).profile(np.array([1e-300]))[0] == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_closed_forms_are_those_of_the_bessel_function(nu):
    r = np.linspace(0.0, 20.0, 200)
    beside = Matern(1.0, nu=np.nextafter(nu, 1.0)).profile(r)
    assert_close(Matern(1.0, nu=nu).profile(r), beside, steps=1000)


@pytest.mark.parametrize(("degree", "constant"), [(1, 0.0), (2, 1.0), (3, 0.5)])
def test_the_polynomial_kernel_is_a_power_of_inner_products(degree, constant):
    X, Z = rows(7), rows(5, seed=1)
    values = Polynomial(degree, constant)(X, Z)
    expected = [[naive.polynomial(x, z, degree, constant) for z in Z] for x in X]
    assert_close(values, expected)
    K = Polynomial(degree, constant)(X, X)
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * np.abs(K).max()


def test_the_multiquadric_is_refused_with_the_reason():
    with pytest.raises(ParameterError, match=r"not positive definite.* take inverse-multiquadric"):
        kernel_from("multiquadric", {})


def test_an_unknown_kernel_or_parameter_is_refused():
    words = r"kernel must be one of gaussian, .* not 'gausian' .did you mean 'gaussian'\?.; take"
    with pytest.raises(ParameterError, match=words):
        kernel_from("gausian", {})
    with pytest.raises(ParameterError, match=r"not 'bessel'; take one\.$"):
        kernel_from("bessel", {})
    with pytest.raises(ParameterError, match=r"takes \['length_scale'\], not \['gamma'\]"):
        kernel_from("gaussian", {"gamma": 1.0})


def test_a_name_that_another_kernel_has_is_refused():
    with pytest.raises(ParameterError, match=r"'gaussian' is the name of streamkern\.kernels"):
        type("Mine", (Linear,), {"family": "gaussian"})


def test_a_kernel_of_a_file_that_no_module_declares_is_refused_with_the_remedy():
    words = r"kernel 'mine' of the file is not declared here; import the module .*load the file"
    for name, parameters in (
        ("mine(nu=2)", {"nu": 2.0}),
        ("mine*gaussian", {"factors": [{"name": "mine", "parameters": {"length_scale": 1.0}}] * 2}),
    ):
        with pytest.raises(ModelFileError, match=words):
            kernel_from(name, parameters)
