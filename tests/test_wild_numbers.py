"""Values of wild sizes: what they do to a fit is right, or is said."""

import warnings
from functools import partial

import dask
import numpy as np
import pytest

from streamkern import RandomFeatureRidge
from streamkern.errors import DataError, OverflowedError, ParameterError, StreamkernWarning
from streamkern.features import Nystroem, RandomFourierFeatures
from streamkern.kernels import Cauchy, Gaussian, Laplacian, Matern, Periodic, RationalQuadratic

N = 4000
pytestmark = pytest.mark.usefixtures("in_this_thread")


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(N)


def model(**options):
    return RandomFeatureRidge(
        **({"n_components": 32, "alpha": 1.0, "kernel": "gaussian"} | options)
    )


@pytest.mark.parametrize(
    ("place", "name", "count"),
    [(0, "column 0 of X", 1), (2, "column 2 of X", 100), ("y", "target 0", 1)],
)
def test_a_value_a_million_deviations_out_is_said(place, name, count):
    X, y = rows()
    (y if place == "y" else X[:, place])[17 : 17 + count] = 1e6
    size = ", up to 63 standard deviations" if count == 1 else ""
    with pytest.warns(StreamkernWarning, match=f"^{name}: a few values{size}"):
        model().fit(X, y)


def test_all_columns_that_have_some_are_counted_and_three_are_named():
    X, y = rows()
    X = np.hstack([X, X])
    X[5] = -1e6
    with pytest.warns(StreamkernWarning, match="column 1 of X, column 2 of X and 3 more: a few"):
        model().fit(X, y)


TAILS = {
    "uniform": lambda rng: rng.random(N),
    "normal": lambda rng: rng.standard_normal(N),
    "log-normal": lambda rng: np.exp(rng.standard_normal(N)),
    "Student": lambda rng: rng.standard_t(4, N),
    "rare events": lambda rng: (rng.random(N) < 2e-3).astype(float),
    "one event": lambda _: np.eye(1, N)[0],
}


@pytest.mark.parametrize("name", list(TAILS))
def test_nothing_is_said_of_what_is_usual(name):
    X, y = rows()
    X[:, 1] = TAILS[name](np.random.default_rng(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(X, y)


def test_rows_far_out_do_not_spoil_the_moments_of_the_others():
    X, y = rows()
    far = X.copy()
    far[17] = 1e6
    with pytest.warns(StreamkernWarning, match="standard deviations"):
        pattern = model(precision="double").moments(far, y)
    others = np.delete(np.arange(N), 17)
    left = pattern.forget(far[[17]], y[[17]])
    alone = model(precision="double").moments(X[others], y[others], like=pattern)
    coefs = [model(precision="double").solve(each).coef_ for each in (left, alone)]
    np.testing.assert_allclose(*coefs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_the_unit_of_the_inputs_does_not_matter(dtype, scale):
    X, y = rows()
    usual = model().fit(X.astype(dtype), y).predict(X[:50])
    scaled = (X * scale).astype(dtype)
    assert np.isfinite(scaled).all()
    found = model().fit(scaled, y).predict(scaled[:50])
    np.testing.assert_allclose(found, usual, atol=2e-3)


@pytest.mark.parametrize("scale", [1e-320, 1e-160, 1e200])
def test_inputs_whose_squares_no_number_holds_are_refused(scale):
    X, y = rows()
    with pytest.raises(DataError, match="rescale"):
        model().fit(X * scale, y)


def test_a_mean_far_from_zero_cancels_nothing():
    X, y = rows()
    usual, shifted = model().fit(X, y), model().fit(X + 1e6, y + 1e8)
    np.testing.assert_allclose(shifted.predict(X + 1e6) - 1e8, usual.predict(X), atol=1e-3)
    for name in ("r2", "rmse"):
        expected, found = (
            each.evaluate(*data)[name]
            for each, data in ((usual, (X, y)), (shifted, (X + 1e6, y + 1e8)))
        )
        assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_an_overflow_is_found_where_it_happens_and_its_rows_are_named(scheduler):
    X, y = rows()
    X[3000] = 3e25
    options = {"feature_map": "identity", "standardize": False, "fit_intercept": False}
    with (
        dask.config.set(scheduler=scheduler),
        pytest.warns(StreamkernWarning, match="standard deviations"),
        pytest.raises(OverflowedError, match=r"row [\d,]+: .* overflowed in single precision"),
    ):
        model(**options).fit(X.astype(np.float32), y)


def test_a_column_in_half_precision_counts_as_its_values_do():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(2000, 2016, N), 20.0 + rng.integers(0, 5, N) / 64])
    y = X[:, 0] - 2007.5 + 64 * (X[:, 1] - 20)
    models = [model(n_components=128).fit(X.astype(each), y) for each in (np.float16, np.float64)]
    halved, whole = (each.predict(X[:50]) for each in models)
    np.testing.assert_array_equal(halved, whole)


WILD = [1e-300, 1e-200, 1e-90, 1e90, 1e200, 1e300]


@pytest.mark.parametrize("size", WILD)
@pytest.mark.parametrize(
    "made",
    [
        *(Gaussian, Laplacian, Matern, partial(Matern, nu=2.5), partial(Matern, nu=0.7)),
        *(Cauchy, RationalQuadratic, Periodic),
        lambda size: Periodic(1.0, period=size),
        lambda size: Matern(1.0, nu=size),
        lambda size: RationalQuadratic(1.0, shape=size),
    ],
)
def test_a_kernel_of_wild_numbers_works_or_is_refused(made, size):
    try:
        kernel = made(size)
    except ParameterError as error:
        assert str(error).endswith(("inputs.", "ones.")), error  # noqa: PT017  or it works
        return
    X = rows()[0][:20]
    for each in (X, X * size, X / size):
        values = kernel(each, each)
        assert ((values >= 0) & (values <= 1)).all()
        np.testing.assert_allclose(np.diagonal(values), 1.0)
    assert np.isfinite(RandomFourierFeatures(kernel, 8).draw(3).frequencies).all()
    landmarks = Nystroem(kernel, 8).draw(3, X)
    for dtype in (np.float32, np.float64):
        assert np.isfinite(landmarks.transform(X, dtype)).all()


def test_rows_of_wild_sizes_have_values_or_are_refused():
    X = rows()[0][:20] * 1e250
    assert np.array_equal(Matern(1.0)(X, X), np.eye(20))
    with pytest.raises(ParameterError, match="no number for how many length scales"):
        Matern(1e-90)(X, X)
