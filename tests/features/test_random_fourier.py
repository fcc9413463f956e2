"""Random Fourier features: what is drawn, what is evaluated, what is refused."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tolerances import assert_close

from streamkern.errors import DataError, ParameterError
from streamkern.features import RandomFourierFeatures
from streamkern.features.random_fourier import independent_rows, orthogonal_rows
from streamkern.kernels import Gaussian, Linear, Matern

every_form = pytest.mark.parametrize(
    ("orthogonal", "paired"),
    [(True, True), (True, False), (False, True), (False, False)],
    ids=["orthogonal-paired", "orthogonal-phase", "iid-paired", "iid-phase"],
)


def rows(n: int = 9, p: int = 3) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, p))


def drawn(kernel=Gaussian(1.5), n_components=22, p=3, **options):  # noqa: B008  immutable
    return RandomFourierFeatures(kernel, n_components, **options).draw(p)


@every_form
def test_fitting_draws_for_the_columns_whatever_their_values(orthogonal, paired):
    options = {"orthogonal": orthogonal, "paired": paired}
    fitted = RandomFourierFeatures(Gaussian(1.5), 22, **options).fit(np.full((2, 3), 9.0))
    assert np.array_equal(fitted.transform(rows()), drawn(**options).transform(rows()))


@every_form
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_evaluating_leaves_out_the_scale_and_subtracts_the_shift(orthogonal, paired, dtype):
    phi = drawn(orthogonal=orthogonal, paired=paired)
    shift = np.linspace(-1, 1, 22).astype(dtype)
    plain, shifted = np.empty((2, 9, 22), dtype=dtype)
    phi.evaluate(rows(), plain)
    phi.evaluate(rows(), shifted, shift)
    assert np.array_equal(shifted, plain - shift)
    assert_close(phi.transform(rows(), dtype), plain * phi.scale, dtype=dtype, steps=2)
    assert phi.transform(rows(), dtype).dtype == dtype


@every_form
def test_more_rows_than_fit_in_cache_have_the_same_features(orthogonal, paired):
    phi = drawn(n_components=2048, orthogonal=orthogonal, paired=paired)
    X = rows(300)
    assert_close(phi.transform(X)[-7:], phi.transform(X[-7:]), size=10.0)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float32, np.bool_])
def test_inputs_of_any_real_type_are_taken_as_their_values(dtype):
    X = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    assert np.array_equal(drawn().transform(X), drawn().transform(X.astype(float)))


def test_a_restored_map_holds_what_was_drawn_not_a_new_draw():
    phi = drawn()
    arrays = {name: array + 1 for name, array in phi.arrays().items()}
    back = RandomFourierFeatures.restore(phi.parameters(), arrays)
    assert np.array_equal(back.frequencies, phi.frequencies + 1)


# What is drawn.


@naive.quick
@given(p=st.integers(1, 9), n=st.integers(1, 40), seed=st.integers(0, 99))
def test_orthogonal_rows_are_orthogonal_within_blocks_of_p(p, n, seed):
    normal = orthogonal_rows(n, p, seed)
    assert normal.shape == (n, p)
    directions = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    for start in range(0, n, p):
        block = directions[start : start + p]
        assert_close(block @ block.T, np.eye(len(block)))


@pytest.mark.parametrize("p", [1, 2, 5, 16])
@pytest.mark.parametrize("draw", [orthogonal_rows, independent_rows], ids=["orthogonal", "iid"])
def test_a_normal_row_has_a_chi_length_and_a_uniform_direction(draw, p):
    normal = draw(4000, p, 1)
    lengths = np.linalg.norm(normal, axis=1)
    assert stats.kstest(lengths, stats.chi(p).cdf).pvalue > 1e-3
    # Of every block one row, so that the numbers tested are independent.
    for column in normal[::p].T:
        assert stats.kstest(column, stats.norm.cdf).pvalue > 1e-3
    if p > 1:
        slanted = normal[::p] @ np.ones(p) / np.sqrt(p)
        assert stats.kstest(slanted, stats.norm.cdf).pvalue > 1e-3


def test_the_lengths_of_orthogonal_rows_are_independent_of_each_other():
    normal = orthogonal_rows(8000, 4, 2)
    lengths = np.linalg.norm(normal, axis=1).reshape(-1, 4)
    between = np.corrcoef(lengths.T)[np.triu_indices(4, 1)]
    assert np.abs(between).max() < 4 / np.sqrt(len(lengths))


@pytest.mark.parametrize("draw", [orthogonal_rows, independent_rows], ids=["orthogonal", "iid"])
@naive.quick
@given(fewer=st.integers(1, 30), p=st.integers(1, 7))
def test_fewer_rows_are_the_first_of_more(draw, fewer, p):
    assert np.array_equal(draw(30, p, 3)[:fewer], draw(fewer, p, 3))


def test_phases_are_uniform_on_the_circle():
    phi = drawn(n_components=5000, paired=False)
    assert stats.kstest(phi.phases, stats.uniform(0, 2 * np.pi).cdf).pvalue > 1e-3


def test_draws_that_mix_over_scales_do_so_independently_of_lengths_and_phases():
    plain = drawn(Gaussian(1.0), 2000, p=2, paired=False)
    mixed = drawn(Matern(1.0, nu=2.5), 2000, p=2, paired=False)
    stretch = np.linalg.norm(mixed.frequencies, axis=1) / np.linalg.norm(plain.frequencies, axis=1)
    scaled = stats.kstest(5 / stretch**2, stats.chi2(5).cdf)
    assert scaled.pvalue > 1e-3
    for other in (np.linalg.norm(plain.frequencies, axis=1), mixed.phases):
        assert abs(stats.spearmanr(stretch, other).statistic) < 4 / np.sqrt(2000)


# What is refused.


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("n_components", [0, -2])
def test_fewer_than_one_feature_is_refused(n_components, paired):
    with pytest.raises(ParameterError, match=f"must be at least 1, not {n_components}"):
        RandomFourierFeatures(Gaussian(1.0), n_components, paired=paired)


@pytest.mark.parametrize("n_components", [2.0, "2", None, True])
def test_a_number_of_features_that_is_not_whole_is_refused(n_components):
    with pytest.raises(ParameterError, match="n_components must be a whole number"):
        RandomFourierFeatures(Gaussian(1.0), n_components, paired=False)


def test_a_kernel_that_is_not_shift_invariant_is_refused():
    with pytest.raises(ParameterError, match=r"need a shift-invariant kernel, not Linear\(\)"):
        RandomFourierFeatures(Linear(), 8)


def test_an_odd_part_of_pairs_is_refused():
    with pytest.raises(ParameterError, match="must be even"):
        drawn().first(3)


def test_a_map_that_is_not_drawn_is_refused():
    with pytest.raises(ParameterError, match=r"not drawn yet; call fit\(X\) or draw"):
        RandomFourierFeatures(Gaussian(1.0), 8).transform(rows())


@pytest.mark.parametrize("shape", [(4, 2), (4, 4), (3,), (1, 1, 3)])
def test_rows_of_another_width_are_refused(shape):
    with pytest.raises(DataError, match=r"rows must have 3 columns, .* but X has shape"):
        drawn().transform(np.zeros(shape))


def test_a_length_scale_that_is_not_resolved_cannot_be_drawn():
    with pytest.raises(ParameterError, match="'median' must be resolved"):
        drawn(Gaussian("median"))
