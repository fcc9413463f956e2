"""The normal equations that a model keeps."""

import naive
import numpy as np
import pytest
from tolerances import assert_close

from streamkern.features import RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.solve import Eigenbasis, NormalEquations, solve_ridge
from streamkern.statistics import Moments

N, P, D = 60, 3, 10
DTYPES = {"single": np.float32, "double": np.float64}


def table(q=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = np.stack([np.sin(X[:, 0]), 4 + X[:, 1] ** 2, X[:, 2]], axis=1)[:, :q]
    return X, y + 0.1 * rng.standard_normal(y.shape), rng.random(N) + 0.5


def solved(alpha, *, q=2, intercept=True, precision="double"):
    """The features of the rows, the solution at a penalty, and what is kept of it."""
    X, y, s = table(q)
    feature_map = RandomFourierFeatures(Gaussian(1.3), D).draw(P)
    moments = naive.accumulated(
        Moments(feature_map, q, precision=precision), naive.blocks(X, y, [20], s)
    ).centred(intercept=intercept)
    one = np.ndim(alpha) == 0
    solution = solve_ridge(moments, alpha) if one else Eigenbasis.of(moments).solve(alpha)
    return feature_map.transform(X), solution, NormalEquations.of(moments, solution)


every_intercept = pytest.mark.parametrize("intercept", [True, False])
# One penalty for both targets, or one for each.
every_alpha = pytest.mark.parametrize("alpha", [0.3, np.array([0.3, 5.0])], ids=["one", "each"])


@every_intercept
@every_alpha
@pytest.mark.parametrize("precision", list(DTYPES))
def test_they_are_those_of_the_explicit_features_which_the_coefficients_solve(
    alpha, intercept, precision
):
    Phi, solution, equations = solved(alpha, intercept=intercept, precision=precision)
    _, y, s = table()
    expected, dtype = naive.moments(Phi, y, s, intercept=intercept), DTYPES[precision]
    assert {panel.dtype for panel in equations.gram.panels} == {np.dtype(dtype)}
    assert_close(equations.gram.dense(), expected["gram"], dtype=dtype, size=N)
    assert_close(equations.feature_mean, expected["feature_mean"], dtype=dtype, size=1.0)
    assert equations.weight == pytest.approx(s.sum(), rel=1e-14)
    assert equations.intercept is intercept
    for name in ("effective_dof", "train_rss"):
        assert np.array_equal(getattr(equations, name), np.broadcast_to(getattr(solution, name), 2))
    assert np.array_equal(equations.alphas, np.broadcast_to(alpha, 2))
    # With the coefficients they say what was solved.
    again = equations.moments(solution.coef, solution.intercept)
    for name, values in expected.items():
        size = 20.0 * N if name in ("cross", "target") else float(N)
        assert_close(naive.array_of(again, name), values, dtype=dtype, size=size)
    assert again.weight == equations.weight
    assert (again.precision, again.intercept) == (precision, intercept)


def test_the_noise_is_unbounded_where_no_degree_of_freedom_is_left():
    _, _, equations = solved(0.3)
    spent = np.array([0.0, 1.0]) + equations.weight / equations.row_weight
    kept = NormalEquations(**{**vars(equations), "effective_dof": spent})
    assert np.array_equal(kept.noise_variance, [np.inf, np.inf])
