"""Sums, products and groups of kernels: values by loops, draws, and what becomes of columns."""

import json
import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from tolerances import assert_close

import streamkern
from streamkern.errors import ParameterError
from streamkern.features import RandomFourierFeatures
from streamkern.kernels import (
    Cauchy,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    OnColumns,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Sum,
    kernel_from,
    length_scale_of,
    parsed_kernel,
    simple_kernels,
)
from streamkern.kernels.combined import reduced

P = 4
# sin(x) of one input beside a Gaussian of two, and a rough part of all.
EXAMPLE = Gaussian(2.0).on([0, 1]) * Periodic(0.8, period=3.0).on([3]) + 0.5 * Matern(1.5, nu=0.5)


def example(x, z) -> float:
    first = naive.gaussian(x[:2], z[:2], (2.0, 2.0))
    second = naive.periodic(x[3:], z[3:], (0.8,), (3.0,))
    return (first * second + 0.5 * naive.matern(x, z, (1.5,) * P, 0.5)) / 1.5


def rows(n: int, p: int = P, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p))


scales = st.sampled_from([0.4, 1.0, 2.5])
leaves = st.one_of(
    st.builds(Gaussian, scales),
    st.builds(Laplacian, scales),
    st.builds(Cauchy, scales),
    st.builds(Matern, scales, nu=st.sampled_from([0.5, 2.0])),
    st.builds(RationalQuadratic, scales, shape=st.sampled_from([0.7, 1.0])),
    st.builds(Periodic, scales, period=st.sampled_from([1.0, 2.5])),
)
columns = st.lists(st.integers(0, P - 1), min_size=1, max_size=P, unique=True)
groups = st.builds(lambda kernel, columns: kernel.on(columns), leaves, columns)
kernels = st.recursive(
    leaves | groups,
    lambda some: st.one_of(
        st.builds(lambda a, b: a + b, some, some),
        st.builds(lambda a, b: a * b, some, some),
        st.builds(lambda a, weight: weight * a, some, st.sampled_from([0.25, 3.0])),
    ),
    max_leaves=5,
)


def test_the_value_is_that_of_the_formula():
    X, Z = rows(7), rows(5, seed=1)
    expected = [[example(x, z) for z in Z.tolist()] for x in X.tolist()]
    assert_close(EXAMPLE(X, Z), expected)


@naive.quick
@given(kernel=kernels)
def test_every_combination_is_positive_semidefinite_and_one_at_no_distance(kernel):
    X = np.concatenate([rows(25), rows(5)])  # five rows occur twice
    K = kernel(X, X)
    assert np.linalg.eigvalsh(K).min() >= -1000 * np.finfo(float).eps * len(X)
    assert_close(np.diagonal(K), np.ones(len(X)), steps=1000)


@naive.quick
@given(kernel=kernels)
def test_the_mean_cosine_over_spectral_draws_is_the_kernel(kernel):
    n, rng = 20_000, np.random.default_rng(3)
    normal = rng.standard_normal((n, kernel.normal_sets * P))
    frequencies = kernel.spectral(normal, 1.0 - rng.random((n, kernel.n_uniforms)))
    assert frequencies.shape == (n, P)
    for lag in (0.3, 1.0):
        t = lag * np.array([0.5, -0.7, 0.2, 0.4])
        cosines = np.cos(frequencies @ t)
        expected = kernel(t[None], np.zeros((1, P)))[0, 0]
        assert abs(cosines.mean() - expected) <= 4.5 * cosines.std() / math.sqrt(n) + 1e-12


@naive.quick
@given(kernel=kernels)
def test_every_combination_survives_its_parameters_its_name_and_its_expression(kernel):
    parameters = json.loads(json.dumps(kernel.parameters(), allow_nan=False))
    assert kernel_from(kernel.name, parameters) == kernel
    assert eval(repr(kernel), vars(streamkern.kernels)) == kernel  # noqa: S307  our own text
    as_text = parsed_kernel(kernel.name, 1.0)
    assert as_text.name == kernel.name
    assert [type(k) for k in simple_kernels(as_text)] == [type(k) for k in simple_kernels(kernel)]


@naive.quick
@given(kernel=kernels, factor=st.sampled_from([0.5, 3.0]))
def test_a_stretched_combination_has_stretched_parts(kernel, factor):
    stretched = kernel.stretched(factor)
    assert_close(length_scale_of(stretched), factor * np.array(length_scale_of(kernel)))
    if "Periodic" not in repr(kernel):
        X, Z = rows(6), rows(4, seed=1)
        assert_close(stretched(factor * X, factor * Z), kernel(X, Z), steps=1000)
        normal = rows(50, kernel.normal_sets * P)
        uniform = np.random.default_rng(0).random((50, kernel.n_uniforms))
        frequencies = kernel.spectral(normal, uniform) / factor
        # Relative to each: those of heavy tails are of any size.
        np.testing.assert_allclose(stretched.spectral(normal, uniform), frequencies, rtol=1e-9)


@naive.quick
@given(kernel=kernels, kept=columns)
def test_without_constant_columns_the_kernel_is_the_same_up_to_a_constant(kernel, kept):
    kept = sorted(kept)
    X, Z = rows(6), rows(4, seed=1)
    constant = [j for j in range(P) if j not in kept]
    X[:, constant] = Z[:, constant] = 0.7
    if not set(kernel.used_columns or range(P)) & set(kept):
        with pytest.raises(ParameterError, match="are constant, so rows do not differ for it"):
            kernel.restricted(kept)
        return
    constant, _ = reduced(kernel, kept)
    part = kernel.restricted(kept)(X[:, kept], Z[:, kept])
    # What is constant is for the intercept, and the rest differs between rows in proportion.
    assert_close(kernel(X, Z), constant + (1.0 - constant) * part, steps=1000)


def test_a_constant_term_of_a_factor_leaves_the_other_factor():
    kernel = (Gaussian().on([0]) + 3 * Laplacian().on([1])) * Cauchy().on([2])
    assert kernel.restricted([1, 2]) == (
        0.75 * (Laplacian().on([0]) * Cauchy().on([1])) + 0.25 * Cauchy().on([1])
    )
    nothing_left = (Gaussian().on([0]) + Gaussian().on([1])) * Cauchy().on([0])
    assert nothing_left.reduced([1]) == (0.5, Gaussian().on([0]))
    rest = Sum((Gaussian().on([0]), Laplacian().on([0])), (0.5, 1.0))
    assert (nothing_left + Laplacian().on([1])).reduced([1]) == (0.25, rest)


def test_terms_that_no_frequency_is_drawn_of_are_left_out():
    normal, uniform = np.ones((3, 2)), np.full((3, 1), 0.5)
    rare = Gaussian(2.0).on([0, 1]) + 1e-9 * Gaussian(1.0).on([1])
    np.testing.assert_allclose(rare.spectral(normal, uniform), np.full((3, 2), 0.5))


def test_weights_count_by_their_share():
    one, other = Gaussian(2.0), Laplacian(1.0)
    X, Z = rows(6), rows(4, seed=1)
    expected = 0.75 * one(X, Z) + 0.25 * other(X, Z)
    for mean in (0.75 * one + 0.25 * other, 3 * one + other, one * 1.5 + 0.5 * other):
        assert_close(mean(X, Z), expected)
    assert_close((5.0 * one)(X, Z), one(X, Z))
    assert (one + other + Cauchy()).weights == (1.0, 1.0, 1.0)
    assert np.float64(2.0) * (one + other) == 2 * one + 2 * other


def test_a_weight_is_that_of_the_product():
    expected = Sum((Product((Gaussian(), Laplacian())), Cauchy()), (0.5, 1.0))
    assert 0.5 * Gaussian() * Laplacian() + Cauchy() == expected
    assert Gaussian() * (0.5 * Laplacian()) + Cauchy() == expected
    assert Gaussian() * Laplacian() * 0.5 + Cauchy() == expected


def test_columns_of_columns_are_counted_among_them():
    kernel = Gaussian((1.0, 2.0)).on([1, 0]).on([5, 7])
    assert kernel == OnColumns(Gaussian((1.0, 2.0)), (7, 5))
    both = (Gaussian() * Laplacian().on([0]) + Cauchy()).on([3, 2])
    assert both.name == "gaussian[3,2]*laplacian[3]+cauchy[3,2]"
    assert Gaussian().on([0, 1, 2, 5, 7, 8]).name == "gaussian[0-2,5,7,8]"


def test_factors_of_different_columns_share_normal_numbers_and_others_do_not():
    assert (Gaussian().on([0, 1]) * Laplacian().on([2, 3])).normal_sets == 1
    assert (Gaussian().on([0, 1]) * Laplacian().on([1, 3])).normal_sets == 2
    assert (Gaussian() * Laplacian()).normal_sets == 2
    assert (Gaussian().on([0]) * Laplacian() * Cauchy().on([2])).normal_sets == 2
    assert (Gaussian() * Laplacian() + Cauchy()).normal_sets == 2
    assert (Matern() * RationalQuadratic()).n_uniforms == 2


def test_a_gaussian_kernel_by_groups_has_the_features_of_the_whole():
    groups = Gaussian(2.0).on([0, 3]) * Gaussian(2.0).on([1]) * Gaussian(2.0).on([2])
    one, other = (
        RandomFourierFeatures(kernel, 64, random_state=5).draw(P)
        for kernel in (groups, Gaussian(2.0))
    )
    np.testing.assert_array_equal(one.frequencies, other.frequencies)


def test_medians_are_those_of_the_columns_of_each_part():
    X = rows(50) * (1.0, 1.0, 10.0, 100.0)
    kernel = Gaussian("median").on([0, 1]) * Laplacian("median").on([3]) + Matern("median")
    resolved = kernel.resolved(X)
    expected = (
        Gaussian("median").resolved(X[:, :2]).length_scale,
        Laplacian("median").resolved(X[:, 3:]).length_scale,
        Matern("median").resolved(X).length_scale,
    )
    assert kernel.length_scale == "median"
    assert resolved.length_scale == expected
    # And where the second column is left out, of the whole kernel nevertheless.
    kept = np.array([0, 2, 3])
    resolved = kernel.resolved(X[:, kept], kept)
    assert resolved.name == kernel.name
    assert resolved.length_scale[0] == Gaussian("median").resolved(X[:, :1]).length_scale
    # A part of constant columns alone is left out, so any length scale will do.
    assert kernel.resolved(X[:, :2], np.array([0, 1])).length_scale[1] == 1.0


def test_columns_are_counted_anew_where_some_are_left_out():
    kernel = Gaussian((1.0, 2.0)).on([1, 3]) * Periodic(period=2.0).on([0]) + Laplacian().on([2])
    assert kernel.restricted([1, 2]) == (1 * Gaussian((1.0,)).on([0])) + Laplacian().on([1])
    assert kernel.restricted([0, 3]).name == "gaussian[1]*periodic(period=2)[0]"
    assert kernel.restricted(range(4)) == kernel


def test_the_density_of_groups_is_that_of_the_draws():
    kernel = Gaussian(2.0).on([0, 1]) * Laplacian(1.0).on([2, 3]) + 2 * Matern(0.5, nu=1.5)
    n, rng = 100_000, np.random.default_rng(4)
    wide = kernel.stretched(0.8)
    frequencies = wide.spectral(rng.standard_normal((n, P)), 1.0 - rng.random((n, 1)))
    weights = kernel.density(frequencies) / wide.density(frequencies)
    for lag in (0.0, 0.4, 1.2):
        t = lag * np.array([0.5, -0.7, 0.2, 0.4])
        waves = weights * np.cos(frequencies @ t)
        expected = kernel(t[None], np.zeros((1, P)))[0, 0]
        assert abs(waves.mean() - expected) <= 4.5 * waves.std() / math.sqrt(n)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (Gaussian().on([0, 1, 2]), "are 0 in other columns and have no density"),
        (Gaussian(1.0).on([0, 1]) * Cauchy(1.0).on([3]), "are 0 in column 2 and have no density"),
        (Gaussian() * Cauchy(), "has factors of the same columns, and no density that is known"),
        (Gaussian(1.0) + Periodic(1.0), "are multiples of 2 pi / period and have no density"),
    ],
)
def test_a_distribution_without_density_is_refused(kernel, reason):
    with pytest.raises(ParameterError, match=reason):
        kernel.density(rows(3))


@pytest.mark.parametrize("columns", [[], [0, 0], [-1], [0.5], ["0"], [[0, 1]], 3], ids=repr)
def test_columns_that_are_not_different_whole_numbers_are_refused(columns):
    with pytest.raises(ParameterError, match="columns are different whole numbers from 0"):
        OnColumns(Gaussian(), columns)


def test_columns_that_rows_do_not_have_are_refused():
    kernel = Gaussian().on([0, 7]) * Laplacian()
    for check in (lambda: kernel(rows(2), rows(2)), lambda: kernel.check_inputs(P)):
        with pytest.raises(ParameterError, match=r"one of column 7, but columns go from 0 to 3"):
            check()
    with pytest.raises(ParameterError, match="one number or one per input, 2 here, not 3"):
        Gaussian((1.0, 2.0, 3.0)).on([0, 1])
    with pytest.raises(ParameterError, match="one of column 1, but columns go from 0 to 0"):
        Gaussian().on([1]).on([5])


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_weights_that_are_not_positive_are_refused(weight):
    with pytest.raises(ParameterError, match="weights of a sum of kernels must be positive"):
        weight * Gaussian() + Laplacian()


@pytest.mark.parametrize("other", [None, "gaussian", 1.0])
def test_only_kernels_are_added(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        Gaussian() + other
    with pytest.raises(TypeError, match="unsupported operand"):
        Gaussian() + Linear()


ON_FIRST = {"name": "gaussian[0]", "parameters": Gaussian(1.0).on([0]).parameters()}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gaussian+laplacian", {"terms": [{"name": "gaussian", "parameters": {}}]}),
        ("gaussian+laplacian", {"terms": 3, "weights": [1.0]}),
        ("linear[0]", {"kernel": {"name": "linear", "parameters": {}}, "columns": [0]}),
        ("gaussian[0]", {"kernel": {"name": "gaussian", "parameters": []}, "columns": 0}),
        ("gaussian[0]", {"kernel": {"name": "cauchy", "parameters": {}}, "columns": [0]}),
        ("gaussian[0]", {"kernel": "gaussian", "columns": [0]}),
        ("gaussian[0][0]", {"kernel": ON_FIRST, "columns": [0]}),
        ("gaussian*linear", {"factors": [{"name": "linear", "parameters": {}}] * 2}),
        ("gaussian*linear", {"factors": [{"name": "linear"}]}),
        ("gaussian*cauchy", {"factors": [{"name": 3, "parameters": {}}]}),
        ("gaussian*cauchy", {"factors": [{"name": "gaussian", "parameters": {}}]}),
        ("gaussian+cauchy", {"terms": [], "weights": []}),
        ("gaussian*cauchy", {"factors": []}),
        ("matern(nu=2)", {"length_scale": 1.0, "nu": 3.0}),
    ],
)
def test_parameters_that_are_not_those_of_the_kernel_are_refused(name, parameters):
    with pytest.raises(ParameterError, match=r"the file is damaged|whole numbers from 0"):
        kernel_from(name, parameters)


# Parameters by name.

SEASONAL = Gaussian((2.0, 3.0)).on([0, 1]) * Periodic(period=7).on([2])
SUM = SEASONAL + 0.5 * Matern(4.0, nu=2.5)


def test_parameters_are_those_that_the_kernel_and_its_parts_were_made_with():
    assert Matern(2.0, nu=1.5).get_params() == {"length_scale": 2.0, "nu": 1.5}
    assert Polynomial(3).get_params(deep=False) == {"degree": 3, "constant": 1.0}
    assert Linear().get_params() == {}
    found = SUM.get_params()
    assert found["1__length_scale"] == 4.0
    assert found["0__0__kernel__length_scale"] == (2.0, 3.0)
    assert found["0__1__columns"] == (2,)
    assert set(SUM.get_params(deep=False)) == {"terms", "weights"}


def test_parameters_of_parts_are_changed_by_their_names():
    changed = SUM.with_params(**{"1__length_scale": 9.0, "0__1__kernel__period": 30.0})
    other = Gaussian((2.0, 3.0)).on([0, 1]) * Periodic(period=30).on([2])
    assert changed == other + 0.5 * Matern(9.0, nu=2.5)
    assert changed.with_params(**SUM.get_params()) == SUM


def test_own_parameters_are_set_before_those_of_the_parts_that_they_bring():
    changed = SUM.with_params(**{"1__nu": 0.5, "terms": (SEASONAL, Matern(1.0, nu=1.5))})
    assert changed.get_params()["1__nu"] == 0.5
    assert changed.get_params()["1__length_scale"] == 1.0


@pytest.mark.parametrize("name", ["gamma", "kernel__length_scale", "2__length_scale"])
def test_an_unknown_parameter_is_refused_with_the_names_there_are(name):
    with pytest.raises(ParameterError, match=r"has the parameters .*1__nu, not"):
        SUM.with_params(**{name: 1.0})


@pytest.mark.parametrize("kernel", [Gaussian([1.0, 2.0]), SUM, Linear()])
def test_the_clone_of_a_kernel_is_itself(kernel):
    assert clone(kernel) is kernel
