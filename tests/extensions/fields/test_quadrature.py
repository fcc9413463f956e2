"""Quadrature: points that fill the cube evenly, and grids of frequencies of two equal errors."""

import numpy as np
import pytest
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.extensions.fields.frequency_grid import GridFourierFeatures
from streamkern.features import QuasiRandomFourierFeatures
from streamkern.features.families import FAMILIES
from streamkern.features.random_fourier import quasi_random_points
from streamkern.kernels import Gaussian, Laplacian, Matern


def test_every_aligned_interval_has_one_sobol_point():
    points = quasi_random_points(64, 4, 3)
    assert 0 < points.min() <= points.max() < 1
    for column in points.T:
        assert sorted((column * 64).astype(int)) == list(range(64))


# Grids.

KERNELS = [Gaussian(0.4), Matern(0.5, nu=0.5), Matern(0.3), Laplacian(0.5)]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
every_p = pytest.mark.parametrize("p", [1, 2, 3])


def rows(p, n=400):
    return np.random.default_rng(0).uniform(-1, 1, (n, p)) * np.array([1.0, 3.0, 0.5])[:p]


def drawn(kernel, p, D=1024):
    return GridFourierFeatures(kernel, D).draw(p, rows(p))


def cells(phi) -> np.ndarray:
    """The sides of a cell: all frequencies are odd multiples of half of them."""
    return 2 * np.abs(phi.frequencies).min(axis=0)


@every_kernel
@every_p
def test_frequencies_are_half_of_a_grid_without_zero(kernel, p):
    phi = drawn(kernel, p)
    places = phi.frequencies / cells(phi) - 0.5
    whole = np.round(places).astype(int)
    assert_close(places, whole, size=np.abs(places).max())
    # No frequency is there twice, and none with its opposite, which is at -1 - i.
    both = np.concatenate([whole, -1 - whole])
    assert len(np.unique(both, axis=0)) == 1024


@every_kernel
@every_p
def test_no_frequency_outside_has_a_larger_density_than_one_inside(kernel, p):
    phi = drawn(kernel, p)
    places = np.round(phi.frequencies / cells(phi) - 0.5).astype(int)
    held = {tuple(place) for place in places}
    least = kernel.density(phi.frequencies).min()
    beside = {
        (*place[:j], place[j] + 1, *place[j + 1 :]) for place in held for j in range(p)
    } - held
    outside = (np.array(sorted(beside)) + 0.5) * cells(phi)
    assert kernel.density(outside).max() <= least * (1 + 1e-9)


@every_kernel
@every_p
def test_what_comes_back_at_the_ends_is_thirty_times_what_is_missing(kernel, p):
    phi, X = drawn(kernel, p), rows(p)
    missing = 1 - (phi.amplitudes**2).sum()
    at_ends = min(30 * missing, 0.9)
    assert phi.left_out == pytest.approx(missing, abs=1e-15)
    ranges = np.ptp(X, axis=0)
    for j, cell in enumerate(cells(phi)):
        apart = np.zeros((1, p))
        apart[0, j] = 2 * np.pi / cell - ranges[j]
        repeated = kernel(apart, np.zeros((1, p)))[0, 0]
        assert p * repeated < 1.02 * at_ends + 6e-11
        # A row has little more with itself where a range is short.
        apart[0, j] = 2 * np.pi / cell
        with_itself = kernel(apart, np.zeros((1, p)))[0, 0]
        assert p * repeated > 0.98 * at_ends - 6e-11 or 4 * p * with_itself > 0.98 * missing - 6e-11


@every_kernel
@every_p
def test_the_kernel_on_the_box_is_as_exact_as_those_errors(kernel, p):
    phi, X = drawn(kernel, p), rows(p)
    features = phi.transform(X)
    missing = 1 - (phi.amplitudes**2).sum()
    apart = np.abs(features @ features.T - kernel(X, X))
    assert apart.max() < 33 * missing + 1e-9
    random = FAMILIES["orthogonal"].map_of(kernel, 1024).draw(p).transform(X)
    error = np.abs(random @ random.T - kernel(X, X))
    # Of rough kernels in three dimensions much is missing of what a row has with itself.
    assert np.mean(apart**2) < np.mean(error**2) or (missing > 0.03 and p > 1)


def test_an_input_that_does_not_vary_in_the_sample_is_taken():
    X = rows(2)
    X[:, 1] = 3.0
    phi = GridFourierFeatures(Gaussian(1.0), 64).draw(2, X)
    features = phi.transform(X)
    assert np.abs(features @ features.T - Gaussian(1.0)(X, X)).max() < 3e-4


def test_it_depends_on_the_range_of_the_rows_alone():
    X = rows(2)
    corners = np.concatenate([X.min(axis=0)[None], X.max(axis=0)[None], np.zeros((398, 2))])
    one, two = (GridFourierFeatures(Matern(1.0), 64).draw(2, some) for some in (X, 5.0 + corners))
    assert_close(one.frequencies, two.frequencies, steps=1e6)


@pytest.mark.parametrize(
    ("make", "p", "rows", "words"),
    [
        (QuasiRandomFourierFeatures, 21_200, None, "up to 21,201 numbers are known, .* 21,202"),
        (GridFourierFeatures, 4, np.zeros((9, 4)), "for 1 to 3 inputs, not 4, since its points"),
        (GridFourierFeatures, 2, None, "follows from the range of the rows"),
        (GridFourierFeatures, 2, np.empty((0, 2)), "follows from the range of the rows"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, p, rows, words):
    with pytest.raises(ParameterError, match=words):
        make(Gaussian(1.0), 8).draw(p, rows)
