"""Points that fill the cube evenly, and the kernels that they make."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from streamkern.errors import ParameterError
from streamkern.features import QuasiRandomFourierFeatures
from streamkern.features.families import FAMILIES
from streamkern.features.quasi_monte_carlo import quasi_random_points
from streamkern.kernels import Gaussian

every_sequence = pytest.mark.parametrize("sequence", ["sobol", "halton"])


@every_sequence
def test_fewer_points_are_the_first_of_more(sequence):
    many = quasi_random_points(sequence, 100, 5, 7)
    for fewer in (1, 2, 33):
        assert np.array_equal(quasi_random_points(sequence, fewer, 5, 7), many[:fewer])


@every_sequence
def test_points_are_inside_the_cube_and_every_coordinate_is_uniform(sequence):
    points = quasi_random_points(sequence, 512, 6, 1)
    assert 0 < points.min() <= points.max() < 1
    for column in points.T:
        # Far closer to the diagonal than 512 random numbers, whose distance is about 0.04.
        assert stats.kstest(column, stats.uniform.cdf).statistic < 0.01


def test_every_aligned_interval_has_one_sobol_point():
    points = quasi_random_points("sobol", 64, 4, 3)
    for column in points.T:
        assert sorted((column * 64).astype(int)) == list(range(64))


@every_sequence
@pytest.mark.parametrize("paired", [True, False])
def test_the_error_is_below_that_of_random_draws(sequence, paired):
    X = np.random.default_rng(0).standard_normal((30, 2))
    kernel = Gaussian(1.5)
    exact = kernel(X, X)

    def error(make):
        squares = []
        for seed in range(10):
            features = make(seed).draw(2).transform(X)
            squares.append(np.mean((features @ features.T - exact) ** 2))
        return np.mean(squares)

    quasi = error(
        lambda seed: QuasiRandomFourierFeatures(
            kernel, 512, sequence=sequence, paired=paired, random_state=seed
        )
    )
    random = error(
        lambda seed: FAMILIES["orthogonal"].map_of(kernel, 512, paired=paired, random_state=seed)
    )
    assert quasi < random / 4


def test_more_inputs_than_there_are_direction_numbers_for_are_refused():
    with pytest.raises(ParameterError, match=r"up to 21,201 numbers are known, .* takes 21,202"):
        QuasiRandomFourierFeatures(Gaussian(1.0), 8).draw(21_202 - 1 - Gaussian(1.0).n_uniforms)


def test_another_sequence_is_refused():
    with pytest.raises(ParameterError, match="must be one of sobol, halton, not 'faure'"):
        QuasiRandomFourierFeatures(Gaussian(1.0), 8, sequence="faure")
