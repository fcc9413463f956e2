"""A map applied to standardised inputs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tolerances import assert_close

from streamkern.errors import DataError, ParameterError
from streamkern.features import Identity, RandomFourierFeatures, Standardized, Standardizer
from streamkern.kernels import Gaussian, Laplacian

COLUMNS, MEAN, DEVIATION = np.array([0, 2]), np.array([3.0, -40.0]), np.array([0.5, 20.0])

every_inner = pytest.mark.parametrize(
    "inner",
    [
        lambda: RandomFourierFeatures(Gaussian(1.5), 12, random_state=2),
        lambda: RandomFourierFeatures(Laplacian((1.0, 2.0)), 7, paired=False, orthogonal=False),
        Identity,
    ],
    ids=["fourier", "fourier-phase", "identity"],
)


def rows(n: int = 9) -> np.ndarray:
    return np.array([3.0, 7.0, -40.0]) + np.random.default_rng(0).standard_normal((n, 3))


def standardized(inner) -> Standardized:
    return Standardized(Standardizer(COLUMNS, MEAN, DEVIATION, 3), inner().draw(2))


def expected_rows(X: np.ndarray) -> np.ndarray:
    return np.array(
        [[(x[c] - m) / d for c, m, d in zip(COLUMNS, MEAN, DEVIATION, strict=True)] for x in X]
    )


@every_inner
def test_features_are_the_inner_map_of_standardised_columns(inner):
    phi = standardized(inner)
    assert_close(phi.transform(rows()), inner().draw(2).transform(expected_rows(rows())))
    assert (phi.n_features, phi.n_components) == (3, phi.inner.n_components)


@every_inner
def test_columns_that_are_left_out_do_not_matter(inner):
    other = rows()
    other[:, 1] = np.nan
    phi = standardized(inner)
    assert np.array_equal(phi.transform(other), phi.transform(rows()))


@every_inner
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_evaluating_subtracts_the_shift(inner, dtype):
    phi = standardized(inner)
    shift = np.linspace(-1, 1, phi.n_components).astype(dtype)
    plain, shifted = np.empty((2, 9, phi.n_components), dtype=dtype)
    phi.evaluate(rows(), plain)
    phi.evaluate(rows(), shifted, shift)
    assert_close(shifted, plain - shift, dtype=dtype, steps=2)


def test_a_spread_that_is_small_beside_the_mean_survives_single_precision():
    X = np.random.default_rng(1).standard_normal((9, 1))
    standardizer = Standardizer(np.array([0]), np.array([1e9]), np.array([1.0]), 1)
    phi = Standardized(standardizer, Identity().draw(1))
    # 1e9 + x is stored in steps of 1e-7, and then single precision keeps what is left.
    assert_close(phi.transform(1e9 + X, np.float32), X, dtype=np.float32, steps=4)


@pytest.mark.parametrize("stored", [np.int32, np.uint8, np.float32])
def test_inputs_of_any_real_type_are_taken_as_their_values(stored):
    X = np.array([[1, 2, 30], [4, 5, 60]], dtype=stored)
    phi = standardized(Identity)
    assert np.array_equal(phi.transform(X), phi.transform(X.astype(float)))


def test_the_first_features_are_those_of_the_inner_map():
    phi = standardized(lambda: RandomFourierFeatures(Gaussian(1.5), 12, random_state=2))
    small = standardized(lambda: RandomFourierFeatures(Gaussian(1.5), 4, random_state=2))
    assert np.array_equal(phi.first(4).transform(rows()), small.transform(rows()))


def test_drawing_draws_the_inner_map_for_the_columns_that_are_kept():
    inner = RandomFourierFeatures(Gaussian(1.5), 12, random_state=2)
    phi = Standardized(Standardizer(COLUMNS, MEAN, DEVIATION, 3), inner).draw(3)
    drawn = standardized(lambda: RandomFourierFeatures(Gaussian(1.5), 12, random_state=2))
    assert np.array_equal(phi.transform(rows()), drawn.transform(rows()))


@every_inner
def test_a_restored_map_is_the_map_bit_for_bit(inner):
    phi = standardized(inner)
    parameters = json.loads(json.dumps(phi.parameters(), allow_nan=False))
    back = Standardized.restore(parameters, phi.arrays())
    assert back.parameters() == phi.parameters()
    for dtype in (np.float32, np.float64):
        assert np.array_equal(back.transform(rows(), dtype), phi.transform(rows(), dtype))


@every_inner
def test_a_standardised_map_may_itself_be_standardised(inner):
    outer = Standardizer(np.array([0, 1, 2]), np.zeros(3), np.array([1.0, 2.0, 4.0]), 3)
    phi = Standardized(outer, standardized(inner))
    back = Standardized.restore(phi.parameters(), phi.arrays())
    expected = phi.inner.transform(rows() / [1.0, 2.0, 4.0])
    assert_close(phi.transform(rows()), expected)
    assert np.array_equal(back.transform(rows()), phi.transform(rows()))


@pytest.mark.parametrize("name", ["columns", "mean", "deviation"])
def test_a_damaged_file_is_refused(name):
    phi = standardized(Identity)
    arrays = {**phi.arrays(), name: phi.arrays()[name][:1]}
    with pytest.raises(ParameterError, match="expected 2 columns, means and deviations, found"):
        Standardized.restore(phi.parameters(), arrays)


@pytest.mark.parametrize("p", [2, 4])
def test_rows_of_another_width_are_refused(p):
    with pytest.raises(DataError, match=rf"must have 3 columns, .* shape \(5, {p}\)"):
        standardized(Identity).transform(np.zeros((5, p)))
    with pytest.raises(DataError, match="must have 3 columns"):
        standardized(Identity).draw(p)


# Rows that are turned into a metric.

LINEAR = {
    "diagonal": np.array([2.0, 0.5]),
    "full": np.array([[1.0, -2.0], [0.5, 3.0]]),
    "to fewer": np.array([[1.0, -2.0]]),
    "to more": np.array([[1.0, -2.0], [0.5, 3.0], [4.0, 0.0]]),
}
in_every_metric = pytest.mark.parametrize("linear", list(LINEAR.values()), ids=list(LINEAR))


def in_metric(linear, D=12) -> Standardized:
    standardizer = Standardizer(COLUMNS, MEAN, DEVIATION, 3, linear)
    inner = RandomFourierFeatures(Gaussian(1.5), D, random_state=2)
    return Standardized(standardizer, inner.draw(standardizer.n_outputs))


def turned(linear, X: np.ndarray) -> np.ndarray:
    A = np.diag(linear) if linear.ndim == 1 else linear
    return np.array([[sum(a * b for a, b in zip(row, x, strict=True)) for row in A] for x in X])


@in_every_metric
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_turned_after_they_are_standardised(linear, dtype):
    standardizer = in_metric(linear).standardizer
    X = rows(40_000)
    made = standardizer(X, dtype)
    assert made.shape == (len(X), standardizer.n_outputs)
    assert_close(made[-9:], turned(linear, expected_rows(X[-9:])), dtype=dtype, steps=20)


@in_every_metric
def test_a_map_in_a_metric_is_restored_bit_for_bit(linear):
    phi = in_metric(linear)
    back = Standardized.restore(json.loads(json.dumps(phi.parameters())), phi.arrays())
    assert np.array_equal(back.transform(rows()), phi.transform(rows()))
    assert not back.equals(in_metric(LINEAR["full"] + 1.0))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (np.ones((2, 3)), "expected 3 columns, means and deviations, found"),
        (np.ones((3, 2)), "a linear map to 2 numbers a row, found shape"),
        (np.ones((2, 2, 2)), "a linear map to 2 numbers a row, found shape"),
        (np.array(1.0), "expected 0 columns, means and deviations, found"),
    ],
)
def test_a_damaged_metric_is_refused(damage, words):
    phi = in_metric(LINEAR["full"])
    with pytest.raises(ParameterError, match=words):
        Standardized.restore(phi.parameters(), {**phi.arrays(), "linear": damage})


@pytest.mark.parametrize("linear", [None, *LINEAR.values()], ids=["none", *LINEAR])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_are_those_of_differences_of_raw_rows(linear, dtype):
    phi, coef = in_metric(linear), np.random.default_rng(1).standard_normal(12)
    X = rows()
    found, step = phi.gradients(X.astype(dtype), coef), 1e-5
    expected = np.zeros_like(X)
    for j, deviation in zip(COLUMNS, DEVIATION, strict=True):
        moved = np.zeros(3)
        moved[j] = step * deviation
        change = (phi.transform(X + moved) - phi.transform(X - moved)) @ coef / phi.scale
        expected[:, j] = change / (2 * step * deviation)
    assert found.dtype == dtype
    assert_close(found, expected, dtype=np.float32, steps=100 if dtype == np.float32 else 1)
    assert not found[:, 1].any()


def test_a_shift_of_turned_rows_cannot_be_standardised_again():
    first, then = in_metric(LINEAR["full"]).standardizer, in_metric(None).standardizer
    with pytest.raises(ParameterError, match="cannot be standardised again"):
        first.then(then)


def test_inputs_in_a_metric_may_be_chosen_among():
    standardizer = Standardizer(COLUMNS, MEAN, DEVIATION, 3, LINEAR["full"])
    phi = Standardized(standardizer, Identity().draw(2))
    assert np.array_equal(phi.subset([1]).transform(rows()), phi.transform(rows())[:, [1]])
