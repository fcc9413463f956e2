"""Random Fourier features: what is drawn, what is evaluated, what is refused."""

from __future__ import annotations

import json

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tolerances import assert_close

from streamkern.errors import DataError, ParameterError
from streamkern.features import RandomFourierFeatures, base
from streamkern.features.random_fourier import independent_rows, orthogonal_rows
from streamkern.kernels import Gaussian, Laplacian, Linear, Matern
from streamkern.runtime.scratch import Scratch

every_kernel = pytest.mark.parametrize(
    "kernel",
    [Gaussian(1.5), Gaussian((0.5, 1.0, 2.0)), Matern(2.0, nu=0.5), Matern(1.0), Laplacian(1.0)],
    ids=["gaussian", "scales", "matern12", "matern32", "laplacian"],
)
every_form = pytest.mark.parametrize(
    ("orthogonal", "paired"),
    [(True, True), (True, False), (False, True), (False, False)],
    ids=["orthogonal-paired", "orthogonal-phase", "iid-paired", "iid-phase"],
)


def rows(n: int = 9, p: int = 3) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, p))


def drawn(kernel=Gaussian(1.5), n_components=22, p=3, **options):  # noqa: B008  immutable
    return RandomFourierFeatures(kernel, n_components, **options).draw(p)


@every_kernel
@every_form
def test_features_are_those_of_the_formula(kernel, orthogonal, paired):
    phi = drawn(kernel, orthogonal=orthogonal, paired=paired, random_state=3)
    phases = None if paired else phi.phases
    expected = [naive.fourier_features(x, phi.frequencies, phases) for x in rows()]
    angles = float(np.abs(rows() @ phi.frequencies.T).max()) + 2 * np.pi
    assert_close(phi.transform(rows()), expected, size=angles)


@every_kernel
@every_form
def test_the_first_draws_of_a_larger_map_are_the_smaller_map(kernel, orthogonal, paired):
    options = {"orthogonal": orthogonal, "paired": paired, "random_state": 7}
    small, large = drawn(kernel, 10, **options), drawn(kernel, 64, **options)
    part = large.first(10)
    L = small.n_draws
    for array in (large.frequencies[:L], part.frequencies):
        assert np.array_equal(array, small.frequencies)
    for array in (large.phases[:L], part.phases):
        assert np.array_equal(array, small.phases)
    assert part.parameters() == small.parameters()
    assert part.n_components == small.n_components == 10
    assert np.array_equal(part.transform(rows()), small.transform(rows()))
    angles = float(np.abs(rows() @ small.frequencies.T).max()) + 2 * np.pi
    leading = large.transform(rows())[:, :10] * np.sqrt(large.n_draws / L)
    assert_close(leading, small.transform(rows()), size=angles)


@every_kernel
@every_form
def test_the_same_seed_draws_the_same_map(kernel, orthogonal, paired):
    one, two, other = (
        drawn(kernel, orthogonal=orthogonal, paired=paired, random_state=seed) for seed in (5, 5, 6)
    )
    for name, array in one.arrays().items():
        assert np.array_equal(array, two.arrays()[name])
        assert not np.isin(array, other.arrays()[name]).any()


def test_drawing_does_not_touch_the_global_random_state():
    before = np.random.get_state()[1].copy()  # noqa: NPY002  it is what must not change
    position = np.random.get_state()[2]  # noqa: NPY002
    drawn()
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert np.random.get_state()[2] == position  # noqa: NPY002


@every_form
def test_fitting_draws_for_the_columns_whatever_their_values(orthogonal, paired):
    options = {"orthogonal": orthogonal, "paired": paired}
    fitted = RandomFourierFeatures(Gaussian(1.5), 22, **options).fit(np.full((2, 3), 9.0))
    assert np.array_equal(fitted.transform(rows()), drawn(**options).transform(rows()))


@every_kernel
@pytest.mark.parametrize("orthogonal", [True, False])
def test_pairs_make_the_kernel_of_a_row_with_itself_one(kernel, orthogonal):
    features = drawn(kernel, orthogonal=orthogonal).transform(10 * rows())
    assert_close((features**2).sum(axis=1), np.ones(9), steps=10)


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
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lent_memory_changes_nothing_and_is_used_again(orthogonal, paired, dtype, monkeypatch):
    monkeypatch.setattr(base, "_CACHED_VALUES", 64)
    phi, scratch = drawn(orthogonal=orthogonal, paired=paired), Scratch()
    alone, lent = np.empty((2, 9, 22), dtype=dtype)
    phi.evaluate(rows(), alone)
    names = ("angles", "frequencies") if paired else ("frequencies",)
    held = {name: scratch.array(name, (9 * 22 * 3,), dtype) for name in names}
    for values in held.values():
        values[:] = np.nan
    for _ in range(2):
        done = [part.stop for part in phi.evaluated(rows(), lent, 0.0, scratch)]
    assert done[-1] == 9
    assert np.array_equal(alone, lent)
    for values in held.values():
        assert np.isfinite(values[:3]).all()


@every_form
@pytest.mark.parametrize("q", [1, 2])
def test_the_short_form_is_the_same_function(orthogonal, paired, q):
    phi = drawn(orthogonal=orthogonal, paired=paired)
    coef = np.random.default_rng(q).standard_normal((22, q))
    short, weights = phi.condensed(coef)
    features, fewer = np.empty((9, 22)), np.empty((9, short.n_components))
    phi.evaluate(rows(), features)
    short.evaluate(rows(), fewer)
    assert_close(fewer @ weights, features @ coef, steps=1000)
    assert short.n_components == (11 if paired and q == 1 else 22)


@every_kernel
@every_form
def test_single_precision_is_close_to_double(kernel, orthogonal, paired):
    phi = drawn(kernel, orthogonal=orthogonal, paired=paired)
    angles = float((np.abs(rows()) @ np.abs(phi.frequencies.T)).max()) + 2 * np.pi
    single, double = phi.transform(rows(), np.float32), phi.transform(rows())
    assert_close(single, double, dtype=np.float32, steps=4, size=angles * phi.scale)
    assert not np.array_equal(single, double)


@every_form
@naive.quick
@given(cuts=naive.cuts(50))
def test_features_of_pieces_are_pieces_of_the_features(orthogonal, paired, cuts):
    phi = drawn(orthogonal=orthogonal, paired=paired)
    X = rows(50)
    pieces = [phi.transform(block.X) for block in naive.blocks(X, X[:, :1], cuts)]
    assert_close(np.concatenate(pieces), phi.transform(X))


@every_form
def test_more_rows_than_fit_in_cache_have_the_same_features(orthogonal, paired):
    phi = drawn(n_components=2048, orthogonal=orthogonal, paired=paired)
    X = rows(300)
    assert_close(phi.transform(X)[-7:], phi.transform(X[-7:]), size=10.0)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float32, np.bool_])
def test_inputs_of_any_real_type_are_taken_as_their_values(dtype):
    X = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    assert np.array_equal(drawn().transform(X), drawn().transform(X.astype(float)))


@every_kernel
@every_form
def test_a_restored_map_is_the_map_bit_for_bit(kernel, orthogonal, paired):
    phi = drawn(kernel, orthogonal=orthogonal, paired=paired, random_state=11)
    parameters = json.loads(json.dumps(phi.parameters(), allow_nan=False))
    back = RandomFourierFeatures.restore(parameters, phi.arrays())
    assert back.parameters() == phi.parameters()
    for dtype in (np.float32, np.float64):
        assert np.array_equal(back.transform(rows(), dtype), phi.transform(rows(), dtype))


def test_a_restored_map_holds_what_was_drawn_not_a_new_draw():
    phi = drawn()
    arrays = {name: array + 1 for name, array in phi.arrays().items()}
    back = RandomFourierFeatures.restore(phi.parameters(), arrays)
    assert np.array_equal(back.frequencies, phi.frequencies + 1)


@pytest.mark.parametrize("name", ["frequencies", "phases"])
def test_a_damaged_file_is_refused(name):
    phi = drawn()
    arrays = {**phi.arrays(), name: phi.arrays()[name][:-1]}
    with pytest.raises(ParameterError, match="expected 11 frequencies and phases, found shapes"):
        RandomFourierFeatures.restore(phi.parameters(), arrays)


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


def test_an_odd_number_of_features_has_one_frequency_without_a_pair():
    assert RandomFourierFeatures(Gaussian(1.0), 7).n_draws == 4
    assert RandomFourierFeatures(Gaussian(1.0), 7, paired=False).n_draws == 7


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


@pytest.mark.parametrize("n_components", [0, -2, 24])
def test_a_part_larger_than_the_whole_or_empty_is_refused(n_components):
    with pytest.raises(ParameterError, match=f"between 1 and 22 features, not {n_components}"):
        drawn().first(n_components)


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


@pytest.mark.parametrize("orthogonal", [True, False])
def test_a_map_of_no_inputs_is_refused(orthogonal):
    with pytest.raises(ParameterError, match="at least 1"):
        drawn(p=0, orthogonal=orthogonal)
