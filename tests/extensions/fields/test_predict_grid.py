"""`streamkern predict --grid`."""

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from commandline import streamkern, unchanged_by

from streamkern import Matern, RandomFeatureClassifier, RandomFeatureRidge

pytestmark = pytest.mark.usefixtures("folder")


def fitted():
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 3, (400, 2)), columns=["a", "b"])
    y = np.sin(X["a"] + 2 * X["b"])
    return RandomFeatureRidge(Matern(1.0), feature_map="grid", n_components=64, alpha=0.1).fit(X, y)


def test_files_have_what_arrays_have():
    model = fitted()
    model.save("model.h5")
    expected = model.predict_grid((4, 3), return_std=True)
    for out in ("map.h5", "map.nc", "map.zarr"):
        made = streamkern("predict", "model.h5", "--grid", "4,3", "--std", "--out", out)
        assert f"4 x 3 predictions in {out}:y_pred and y_std" in made.output
    for dataset in (xr.open_dataset("map.nc"), xr.open_zarr("map.zarr")):
        xr.testing.assert_allclose(dataset, expected.to_xarray())
    with h5py.File("map.h5") as file:
        np.testing.assert_allclose(file["y_std"][:], expected.y_std)
        assert [list(each) for each in file["y_pred"].dims] == [["a"], ["b"]]
        assert np.array_equal(file["b"][:], expected.axes["b"])
    streamkern("predict", "model.h5", "--grid", "2,2", "--extent=-1,0,1,2", "--out", "small.h5")
    with h5py.File("small.h5") as file:
        assert np.array_equal(file["a"][:], [-1, 0])
        assert "y_std" not in file


def test_commands_that_name_no_grid_or_rows_too_are_refused_and_write_nothing(folder):
    fitted().save("model.h5")
    X = np.random.default_rng(0).normal(size=(60, 2))
    RandomFeatureClassifier("gaussian", n_components=16).fit(X, X[:, 0] > 0).save("classes.h5")
    for model, arguments, said in (
        ("model.h5", [], "there is nothing to predict"),
        ("model.h5", ["--extent", "0,1,0,1"], "in the place of DATA"),
        ("model.h5", ["new.h5", "--grid", "2,2"], "in the place of DATA"),
        ("classes.h5", ["--grid", "2,2"], "by one regression"),
        ("model.h5", ["--grid", "2,x"], "whole numbers with commas between"),
        ("model.h5", ["--grid", "2"], "an axis for every input"),
        ("model.h5", ["--grid", "2,2", "--on-bad-rows", "skip"], "--on-bad-rows is for rows"),
    ):
        predict = ("predict", model, *arguments, "--out", "map.h5")
        assert said in unchanged_by(folder, *predict, status=2)
    again = ("predict", "model.h5", "--grid", "2,2", "--out", "map.nc")
    streamkern(*again)
    assert "exists already" in unchanged_by(folder, *again)


def test_the_help_shows_a_grid():
    assert "--grid N[,N...]" in streamkern("predict", "--help").output
