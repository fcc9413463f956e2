"""Samples of the posterior have its covariance, and tell the degrees of freedom."""

import numpy as np
import pytest

from streamkern.features.base import stream
from streamkern.solve import posterior_samples
from streamkern.solve.posterior_samples import PosteriorSamples, n_samples, sample_posterior
from streamkern.solve.preconditioner import BlockPreconditioner
from streamkern.statistics import Triangle

D, LEADING, ALPHA = 60, 20, 0.3


@pytest.fixture(scope="module")
def gram():
    """A matrix with eigenvalues from 1,000 to a thousandth."""
    turns, _ = np.linalg.qr(stream(0).standard_normal((D, D)))
    # Mostly on the axes, so that the block tells much of it.
    turns = np.linalg.qr(np.eye(D) + 0.03 * turns)[0]
    return (turns * np.geomspace(1e3, 1e-3, D)) @ turns.T


def preconditioner(gram):
    return BlockPreconditioner(Triangle.of(gram[:LEADING, :LEADING]), np.diagonal(gram).copy())


def test_samples_are_the_inverse_root_times_normal_vectors(gram, monkeypatch):
    monkeypatch.setattr(posterior_samples, "_OFF", 1e-6)
    n = n_samples(D)
    found, dof, off = sample_posterior(lambda v: gram @ v, preconditioner(gram), ALPHA, n)
    assert off < 1e-6
    assert found.shape == (D, n)
    # S S^T is what the preconditioner solves, and S^-1 (G + alpha I) S^-T has a root.
    known = preconditioner(gram)
    whiten = known.whitened(np.eye(D), ALPHA)
    middle = whiten @ (gram + ALPHA * np.eye(D)) @ whiten.T
    values, vectors = np.linalg.eigh(middle)
    root = (vectors / np.sqrt(values)) @ vectors.T
    width = posterior_samples._width(D)
    z = [stream(k, 6).standard_normal((D, min(width, n - k))) for k in range(0, n, width)]
    expected = whiten.T @ root @ np.column_stack(z)
    assert np.linalg.norm(found - expected) < 1e-4 * np.linalg.norm(expected)
    inverse = np.linalg.inv(gram + ALPHA * np.eye(D))
    exact = D - ALPHA * np.trace(inverse)
    assert dof == pytest.approx(exact, abs=5 * np.sqrt(2 * exact / n))
    rows = stream(1).standard_normal((500, D))
    ratio = np.mean((rows @ found) ** 2, axis=1) / np.einsum("nd,de,ne->n", rows, inverse, rows)
    assert ratio.mean() == pytest.approx(1.0, abs=0.1)
    assert ratio.std() < 2 * np.sqrt(2 / n)


def test_few_steps_are_enough_and_a_block_of_all_takes_one_look(gram):
    taken = []

    def times(vectors):
        taken.append(vectors.shape[1])
        return gram @ vectors

    rough, _, off = sample_posterior(times, preconditioner(gram), ALPHA, n_samples(D))
    assert 0.0 < off < 0.1
    assert len(taken) <= 4 * 15
    inverse = np.linalg.inv(gram + ALPHA * np.eye(D))
    assert np.trace(rough @ rough.T) / n_samples(D) == pytest.approx(np.trace(inverse), rel=0.1)
    taken.clear()
    whole = BlockPreconditioner(Triangle.of(gram), np.diagonal(gram).copy())
    alpha = 4.0**-2  # of which the factor is that of the matrix
    found, dof, _ = sample_posterior(times, whole, alpha, n_samples(D))
    assert len(taken) <= 4 * 2
    exact = D - alpha * np.trace(np.linalg.inv(gram + alpha * np.eye(D)))
    assert dof == pytest.approx(exact, abs=5 * np.sqrt(2 * exact / n_samples(D)))
    assert np.isfinite(found).all()


def test_samples_are_those_of_the_nearest_penalty_and_fewer_of_many_features():
    vectors = np.zeros((3, 4))
    samples = PosteriorSamples(np.array([0.1, 10.0]), vectors, np.zeros(4), np.array([7.0, 2.0]))
    samples.check(3)
    weights = samples.weights(np.array([9.0, 0.05, 0.2]))
    assert np.array_equal(weights, np.array([[0, 1, 1], [0, 1, 1], [1, 0, 0], [1, 0, 0]]) / 2)
    assert np.array_equal(samples.dof_at(np.array([9.0, 0.05])), [2.0, 7.0])
    assert samples.dof_at(100.0) == 2.0
    assert (n_samples(100), n_samples(400_000), n_samples(10**7)) == (128, 83, 64)
    assert (n_samples(100, 2), n_samples(100, 20)) == (64, 16)
    for change in ({"means": np.zeros(3)}, {"alphas": np.zeros(2)}, {"vectors": vectors[:2]}):
        with pytest.raises(ValueError, match="of 3 features"):
            samples._replace(**change).check(3)


def test_steps_that_are_not_enough_are_told(gram, monkeypatch):
    monkeypatch.setattr(posterior_samples, "_STEPS", 5)
    nothing = BlockPreconditioner(Triangle.of(gram[:1, :1]), np.zeros(D))
    _, _, off = sample_posterior(lambda vectors: gram @ vectors, nothing, 1e-3, 16)
    assert off > 0.3
