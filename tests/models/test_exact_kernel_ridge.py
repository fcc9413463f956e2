"""Exact kernel ridge regression against scikit-learn, refits and the primal."""

import warnings
from functools import partial

import naive
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from tolerances import assert_close

from streamkern import ExactKernelRidge, RandomFeatureRidge
from streamkern.errors import (
    DataError,
    InsufficientMemoryError,
    ParameterError,
    SingularSystemError,
)
from streamkern.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial

# Of rows as they are, like those of scikit-learn.
exact = partial(ExactKernelRidge, standardize=False)
N, P = 40, 3

KERNELS = {
    "gaussian": (Gaussian(1.5), {"kernel": "rbf", "gamma": 1 / (2 * 1.5**2)}),
    "laplacian": (Laplacian(2.0), {"kernel": "laplacian", "gamma": 1 / 2.0}),
    "matern": (Matern(1.5, nu=2.0), {"kernel": SklearnMatern(1.5, nu=2.0)}),
    "polynomial": (Polynomial(3, 0.5), {"kernel": "poly", "degree": 3, "gamma": 1, "coef0": 0.5}),
    "linear": (Linear(), {"kernel": "linear"}),
}
every_kernel = pytest.mark.parametrize(
    ("kernel", "theirs"), list(KERNELS.values()), ids=list(KERNELS)
)
with_and_without = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])


def rows(q: int | None = None, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, P))
    y = np.sin(X.sum(axis=1, keepdims=True) * [1.0, 2.0, 3.0])
    y += np.array([2.0, -5.0, 9.0]) + 0.1 * rng.standard_normal((n, 3))
    return X, y[:, 0] if q is None else y[:, :q]


X, Y = rows()


def new_rows(n: int = 11) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, P))


@every_kernel
@pytest.mark.parametrize(("q", "intercept"), [(None, True), (1, False), (3, True)])
def test_the_solution_is_that_of_the_bordered_system_and_residuals_of_n_refits(
    kernel, theirs, intercept, q
):
    X, y = rows(q)
    before = X.copy(), y.copy()
    model = exact(kernel, alpha=0.3, fit_intercept=intercept, leave_one_out=True).fit(X, y)
    residuals = left_out(kernel, X, y, 0.3, intercept=intercept)
    np.testing.assert_allclose(model.loo_residuals_.reshape(N, -1), residuals, rtol=0, atol=1e-8)
    dual, mu = naive.kernel_ridge(kernel(X, X), y.reshape(N, -1), 0.3, intercept=intercept)
    expected = (kernel(new_rows(), X) @ dual + mu).reshape(model.predict(new_rows()).shape)
    assert_close(model.dual_coef_.reshape(N, -1), dual, steps=1e4)
    assert_close(np.reshape(model.intercept_, -1), mu, steps=1e4, size=10.0)
    assert_close(model.predict(new_rows()), expected, steps=1e4)
    assert np.shape(model.intercept_) == (() if q is None else (q,))
    assert model.dual_coef_.shape == model.loo_residuals_.shape == y.shape
    assert np.array_equal(X, before[0])
    assert np.array_equal(y, before[1])
    plain = exact(kernel, alpha=0.3, fit_intercept=intercept).fit(X, y)
    assert np.array_equal(plain.dual_coef_, model.dual_coef_)
    assert not hasattr(plain, "loo_residuals_")


def test_more_rows_than_are_predicted_at_once_have_the_same_predictions():
    model = exact().fit(X, Y)
    many = new_rows(2100)
    pieces = [model.predict(many[start : start + 50]) for start in range(0, 2100, 50)]
    assert_close(model.predict(many), np.concatenate(pieces))


@pytest.mark.parametrize(("alpha", "n_matrices"), [(1.0, 1), ("loo", 5)])
def test_memory_is_enough_or_refused_with_both_numbers(alpha, n_matrices, monkeypatch):
    X, y = rows(n=100)
    # 8 n^2 for each matrix, and four panels of 1,024 rows of it.
    needed = n_matrices * 8 * 100**2 + 4 * 8 * 1024 * 100
    assert exact(alpha=alpha, max_bytes=needed).fit(X, y).dual_coef_.shape == (100,)
    with pytest.raises(InsufficientMemoryError, match="take fewer rows, or random features"):
        exact(alpha=alpha, max_bytes=needed - 1).fit(X, y)
    module = "streamkern.estimators.exact_kernel_ridge"
    monkeypatch.setattr(f"{module}.available_bytes", lambda: 2_000_000)
    words = rf"on 100 rows needs {needed / 1e6:.2f} MB, but 2 MB may be used"
    with pytest.raises(InsufficientMemoryError, match=words):
        exact(alpha=alpha).fit(X, y)


@with_and_without
def test_a_singular_kernel_matrix_is_refused_without_a_penalty(intercept):
    twice = np.concatenate([X[:-10], X[:10]])
    cases = [(kernel, twice) for name, (kernel, _) in KERNELS.items() if name != "linear"]
    for kernel, inputs in (*cases, (Linear(), X)):
        with pytest.raises(SingularSystemError, match="singular at alpha 0; give a larger alpha"):
            exact(kernel, alpha=0.0, fit_intercept=intercept).fit(inputs, Y)


def left_out(kernel, X, y, alpha, *, intercept=True):
    """The error of every row by a fit to the others, by n refits."""
    Y = y.reshape(len(y), -1)
    return naive.kernel_left_out_errors(kernel(X, X), Y, alpha, intercept=intercept)


@pytest.mark.parametrize(
    ("kernel", "q", "intercept"),
    [(Gaussian(1.5), 3, True), (Matern(1.5, nu=0.5), None, False), (Linear(), None, True)],
)
def test_the_penalty_is_the_one_of_least_average_relative_error_over_n_refits(kernel, q, intercept):
    X, y = rows(q)
    y = y * [1.0, 100.0, 0.01] if q else y
    grid = [1e-3, 0.03, 1.0, 30.0]
    model = exact(kernel, alpha=grid[::-1], fit_intercept=intercept).fit(X, y)
    errors = [left_out(kernel, X, y, alpha, intercept=intercept) for alpha in grid]
    rmse = np.array([np.sqrt((each**2).mean(axis=0)) for each in errors])
    best = int(np.argmin((rmse**2 / y.var(axis=0)).mean(axis=1)))
    assert model.alpha_ == grid[best]
    assert (model.alpha_curve_["criterion"], model.alpha_curve_["alphas"]) == ("loo", grid)
    values = np.reshape(model.alpha_curve_["values"], rmse.shape)
    np.testing.assert_allclose(values, rmse, rtol=1e-8)
    np.testing.assert_allclose(model.loo_residuals_, errors[best].reshape(y.shape), atol=1e-8)


REFUSED = {
    "give one of these: the exact model chooses by leave-one-out": ["cv", "gcv", "much"],
    "grid": [[], [0.0, 1.0], [1.0, 1.0]],
    "alpha must be a finite number of at least 0, not": [-1.0, float("nan"), float("inf"), None],
}


def test_a_penalty_that_cannot_be_is_refused():
    for words, alphas in REFUSED.items():
        for alpha in alphas:
            with pytest.raises(ParameterError, match=words):
                exact(alpha=alpha).fit(*rows())
    with pytest.raises(DataError, match="leave-one-out needs 2 rows, but there is 1"):
        exact(alpha="loo").fit([[1.0]], [2.0])


@pytest.mark.parametrize(("kernel", "standardize"), [(Laplacian(), True), ("periodic", True)])
def test_units_and_length_scale_are_those_of_random_features(kernel, standardize):
    X, y = rows(n=1500)  # the median is of 1,024 of them
    X = np.insert(X * [1.0, 10.0, 0.1] + [0.0, 5.0, -1.0], 3, 7.0, axis=1)
    weights = np.random.default_rng(2).integers(0, 3, len(X))
    for given in (None, weights):
        found = ExactKernelRidge(kernel, standardize=standardize).fit(X, y, given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a constant column is left out
            ridge = RandomFeatureRidge(kernel, n_components=8, alpha=1.0, standardize=standardize)
            expected = ridge.fit(X, y, given).kernel_
        np.testing.assert_allclose(found.kernel_.length_scale, expected.length_scale, rtol=1e-9)
    assert found.get_params()["kernel"] is kernel


def test_a_constant_input_is_left_out_and_constant_inputs_alone_are_refused():
    padded = np.insert(X, 1, 7.0, axis=1)
    model, plain = (ExactKernelRidge(alpha=0.1).fit(each, Y) for each in (padded, X))
    padded[:, 1] = 1e6
    assert_close(model.predict(padded), plain.predict(X))
    with pytest.raises(DataError, match="all columns of X are constant, of 40 samples and 2 inp"):
        ExactKernelRidge().fit(np.full((N, 2), 0.1), Y)


def test_columns_of_a_frame_are_targets_and_weights_by_name():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(40, 4)), columns=["a", "b", "price", "w"])
    model = ExactKernelRidge().fit(frame, "price", sample_weight="w")
    values = ExactKernelRidge().fit(frame[["a", "b"]], frame["price"], frame["w"])
    np.testing.assert_array_equal(model.dual_coef_, values.dual_coef_)
