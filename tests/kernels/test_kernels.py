"""Kernels against loops of their formulas, their spectral distributions, and median scales."""

import json
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

from streamkern.errors import DataError, ModelFileError, ParameterError
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
    ShiftInvariantKernel,
    kernel_from,
)
from streamkern.kernels.shift_invariant import MEDIAN_ROWS, median_distance

PERIODS = 7.0, 0.3, 2.0
FORMULAS = {
    Gaussian(1.0): naive.gaussian,
    **{Matern(1.0, nu=nu): partial(naive.matern, nu=nu) for nu in (0.5, 1.5, 2.5, 0.3, 4.0)},
    Laplacian(1.0): naive.laplacian,
    RationalQuadratic(1.0): partial(naive.rational_quadratic, shape=1.0),
    RationalQuadratic(1.0, shape=3.5): partial(naive.rational_quadratic, shape=3.5),
    InverseMultiquadric(1.0): partial(naive.rational_quadratic, shape=0.5),
    Cauchy(1.0): naive.cauchy,
    Periodic(1.0, period=PERIODS): partial(naive.periodic, periods=PERIODS),
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


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [(kernel, formula) for kernel, formula in FORMULAS.items() if not isinstance(kernel, Periodic)],
)
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


@pytest.mark.parametrize(
    "kernel", [kernel for kernel in FORMULAS if not isinstance(kernel, Periodic)], ids=repr
)
def test_a_density_integrates_to_one(kernel):
    t = np.linspace(-40.0, 40.0, 40_000)  # 0 is not among them, where some are infinite
    density = kernel.with_length_scale(0.5).density(np.sinh(t)[:, None])
    assert np.trapezoid(density * np.cosh(t), t) == pytest.approx(1.0, rel=1e-3)


@every_kernel
def test_extreme_normal_and_uniform_numbers_give_finite_frequencies(kernel, formula):
    normal = np.array([[0.0, -8.0, 1e-300], [8.0, -1.0, 1.0]])
    for uniform in (2.0**-53, 0.5, 1.0):
        assert np.isfinite(kernel.spectral(normal, np.full((2, 1), uniform))).all()


OTHERS = [
    *(Gaussian((1.0, 2.0)), Matern("median", nu=1 / 3), InverseMultiquadric(3.0), Linear()),
    *(Periodic(2.0, period=(7, 365.25)), Polynomial(3, constant=0), Polynomial(np.int64(2))),
]


@pytest.mark.parametrize("kernel", OTHERS, ids=repr)
def test_a_kernel_survives_its_name_and_json_parameters(kernel):
    parameters = json.loads(json.dumps(kernel.parameters(), allow_nan=False))
    assert kernel_from(kernel.name, parameters) == kernel


def test_every_kernel_is_listed_under_its_own_name():
    families = {kernel.family for kernel in (*FORMULAS, Polynomial(), Linear())}
    assert set(KERNELS) == families | {"matern12", "matern32", "matern52", "rbf"}
    assert all(KERNELS[name].name == name for name in KERNELS if name not in ("matern", "rbf"))
    assert (KERNELS["matern"].name, KERNELS["rbf"].name) == ("matern32", "gaussian")


def test_the_length_scale_is_the_median_unless_it_is_given():
    scaled = [kernel for kernel in KERNELS.values() if isinstance(kernel, ShiftInvariantKernel)]
    assert len(scaled) == len(KERNELS) - 2  # polynomial and linear have none
    assert {kernel.length_scale for kernel in scaled} == {"median"}
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


def test_the_multiquadric_is_refused_with_the_reason():
    with pytest.raises(ParameterError, match=r"not positive definite.* take inverse-multiquadric"):
        kernel_from("multiquadric", {})


def test_an_unknown_kernel_or_parameter_is_refused():
    words = r"kernel must be one of gaussian, .* not 'gausian' .did you mean 'gaussian'\?.; choose"
    with pytest.raises(ParameterError, match=words):
        kernel_from("gausian", {})
    with pytest.raises(ParameterError, match=r"not 'bessel'; choose one of them\.$"):
        kernel_from("bessel", {})
    with pytest.raises(ParameterError, match=r"takes \['length_scale'\], not \['gamma'\]"):
        kernel_from("gaussian", {"gamma": 1.0})


def test_a_name_that_another_kernel_has_is_refused():
    with pytest.raises(ParameterError, match=r"'gaussian' is the name of streamkern\.kernels"):
        type("Mine", (Linear,), {"family": "gaussian"})


def test_a_kernel_of_a_file_that_no_module_declares_is_refused_with_the_remedy():
    words = r"kernel 'mine' of the file is not declared here; import the module .*load the file"
    with pytest.raises(ModelFileError, match=words):
        kernel_from("mine(nu=2)", {"nu": 2.0})


# The periodic kernel, whose frequencies are multiples of one.


def probability(j: int, c: float) -> float:
    """exp(-c) I_|j|(c), as the integral that defines it."""
    return (
        quad(lambda t: math.exp(c * (math.cos(t) - 1)) * math.cos(j * t), 0, math.pi)[0] / math.pi
    )


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
