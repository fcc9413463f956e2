"""Frequencies by signs and transforms: orthogonal, of the right lengths, for radial kernels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.features import StructuredFourierFeatures
from streamkern.kernels import Gaussian, Laplacian, Matern


def test_rows_are_orthogonal_within_blocks_when_nothing_is_filled_up():
    phi = StructuredFourierFeatures(Gaussian(1.0), 400).draw(80)
    W = phi.frequencies
    for start in range(0, 200, 80):
        block = W[start : start + 80]
        gram = block @ block.T
        assert_close(gram, np.diag(np.diagonal(gram)), size=80.0)


def test_lengths_are_those_of_normal_rows():
    phi = StructuredFourierFeatures(Gaussian(2.0), 4000).draw(64)
    lengths = np.linalg.norm(2.0 * phi.frequencies, axis=1)
    assert stats.kstest(lengths, stats.chi(64).cdf).pvalue > 1e-3


def test_directions_are_nearly_normal():
    phi = StructuredFourierFeatures(Gaussian((1.0,) * 99 + (3.0,)), 4000).draw(100)
    for column in (phi.frequencies[:, 0], 3.0 * phi.frequencies[:, 99]):
        assert stats.kstest(column, stats.norm.cdf).pvalue > 1e-3


def test_stretches_are_those_of_the_kernel_and_independent_of_lengths():
    plain = StructuredFourierFeatures(Gaussian(1.0), 2000).draw(5)
    mixed = StructuredFourierFeatures(Matern(1.0, nu=2.5), 2000).draw(5)
    stretch = np.linalg.norm(mixed.frequencies, axis=1) / np.linalg.norm(plain.frequencies, axis=1)
    assert stats.kstest(5 / stretch**2, stats.chi2(5).cdf).pvalue > 1e-3
    lengths = np.linalg.norm(plain.frequencies, axis=1)
    assert abs(stats.spearmanr(stretch, lengths).statistic) < 4 / np.sqrt(1000)


def test_memory_is_that_of_signs_and_lengths():
    phi = StructuredFourierFeatures(Gaussian(1.0), 4096).draw(3000)
    assert sum(array.nbytes for array in phi.arrays().values()) < 1e-2 * 2048 * 3000 * 8


def test_a_kernel_of_other_distances_is_refused():
    with pytest.raises(ParameterError, match="for kernels of the Euclidean distance, not 'lapl"):
        StructuredFourierFeatures(Laplacian(1.0), 8)
