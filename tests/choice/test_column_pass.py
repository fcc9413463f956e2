"""What the first pass makes of the columns: what is constant, nearly constant, and centred."""

import numpy as np
import pytest

from streamkern import RandomFeatureRidge
from streamkern.errors import StreamkernWarning
from streamkern.kernels import Gaussian, Linear, Matern, Polynomial

N = 400
pytestmark = pytest.mark.usefixtures("in_this_thread")


def rows(n=N):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2


def model(**options):
    return RandomFeatureRidge(
        **({"n_components": 64, "alpha": 1.0, "kernel": "gaussian"} | options)
    )


@pytest.mark.filterwarnings("ignore:1 constant column")  # which the intercept stands for
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("constant", [None, 2.0])
@pytest.mark.parametrize(
    ("kernel", "feature_map", "shift"),
    [
        (Polynomial(), "nystroem", 10.0),
        (Polynomial(degree=3, constant=0.5), "nystroem", 3.0),
        (Linear(), "nystroem", 10.0),
        (Linear(), "orthogonal", 10.0),
    ],
)
def test_inputs_as_they_are_make_the_kernel_as_it_is(
    kernel, feature_map, shift, constant, fit_intercept
):
    X, y = rows()
    X = X + shift if constant is None else np.column_stack([X + shift, np.full(N, constant)])
    options = {"standardize": False, "precision": "double", "fit_intercept": fit_intercept}
    found = model(kernel=kernel, feature_map=feature_map, n_components=256, **options)
    border = float(fit_intercept)
    system = np.full((len(X) + 1, len(X) + 1), border)
    system[:-1, :-1], system[-1, -1] = kernel(X, X) + np.eye(len(X)), 1.0 - border
    *dual, intercept = np.linalg.solve(system, np.append(y, 0.0))
    difference = found.fit(X, y).predict(X) - kernel(X, X) @ dual - border * intercept
    assert np.abs(difference).max() < 2e-3 * y.std()


@pytest.mark.parametrize("kernel", [Polynomial(), Linear()])
def test_inputs_too_far_from_zero_for_single_precision_are_said(kernel):
    X, y = rows()
    single = model(kernel=kernel, feature_map="nystroem", standardize=False)
    with pytest.warns(StreamkernWarning, match="lie 103 standard deviations from zero, where"):
        single.fit(X + 100.0, y)
    model(kernel=kernel, feature_map="nystroem").fit(X + 100.0, y)
    single.fit(X + 1.0, y)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Matern(2.0)])
def test_a_kernel_of_differences_keeps_its_digits_far_from_zero(kernel):
    X, y = rows()
    options = {"kernel": kernel, "feature_map": "nystroem", "standardize": False}
    near, far = (model(**options).fit(X + shift, y).predict(X + shift) for shift in (0.0, 1e6))
    np.testing.assert_allclose(far, near, atol=1e-3)


def nearly_constant(n=4000):
    """Rows with one event in 200 and one in 3 besides, and what depends on it."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rows(n)[0], rng.permutation(n) < n // 200, rng.permutation(n) < n // 3])
    return X, np.sin(X[:, 0]) + X[:, 3]


def test_few_departures_from_a_value_count_as_though_a_tenth_of_the_rows_did():
    X, y = nearly_constant()
    fitted = model().fit(X, y)
    # Of a linear model, all are over their deviations.
    linear = model(feature_map="identity").fit(X, y)
    found, plain = (each.feature_map_.standardizer.deviation for each in (fitted, linear))
    np.testing.assert_allclose(plain, X.std(axis=0))
    np.testing.assert_array_equal(np.delete(found, 3), np.delete(plain, 3))
    assert found[3] == pytest.approx(np.sqrt(0.1), rel=0.3)
    names = [each.report_["nearly_constant_columns"] for each in (fitted, linear)]
    assert names == [[3], []]


def test_the_units_of_columns_do_not_matter_to_what_is_nearly_constant():
    X, y = nearly_constant()
    units = 2.0 ** np.array([-10, 13, 0, 20, -40])
    found, scaled = (model().fit(each, y).predict(each) for each in (X, X * units))
    np.testing.assert_array_equal(scaled, found)


def test_moments_like_others_have_their_deviations():
    X, y = nearly_constant()
    like = model().moments(X, y)
    more = model().moments(X[:500], y[:500], like=like)
    deviations = [each.feature_map.standardizer.deviation for each in (like, more)]
    np.testing.assert_array_equal(*deviations)


def test_pixels_that_are_nearly_always_dark_do_not_drown_the_others():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 4, 1500)
    strokes = 120.0 * (label[:, None] == np.arange(4)) + rng.normal(0, 60, (1500, 4))
    specks = np.where(rng.random((1500, 700)) < 0.01, rng.integers(50, 256, (1500, 700)), 0)
    X, y = np.column_stack([strokes, specks]), np.where(label % 2, 1.0, -1.0)
    fitted = model(n_components=512).fit(X[:1000], y[:1000])
    assert np.mean(np.sign(fitted.predict(X[1000:])) == y[1000:]) > 0.75
