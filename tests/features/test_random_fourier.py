"""Random Fourier features: what is drawn, what is evaluated, what is refused."""

from functools import partial

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.features import RandomFourierFeatures, StructuredFourierFeatures
from streamkern.features.random_fourier import independent_rows, orthogonal_rows
from streamkern.kernels import Gaussian, Laplacian, Linear, Matern


def rows(n: int = 9, p: int = 3) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, p))


def drawn(kernel=Gaussian(1.5), n_components=22, p=3, **options):  # noqa: B008  immutable
    return RandomFourierFeatures(kernel, n_components, **options).draw(p)


def test_fitting_draws_for_the_columns_whatever_their_values():
    fitted = RandomFourierFeatures(Gaussian(1.5), 22).fit(np.full((2, 3), 9.0))
    assert np.array_equal(fitted.transform(rows()), drawn().transform(rows()))


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


@pytest.mark.parametrize("draw", [orthogonal_rows, independent_rows], ids=["orthogonal", "iid"])
@naive.quick
@given(fewer=st.integers(1, 30), p=st.integers(1, 7))
def test_fewer_rows_are_the_first_of_more(draw, fewer, p):
    # Where a block is cut, some BLAS round the factor otherwise.
    np.testing.assert_allclose(draw(fewer, p, 3), draw(30, p, 3)[:fewer], rtol=1e-12, atol=1e-13)


def test_phases_are_uniform_on_the_circle():
    phi = drawn(n_components=5000, paired=False)
    assert stats.kstest(phi.phases, stats.uniform(0, 2 * np.pi).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("make", "p"), [(RandomFourierFeatures, 2), (StructuredFourierFeatures, 5)]
)
def test_draws_that_mix_over_scales_do_so_independently_of_lengths_and_phases(make, p):
    kernels = Gaussian(1.0), Matern(1.0, nu=2.5)
    plain, mixed = (make(kernel, 2000, paired=False).draw(p) for kernel in kernels)
    stretch = np.linalg.norm(mixed.frequencies, axis=1) / np.linalg.norm(plain.frequencies, axis=1)
    scaled = stats.kstest(5 / stretch**2, stats.chi2(5).cdf)
    assert scaled.pvalue > 1e-3
    for other in (np.linalg.norm(plain.frequencies, axis=1), mixed.phases):
        assert abs(stats.spearmanr(stretch, other).statistic) < 4 / np.sqrt(2000)


# What is refused.


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: drawn(n_components=0), "must be at least 1, not 0"),
        (lambda: drawn(n_components=-2, paired=False), "must be at least 1, not -2"),
        (lambda: drawn(n_components=2.0), "n_components must be a whole number"),
        (lambda: drawn(n_components=None), "n_components must be a whole number"),
        (lambda: drawn(n_components=True, paired=False), "n_components must be a whole number"),
        (lambda: drawn(Linear()), r"need a shift-invariant kernel, not Linear\(\)"),
        (lambda: drawn().first(3), "must be even"),
        (lambda: drawn(Gaussian("median")), "'median' must be resolved"),
        (lambda: drawn(random_state=-1), "random_state must be a whole number of at least 0"),
        (lambda: StructuredFourierFeatures(Laplacian(1.0), 8), "Euclidean distance, not 'lapl"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


# Directions by signs and fast transforms.


def test_lengths_are_those_of_normal_rows():
    phi = StructuredFourierFeatures(Gaussian(2.0), 4000).draw(64)
    lengths = np.linalg.norm(2.0 * phi.frequencies, axis=1)
    assert stats.kstest(lengths, stats.chi(64).cdf).pvalue > 1e-3


def test_memory_is_that_of_signs_and_lengths():
    phi = StructuredFourierFeatures(Gaussian(1.0), 4096).draw(3000)
    assert sum(array.nbytes for array in phi.arrays().values()) < 1e-2 * 2048 * 3000 * 8


# How far features are from their kernel: the rates and variances of independent and other draws.

P = 8
ONES = (1.0,) * P
LAGS = np.array([0.2, 0.5, 1.0, 1.5, 2.0, 3.0])


FORMULAS = {
    "gaussian": (Gaussian(1.0), naive.gaussian),
    "laplacian": (Laplacian(1.0), naive.laplacian),
    "matern12": (Matern(1.0, nu=0.5), partial(naive.matern, nu=0.5)),
    "matern52": (Matern(1.0, nu=2.5), partial(naive.matern, nu=2.5)),
}
some_kernels = pytest.mark.parametrize(
    ("kernel", "formula"), list(FORMULAS.values()), ids=list(FORMULAS)
)


def pairs(n: int, length: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Rows X and Z apart by the given distance, or by lags from short to long."""
    rng = np.random.default_rng(0)
    X, T = rng.standard_normal((2, n, P))
    lags = np.resize(LAGS, n) if length is None else np.full(n, length)
    return X, X + T / np.linalg.norm(T, axis=1, keepdims=True) * lags[:, None]


def errors(kernel, formula, D, seeds, rows, **options) -> np.ndarray:
    """phi(x)^T phi(z) - k(x, z), for every seed and pair of rows."""
    X, Z = rows
    exact = [formula(x, z, ONES) for x, z in zip(X, Z, strict=True)]
    approximate = []
    for seed in seeds:
        phi = RandomFourierFeatures(kernel, D, random_state=seed, **options).draw(P)
        approximate.append((phi.transform(X) * phi.transform(Z)).sum(axis=1))
    return np.array(approximate) - exact


@some_kernels
@pytest.mark.parametrize(("length", "paired"), [(0.4, True), (1.0, False), (2.5, True)])
def test_the_variance_of_independent_draws_is_that_of_the_formula(kernel, formula, length, paired):
    D = 32
    X, Z = pairs(100, length)
    apart = errors(kernel, formula, D, range(300), (X, Z), orthogonal=False, paired=paired)
    expected = []
    for x, z in zip(X, Z, strict=True):
        k, k2 = formula(x, z, ONES), formula(x, 2 * z - x, ONES)
        expected.append((1 + k2 - 2 * k**2) / D if paired else (1 + k2 / 2 - k**2) / D)
    # Directions of t differ, and a Laplacian kernel with them: compare the means over pairs.
    assert (apart**2).mean() == pytest.approx(np.mean(expected), rel=0.1)
