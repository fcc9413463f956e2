"""Predictions on a grid are those of its points."""

import numpy as np
import pandas as pd
import pytest

from streamkern import Matern, RandomFeatureRidge
from streamkern.errors import DataError, ParameterError
from streamkern.extensions.fields import grid_prediction

N = 400


def fitted(p=2, q=None, **options):
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 3, (N, p)), columns=list("abc")[:p])
    y = np.sin(X.to_numpy() @ np.arange(1.0, p + 1)) + 0.1 * np.cos(9 * np.arange(N))
    y = y if q is None else np.stack([y] * q, axis=1) * np.arange(1, q + 1)
    options = {"feature_map": "grid", "n_components": 64, "alpha": 0.1} | options
    return RandomFeatureRidge(Matern(1.0), **options).fit(X, y), X


@pytest.mark.parametrize("n_points", [50, 4])  # of several slabs, and of parts of one
@pytest.mark.parametrize(("p", "q"), [(1, None), (2, None), (3, None), (2, 2)])
def test_a_grid_has_the_predictions_of_its_points(monkeypatch, p, q, n_points):
    monkeypatch.setattr(grid_prediction, "_POINTS", n_points)
    model, X = fitted(p, q)
    shape = (5, 7, 3)[:p]
    found = model.predict_grid(shape, return_std=True)
    assert list(found.axes) == list(X)
    assert found.y_pred.shape == found.y_std.shape == (*shape, *([] if q is None else [q]))
    for name, axis, n in zip(X, found.axes.values(), shape, strict=True):
        assert np.array_equal(axis, np.linspace(X[name].min(), X[name].max(), n))
    points = np.stack(np.meshgrid(*found.axes.values(), indexing="ij"), axis=-1).reshape(-1, p)
    mean, std = model.predict(pd.DataFrame(points, columns=list(X)), return_std=True)
    np.testing.assert_allclose(found.y_pred, mean.reshape(found.y_pred.shape), atol=1e-6)
    np.testing.assert_allclose(found.y_std, std.reshape(found.y_std.shape), rtol=1e-5)
    plain = model.predict_grid(shape)
    assert plain.y_std is None
    np.testing.assert_allclose(plain.y_pred, found.y_pred, atol=1e-6)
    assert set(found.to_xarray()) == {"y_pred", "y_std"}
    assert "y_std" in found._repr_html_()


def test_other_maps_other_extents_and_coordinates_have_grids_too():
    model, _ = fitted(feature_map="orthogonal")
    found = model.predict_grid((3, [0.5, 0.25]), extent=[[0, 1], [7, 8]])
    assert np.array_equal(found.axes["a"], [0, 0.5, 1])
    assert np.array_equal(found.axes["b"], [0.5, 0.25])
    points = pd.DataFrame({"a": [0, 0, 0.5, 0.5, 1, 1], "b": [0.5, 0.25] * 3})
    np.testing.assert_allclose(found.y_pred.ravel(), model.predict(points), atol=1e-6)


@pytest.mark.parametrize(
    ("points", "extent", "said"),
    [
        ((3,), None, "an axis for every input, 2 here, not"),
        ((3, 0), None, "1 point or more, not 0"),
        ((3, 2.5), None, "1 point or more, not 2.5"),
        ((3, [np.nan]), None, "one row of finite numbers"),
        ((3, [[1.0]]), None, "one row of finite numbers"),
        ((3, 3), [[0, 1]], "two numbers for each of 2 inputs"),
        ((3, 3), [[0, 1], [0]], "two numbers for each of 2 inputs"),
        ((3, 3), 5, "two numbers for each of 2 inputs"),
        (3, None, "an axis for every input, 2 here, not 3"),
        ({"a": 3, "b": 4}, None, "an axis"),
        (("3", "3"), None, "an axis"),
        ((None, 3), None, "an axis"),
        (([[1], [1, 2]], 3), None, "an axis"),
        ((np.array(["2020-01-01"], "datetime64[s]"), 3), None, "an axis"),
        ((3, 2), [[0, 1], [None, 1]], "over an extent"),
        ((3, 2), [["a", "b"], [0, 1]], "over an extent"),
    ],
)
def test_what_is_no_grid_is_refused(points, extent, said):
    with pytest.raises(ParameterError, match=said):
        fitted()[0].predict_grid(points, extent)


@pytest.mark.parametrize("names", [["y_pred", "b"], ["a", "a/b"], [".", "b"], ["target", "b"]])
def test_inputs_of_names_that_no_axis_can_have_are_numbered(names):
    model, X = fitted()
    model.fit(X.set_axis(names, axis=1), np.sin(X["a"]))
    assert list(model.predict_grid((2, 2)).axes) == ["x0", "x1"]


def test_a_model_that_goes_on_growing_reaches_over_all_of_its_rows():
    _, X = fitted()
    model = RandomFeatureRidge(Matern(1.0), n_components=32, alpha=1.0)
    for part in (X["a"] < 1, X["a"] >= 1):
        model.partial_fit(X[part], np.sin(X["a"][part]))
    axis = model.predict_grid((2, 2)).axes["a"]
    assert (axis[0], axis[-1]) == (X["a"].min(), X["a"].max())


def test_points_that_overflow_and_models_that_know_no_range_are_refused():
    model, _ = fitted(feature_map="orthogonal")
    with pytest.raises(DataError, match="points of the grid overflow"):
        model.predict_grid((2, 2), [[0, 1], [0, 1e308]])
    X = np.random.default_rng(0).normal(size=(50, 4))
    wide = RandomFeatureRidge("gaussian", n_components=16).fit(X, X[:, 0])
    with pytest.raises(ParameterError, match="spread over an extent"):
        wide.predict_grid((2, 2, 2, 2))
    assert wide.predict_grid(([0.0],) * 4).y_pred.shape == (1, 1, 1, 1)


def test_a_map_is_drawn_with_its_first_input_from_left_to_right():
    made, X = fitted()
    found = made.predict_grid((4, 3), return_std=True)
    dataset = found.to_xarray()
    assert dataset.y_pred.dims == dataset.y_std.dims == ("b", "a")
    np.testing.assert_array_equal(dataset.y_pred.sel(a=found.axes["a"][2]), found.y_pred[2])
    y = np.sin(X["a"])
    north = RandomFeatureRidge("gaussian", n_components=16, alpha=0.1)
    north.fit(X.rename(columns={"a": "latitude", "b": "longitude"}), y)
    assert north.predict_grid((4, 3)).to_xarray().y_pred.dims == ("latitude", "longitude")
    later = RandomFeatureRidge("gaussian", n_components=16, alpha=0.1)
    later.fit(X.rename(columns={"a": "year", "b": "latency"}), y)
    assert later.predict_grid((4, 3)).to_xarray().y_pred.dims == ("latency", "year")
    several = fitted(q=2)[0].predict_grid((4, 3)).to_xarray()
    assert several.y_pred.dims == ("b", "a", "target")
