"""A map of standardised inputs, and inputs as features."""

import numpy as np
import pytest
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.features import Identity, RandomFourierFeatures, Standardized, Standardizer
from streamkern.kernels import Gaussian, Laplacian
from streamkern.runtime.scratch import Scratch

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
def test_features_are_the_inner_map_of_standardised_columns_and_read_no_others(inner):
    phi, X = standardized(inner), rows()
    X[:, 1] = np.nan
    assert_close(phi.transform(X), inner().draw(2).transform(expected_rows(X)))
    assert (phi.n_features, phi.n_components) == (3, phi.inner.n_components)


def test_a_spread_that_is_small_beside_the_mean_survives_single_precision():
    X = np.random.default_rng(1).standard_normal((9, 1))
    standardizer = Standardizer(np.array([0]), np.array([1e9]), np.array([1.0]), 1)
    phi = Standardized(standardizer, Identity().draw(1))
    # 1e9 + x is stored in steps of 1e-7, and then single precision keeps what is left.
    assert_close(phi.transform(1e9 + X, np.float32), X, dtype=np.float32, steps=4)


def test_what_is_drawn_and_comes_first_is_that_of_the_inner_map_for_the_columns_kept():
    inner = RandomFourierFeatures(Gaussian(1.5), 12, random_state=2)
    phi = Standardized(Standardizer(COLUMNS, MEAN, DEVIATION, 3), inner).draw(3)
    drawn = standardized(lambda: RandomFourierFeatures(Gaussian(1.5), 12, random_state=2))
    assert np.array_equal(phi.transform(rows()), drawn.transform(rows()))
    small = standardized(lambda: RandomFourierFeatures(Gaussian(1.5), 4, random_state=2))
    assert np.array_equal(phi.first(4).transform(rows()), small.transform(rows()))


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
    assert standardizer(X).shape == (len(X), standardizer.n_outputs)
    made = np.empty((len(X), standardizer.n_outputs), dtype)
    standardizer.write(X, made, Scratch())
    assert_close(made[-9:], turned(linear, expected_rows(X[-9:])), dtype=dtype, steps=20)


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


@pytest.mark.parametrize("damage", [np.ones((2, 3, 4)), np.ones((3, 4)), np.ones((2, 2, 4))])
def test_damaged_knots_are_refused(damage):
    phi = in_metric(None)
    damaged = {**phi.arrays(), "knots": damage}
    with pytest.raises(ParameterError, match="rising knots of 2 columns"):
        Standardized.restore(phi.parameters(), damaged)
    rise = np.broadcast_to(np.arange(4.0), (2, 2, 4))
    found = Standardized.restore(phi.parameters(), {**phi.arrays(), "knots": rise})
    assert np.array_equal(found.standardizer.knots, rise)


def test_a_shift_of_turned_rows_cannot_be_standardised_again():
    first, then = in_metric(LINEAR["full"]).standardizer, in_metric(None).standardizer
    with pytest.raises(ParameterError, match="cannot be standardised again"):
        first.then(then)


def test_inputs_in_a_metric_may_be_chosen_among():
    standardizer = Standardizer(COLUMNS, MEAN, DEVIATION, 3, LINEAR["full"])
    phi = Standardized(standardizer, Identity().draw(2))
    assert np.array_equal(phi.subset([1]).transform(rows()), phi.transform(rows())[:, [1]])


# Inputs as features.

ROWS = np.random.default_rng(0).standard_normal((9, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stored", [np.float32, np.float64, np.int16, np.uint8, np.int64])
def test_features_are_the_inputs(dtype, stored):
    X = np.abs(10 * ROWS).astype(stored)
    features = Identity().draw(3).transform(X, dtype)
    assert features.dtype == dtype
    assert np.array_equal(features, X.astype(dtype))


def test_a_large_shift_is_subtracted_before_digits_are_lost():
    far, out = 2.0**24, np.empty((9, 3), dtype=np.float32)
    X = far + np.round(ROWS * 16) / 16
    Identity().draw(3).evaluate(X, out, np.full(3, far, dtype=np.float32))
    assert np.array_equal(out, X - far)


@pytest.mark.parametrize("stored", [np.float32, np.float64])
def test_standardised_inputs_keep_their_digits_until_the_shift_is_subtracted(stored):
    far, out = 2.0**22 + 1.0, np.empty((9, 3), dtype=np.float32)
    X = (far + np.round(ROWS * 2) / 2).astype(stored)
    thirds = Standardizer(np.arange(3), np.zeros(3), np.full(3, 3.0), 3)
    phi = Standardized(thirds, Identity().draw(3))
    phi.evaluate(X, out, np.full(3, far, dtype=np.float32) / np.float32(3.0))
    shift = float(np.float32(far) / np.float32(3.0))
    np.testing.assert_allclose(out, X.astype(float) / 3.0 - shift, rtol=1e-6)
