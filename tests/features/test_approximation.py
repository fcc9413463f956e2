"""How far random features are from their kernel: the rates and variances of MATH.md."""

from __future__ import annotations

from functools import partial

import naive
import numpy as np
import pytest

from streamkern.features import RandomFourierFeatures
from streamkern.kernels import Gaussian, Laplacian, Matern

P = 8
ONES = (1.0,) * P
LAGS = np.array([0.2, 0.5, 1.0, 1.5, 2.0, 3.0])


def sum_of_product(x, z, scales) -> float:
    """Two groups of inputs, and all of them."""
    smooth = naive.gaussian(x[:3], z[:3], scales[:3])
    product = smooth * naive.laplacian(x[5:6], z[5:6], scales[:1])
    return (product + 0.5 * naive.matern(x, z, scales, nu=1.5)) / 1.5


FORMULAS = {
    "gaussian": (Gaussian(1.0), naive.gaussian),
    "laplacian": (Laplacian(1.0), naive.laplacian),
    "matern12": (Matern(1.0, nu=0.5), partial(naive.matern, nu=0.5)),
    "matern52": (Matern(1.0, nu=2.5), partial(naive.matern, nu=2.5)),
    "sum": (
        Gaussian(1.0).on([0, 1, 2]) * Laplacian(1.0).on([5]) + 0.5 * Matern(1.0, nu=1.5),
        sum_of_product,
    ),
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


@pytest.mark.parametrize("name", ["gaussian", "sum"])
def test_the_error_falls_as_the_root_of_the_number_of_features(name):
    sizes = [64, 256, 1024]
    means = []
    for i, D in enumerate(sizes):
        seeds = range(1000 * i, 1000 * i + 60)
        means.append(np.abs(errors(*FORMULAS[name], D, seeds, pairs(48))).mean())
    slope = np.polyfit(np.log(sizes), np.log(means), 1)[0]
    assert -0.55 < slope < -0.45


@some_kernels
@pytest.mark.parametrize("length", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("paired", [True, False], ids=["paired", "phase"])
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


# In the phase form most of the error at short distances is that of the phases.
@pytest.mark.parametrize(
    ("paired", "length"), [(True, 0.5), (True, 1.0), (True, 2.0), (False, 1.0), (False, 2.0)]
)
def test_orthogonal_draws_have_a_smaller_error_than_independent_ones(paired, length):
    gaussian, rows, seeds = FORMULAS["gaussian"], pairs(20, length), range(400)
    orthogonal, independent = (
        errors(*gaussian, 4 * P, seeds, rows, orthogonal=way, paired=paired)
        for way in (True, False)
    )
    assert (orthogonal**2).mean() < 0.9 * (independent**2).mean()
