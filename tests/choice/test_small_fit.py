"""A small fit: errors of rows that are left out are those of fits without them."""

import numpy as np
import pytest

from streamkern.choice.held_out_fit import HeldOutFit
from streamkern.choice.left_out_errors import LeftOutErrors
from streamkern.kernels import Laplacian
from streamkern.parameters.parameters import Parameters


def test_rows_left_out_alone_or_together_have_the_errors_of_fits_without_them():
    rng = np.random.default_rng(0)
    X, kernel = rng.standard_normal((60, 2)), Laplacian(1.0)
    y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1]]) + 0.1 * rng.standard_normal((60, 2))
    options = Parameters(kernel=kernel, precision="double").pass_options()
    Phi = options.map_of(kernel, 16).draw(2).transform(X)
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
    found = LeftOutErrors(Phi, y).of_parts(parts)
    assert found[:, 0] == pytest.approx([np.mean(np.array(alone[best])[part]) for part in parts])
    assert found[:, 1] == pytest.approx([error(part, alphas[best]) for part in parts])
    whole = [[error(part, alpha) for part in parts] for alpha in alphas]
    found = LeftOutErrors(Phi, y).of_parts(parts, own_penalty=True)
    assert found[:, 1] == pytest.approx(min(whole, key=np.mean))


@pytest.mark.parametrize("D", [16, 128])  # fewer features than rows, and more
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_held_out_have_the_errors_of_ridge_on_the_others(D, intercept):
    rng = np.random.default_rng(0)
    X, weights, kernel = rng.standard_normal((80, 2)), rng.uniform(0.1, 2.0, 80), Laplacian(1.0)
    y = np.sin(2.0 * X[:, :1]) + 3.0 + 0.1 * rng.standard_normal((80, 1))
    given = Parameters(kernel=kernel, precision="double", fit_intercept=intercept)
    fit = HeldOutFit(given.pass_options(), D, 80)
    found = fit.held_out(kernel, X, y, weights)
    Phi, s = fit.options.map_of(kernel, D).draw(2).transform(X), weights[:60, None]
    mean, level = (intercept * np.average(each[:60], 0, weights[:60]) for each in (Phi, y))
    Z = (Phi[:60] - mean) * np.sqrt(s)
    system = Z.T @ Z + found.alpha * np.eye(D)
    coef = np.linalg.solve(system, Z.T @ (np.sqrt(s) * (y[:60] - level)))
    expected = ((Phi[60:] - mean) @ coef + level - y[60:])[:, 0] ** 2
    assert found.coef == pytest.approx(coef, rel=1e-6, abs=1e-9)
    assert found.squares == pytest.approx(expected, rel=1e-6)
    assert found.relative_mse == pytest.approx(np.average(expected, weights=weights[60:]))
