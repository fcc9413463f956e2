"""The evidence of windows is that of Gaussian processes, and tells kernel, lengths and noise."""

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.stats import multivariate_normal

from streamkern import Gaussian, Matern
from streamkern.extensions.fields import field_kernel
from streamkern.extensions.fields.field_kernel import Window, by_evidence
from streamkern.features.base import stream

LENGTHS, NOISE = np.array([0.3, 0.9]), 0.04


def window(kernel, n, side, seed):
    """Rows of a process with that kernel, with noise of variance 1 / weight of NOISE."""
    rng = stream(seed)
    places, weights = side * rng.random((n, 2)), rng.random(n) + 0.5
    gram = kernel.with_length_scale(tuple(LENGTHS))(places, places)
    factor = np.linalg.cholesky(gram + np.diag(NOISE / weights))
    return Window(places, 3.0 + 2.0 * factor @ rng.standard_normal((n, 2)), weights)


@pytest.mark.parametrize("kernel", [Matern(nu=0.5), Matern(nu=1.5), Gaussian()])
@pytest.mark.parametrize("k", [0, 2])
def test_evidence_is_the_density_of_targets_at_the_best_means_slopes_and_variances(kernel, k):
    windows = [window(kernel, 30, 1.0, 0), window(kernel, 40, 3.0, 1)]
    lines = stream(2).standard_normal((2, k, 40))
    windows = [
        each._replace(trend=tuple(line[:, : len(each.places)]))
        for each, line in zip(windows, lines, strict=True)
    ]
    found = field_kernel._log_evidence(kernel, LENGTHS, NOISE, windows)
    scaled = kernel.with_length_scale(tuple(LENGTHS))
    gram = block_diag(*(scaled(a.places, a.places) + np.diag(NOISE / a.weights) for a in windows))
    terms = block_diag(*(np.ones((len(each.places), 1)) for each in windows))
    terms = np.hstack([terms, *([np.hstack([w.trend for w in windows]).T] if k else [])])
    targets, inverse = np.concatenate([each.targets for each in windows]), np.linalg.inv(gram)
    rest = targets - terms @ np.linalg.solve(terms.T @ inverse @ terms, terms.T @ inverse @ targets)
    n, (_, q) = len(rest), targets.shape
    variances = np.einsum("nq,nm,mq->q", rest, inverse, rest) / n
    density = sum(multivariate_normal(cov=gram * variances[j]).logpdf(rest[:, j]) for j in range(q))
    # The mean over targets, without what is the same for all kernels.
    assert found == pytest.approx(density / q + 0.5 * n * (1.0 + np.log(2.0 * np.pi)))


@pytest.mark.parametrize("kernel", [Matern(nu=0.5), Matern(nu=1.5), Gaussian()])
def test_kernel_lengths_and_noise_are_found(kernel):
    windows = [window(kernel, 150, side, seed) for seed, side in enumerate([0.5, 0.5, 2, 2, 6, 6])]
    found = by_evidence(windows, np.array([6.0, 6.0]))
    assert [each.kernel.name for each in found] == ["matern12", "matern32", "matern52", "gaussian"]
    best = max(found, key=lambda each: each.per_row)
    assert best.kernel.name == kernel.name
    assert np.allclose(best.length_scales, LENGTHS, rtol=0.35)
    assert best.noise == pytest.approx(NOISE, rel=0.5)


def test_directions_are_length_scales_where_nothing_turns_and_are_found():
    ranges, lengths = np.array([6.0, 5.0]), np.array([0.3, 0.9])
    plain = np.append(np.log(lengths), 0.0)
    np.testing.assert_allclose(field_kernel._linear(plain, ranges), np.diag(1.0 / lengths))
    kernel, angle = Matern(nu=1.5), np.radians(30)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    windows = [window(kernel, 150, side, seed) for seed, side in enumerate([0.5, 2, 2, 6])]
    by_map = field_kernel._log_evidence(kernel, np.diag(1.0 / lengths), NOISE, windows)
    by_scales = field_kernel._log_evidence(kernel, lengths, NOISE, windows)
    assert by_map == pytest.approx(by_scales)
    windows = [each._replace(places=each.places @ turn) for each in windows]
    for given in (ranges, ranges[:1]):
        along = by_evidence(windows, given)[1]
        best = field_kernel.turned(along, windows, given)
        shape = (best.linear.T @ best.linear) / float(best.length_scales[0]) ** 2
        values, vectors = np.linalg.eigh(shape)
        np.testing.assert_allclose(np.abs(vectors[:, 1] @ turn[0]), 1.0, atol=0.02)
        np.testing.assert_allclose(1.0 / np.sqrt(values[::-1]), lengths, rtol=0.4)


def test_rows_at_the_same_places_without_noise_have_some():
    places = np.repeat(stream(0).random((20, 1)), 5, axis=0)
    one = Window(places, np.sin(9.0 * places), np.ones(100))
    for found in by_evidence([one], np.ones(1)):
        assert np.isfinite(found.per_row)
        assert found.noise == pytest.approx(1e-6)
