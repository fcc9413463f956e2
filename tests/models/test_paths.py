"""Estimators given paths: HDF5, CSV and Parquet in the place of rows."""

import gc
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from commandline import write
from harvests import same_bits
from sklearn.metrics import accuracy_score, r2_score

import streamkern
from streamkern.errors import DataError

SMALL = {"n_components": 16, "alpha": 0.1}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    rng = np.random.default_rng(0)
    town, area = rng.choice(["Bern", "Rome"], 120), rng.uniform(20, 200, 120)
    price = area + 50 * (town == "Rome") + rng.standard_normal(120)
    frame = pd.DataFrame({"town": town, "area": area, "w": rng.integers(1, 3, 120), "price": price})
    frame.to_csv("all.csv", index=False)
    frame[:60].to_parquet("part-1.parquet", index=False)
    frame[60:].to_parquet("part-2.parquet", index=False)
    frame.drop(columns="price").to_csv("new.csv", index=False)
    write("rows.h5", frame[["area", "w"]].to_numpy(), price, cost=2 * price, weights=frame["w"])
    return frame


def left():
    gc.collect()
    return list(Path("temporary").iterdir())


def test_a_table_is_fitted_scored_and_predicted_by_its_path(folder):
    model = streamkern.RandomFeatureRidge(**SMALL).fit("all.csv", y="price")
    assert not left()
    frame, price = folder.drop(columns="price"), folder["price"]
    assert same_bits(model, streamkern.RandomFeatureRidge(**SMALL).fit(frame, price))
    assert model.recipe_.targets == ("price",)
    predicted = model.predict("new.csv")
    np.testing.assert_array_equal(predicted, model.predict(frame[["w", "area", "town"]]))
    assert model.score("part-*.parquet") == pytest.approx(r2_score(price, predicted))
    weighed = model.evaluate(Path("all.csv"), sample_weight="w")["rmse"]
    squares = (predicted - price) ** 2
    assert weighed == pytest.approx(np.sqrt(np.average(squares, weights=folder["w"])))
    assert len(model.predict(["part-1.parquet", "part-2.parquet"], return_std=True)[1]) == 120
    assert model.predict_to_hdf5("new.csv", "predicted.h5") == 0
    with h5py.File("predicted.h5") as file:
        np.testing.assert_allclose(file["y_pred"][:], predicted)
    assert not left()


def test_the_names_of_datasets_are_those_of_hdf5(folder):
    opened = streamkern.open_hdf5("rows.h5", y="cost", weights="weights")
    expected = streamkern.RandomFeatureRidge(**SMALL).fit(opened)
    model = streamkern.RandomFeatureRidge(**SMALL).fit("rows.h5", "cost", "weights")
    assert same_bits(model, expected)
    assert model.score("rows.h5", "cost") > 0.8 > model.score("rows.h5")


def test_rows_of_tables_come_and_go_by_their_paths(folder):
    model = streamkern.RandomFeatureRidge(precision="double", **SMALL)
    model.partial_fit("part-1.parquet", y=["price"]).partial_fit("part-2.parquet")
    assert model.report_["rows"] == 120
    model.forget("part-2.parquet")
    assert model.report_["rows"] == 60
    assert model.fit("all.csv", "price", keep_moments=True).moments_ is not None
    assert not left()


def test_labels_and_components_are_of_tables_too(folder):
    classifier = streamkern.RandomFeatureClassifier(**SMALL).fit("all.csv", y="town")
    predicted = classifier.predict("all.csv")
    assert classifier.score("all.csv", y="town") == accuracy_score(folder["town"], predicted)
    scores = streamkern.RandomFeaturePCA(n_random_features=16, n_components=2).fit("new.csv")
    assert scores.transform("all.csv").shape == (120, 2)
    assert not left()


def test_what_needs_rows_in_memory_says_so(folder):
    for estimator in (streamkern.ExactKernelRidge(), streamkern.Nystroem()):
        with pytest.raises(DataError, match=r"takes rows themselves, but X is a path or text"):
            estimator.fit("all.csv", "price")
    model = streamkern.RandomFeatureRidge(**SMALL).fit("all.csv", y="price")
    with pytest.raises(DataError, match="RandomFeatureRidge takes rows themselves"):
        model.transform("new.csv")
