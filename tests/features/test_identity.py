"""The identity map."""

from __future__ import annotations

import json

import numpy as np
import pytest

from streamkern import RandomFeatureRidge
from streamkern.errors import DataError, ParameterError
from streamkern.features import Identity, Standardized, Standardizer

ROWS = np.random.default_rng(0).standard_normal((9, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stored", [np.float32, np.float64, np.int16, np.uint8, np.int64])
def test_features_are_the_inputs(dtype, stored):
    X = np.abs(10 * ROWS).astype(stored)
    features = Identity().draw(3).transform(X, dtype)
    assert features.dtype == dtype
    assert np.array_equal(features, X.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_evaluating_subtracts_the_shift(dtype):
    shift = np.array([1.0, -2.0, 0.5], dtype=dtype)
    X, out = ROWS.astype(dtype), np.empty((9, 3), dtype=dtype)
    Identity().draw(3).evaluate(X, out, shift)
    assert np.array_equal(out, X - shift)


def test_a_large_shift_is_subtracted_before_digits_are_lost():
    far, out = 2.0**24, np.empty((9, 3), dtype=np.float32)
    X = far + np.round(ROWS * 16) / 16
    Identity().draw(3).evaluate(X, out, np.full(3, far, dtype=np.float32))
    assert np.array_equal(out, X - far)


def test_there_are_as_many_features_as_inputs():
    phi = Identity().fit(ROWS)
    assert phi.n_components == phi.n_features == 3


def test_a_part_of_the_inputs_is_refused():
    with pytest.raises(ParameterError, match="no part of 2 features that stands for the whole"):
        Identity().draw(3).first(2)


def test_a_restored_map_is_the_map():
    phi = Identity().draw(3)
    back = Identity.restore(json.loads(json.dumps(phi.parameters())), phi.arrays())
    assert back.parameters() == phi.parameters()
    assert np.array_equal(back.transform(ROWS), phi.transform(ROWS))


def test_a_map_that_is_not_drawn_is_refused():
    with pytest.raises(ParameterError, match="not drawn yet"):
        Identity().transform(ROWS)


def test_rows_of_another_width_are_refused():
    with pytest.raises(DataError, match=r"must have 4 columns, .* shape \(9, 3\)"):
        Identity().draw(4).transform(ROWS)


@pytest.mark.parametrize("stored", [np.float32, np.float64])
def test_standardised_inputs_keep_their_digits_until_the_shift_is_subtracted(stored):
    far, out = 2.0**22 + 1.0, np.empty((9, 3), dtype=np.float32)
    X = (far + np.round(ROWS * 2) / 2).astype(stored)
    thirds = Standardizer(np.arange(3), np.zeros(3), np.full(3, 3.0), 3)
    phi = Standardized(thirds, Identity().draw(3))
    phi.evaluate(X, out, np.full(3, far, dtype=np.float32) / np.float32(3.0))
    shift = float(np.float32(far) / np.float32(3.0))
    np.testing.assert_allclose(out, X.astype(float) / 3.0 - shift, rtol=1e-6)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_linear_model_of_inputs_far_from_zero_has_the_digits_of_one_near_it(precision):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    y, far = X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(2000), X + 1e6
    options = {"feature_map": "identity", "standardize": False, "alpha": 1.0}
    model = RandomFeatureRidge(**options, precision=precision).fit(far, y)
    near = RandomFeatureRidge(**options, precision="double").fit(X, y).predict(X)
    np.testing.assert_allclose(model.predict(far), near, atol=1e-4)
