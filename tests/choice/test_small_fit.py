"""A small fit: errors of rows that are left out are those of fits without them."""

import numpy as np
import pytest

from streamkern.choice.small_fit import SmallFit
from streamkern.kernels import Laplacian
from streamkern.parameters.parameters import Parameters


def test_rows_left_out_alone_or_together_have_the_errors_of_fits_without_them():
    rng = np.random.default_rng(0)
    X, kernel = rng.standard_normal((60, 2)), Laplacian(1.0)
    y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1]]) + 0.1 * rng.standard_normal((60, 2))
    fit = SmallFit(Parameters(kernel=kernel, precision="double").pass_options(), 16, 60)
    Phi = fit.options.map_of(kernel, 16).draw(2).transform(X)
    largest = np.linalg.eigvalsh(np.cov(Phi.T, bias=True) * 60)[-1]

    def error(part, alpha):
        rest = np.setdiff1d(np.arange(60), part)
        mean, level = Phi[rest].mean(axis=0), y[rest].mean(axis=0)
        Z = Phi[rest] - mean
        coef = np.linalg.solve(Z.T @ Z + alpha * np.eye(16), Z.T @ (y[rest] - level))
        return np.square((Phi[part] - mean) @ coef + level - y[part]).mean()

    parts = np.array_split(np.arange(60), 5)
    alphas = np.geomspace(1e-7, 1.0, 8) * largest
    alone = [[error([i], alpha) for i in range(60)] for alpha in alphas]
    best = int(np.argmin(np.mean(alone, axis=1)))
    (found,) = fit.left_out(kernel, X, y, [parts])
    assert found[:, 0] == pytest.approx([np.mean(np.array(alone[best])[part]) for part in parts])
    assert found[:, 1] == pytest.approx([error(part, alphas[best]) for part in parts])
