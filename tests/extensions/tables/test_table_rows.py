"""Commands on CSV and Parquet: as on the HDF5 that `convert` makes of them, and nothing is left."""

import json
import signal
import subprocess
import sys

import h5py
import numpy as np
import pandas as pd
import pytest
from commandline import refused, report_of, streamkern, unchanged_by
from conftest import wait_until
from rows_read import inside

from streamkern import RandomFeatureRidge, load

FIT = ("--components", 16, "--alpha", 0.1, "--kernel", "gaussian", "--quiet")


def frame(n=200, seed=0):
    rng = np.random.default_rng(seed)
    area, town = rng.uniform(20, 200, n).round(1), rng.choice(["Bern", "Rome", "Oslo"], n)
    price = area + 20 * (town == "Rome") + rng.standard_normal(n)
    area[rng.random(n) < 0.1] = np.nan
    built = pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), "D")
    table = {"id": [f"{seed}-{i:04d}" for i in range(n)], "town": town, "built": built}
    return pd.DataFrame({**table, "area": area, "price": price})


@pytest.fixture
def houses(folder):
    frame().to_csv("houses.csv", index=False)
    frame().drop(columns=["id", "built", "town"]).dropna().to_csv("plain.csv", index=False)
    frame(20, seed=1).drop(columns="price").to_csv("new.csv", index=False)
    return folder


@pytest.fixture
def model(houses):
    options = ("--target", "price", "--id", "id", "--out", "model.h5")
    streamkern("fit", "houses.csv", *options, *FIT)
    return houses


def test_ids_are_no_inputs_and_go_with_predictions(model):
    ids = pd.read_csv("new.csv")["id"].tolist()
    assert "id" not in load("model.h5").feature_names_in_
    assert load("model.h5").recipe_.ids == ("id",)
    streamkern("predict", "model.h5", "new.csv", "--out", "p.csv")
    streamkern("predict", "model.h5", "new.csv", "--out", "p.h5")
    streamkern("convert", "new.csv", "new.h5", "--like", "model.h5", "--no-target")
    streamkern("predict", "model.h5", "new.h5", "--out", "p.parquet")
    for found in (pd.read_csv("p.csv"), pd.read_parquet("p.parquet")):
        assert list(found) == ["id", "y_pred"]
        assert found["id"].tolist() == ids
    with h5py.File("p.h5") as file:
        assert file["id"].asstr()[:].tolist() == ids
    frame(20, seed=1).drop(columns="id").assign(id=range(20)).to_parquet("n.parquet")
    streamkern("predict", "model.h5", "n.parquet", "--out", "n.h5")
    with h5py.File("n.h5") as file:
        assert file["id"][:].tolist() == list(range(20))


def test_a_model_of_a_frame_and_a_series_is_evaluated_on_the_column_of_that_name(houses):
    table = pd.read_csv("plain.csv")
    fitted = RandomFeatureRidge("gaussian", n_components=16, alpha=0.1)
    fitted.fit(table[["area"]], table["price"]).save("named.h5")
    fitted.fit(table[["area"]], table["price"].to_numpy()).save("nameless.h5")
    found = report_of("evaluate", "named.h5", "plain.csv")
    errors = load("named.h5").predict(table[["area"]]) - table["price"]
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert "knows no name of its targets" in refused("evaluate", "nameless.h5", "plain.csv")


def test_rows_of_the_fit_are_diagnosed_by_the_name_of_their_table(model):
    found = report_of("evaluate", "model.h5", "houses.csv", "--leave-one-out", 1)
    assert found["largest_errors"][0]["place"].startswith("houses.csv, row ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("houses.csv --target pric", "has no column 'pric' (did you mean 'price'?); its columns"),
        ("houses.csv --target price --id idd", "'idd' (did you mean 'id'?) is no column of houses"),
        ("houses.csv --target price --weights are", "'are' (did you mean 'area'?) is no column"),
        ("houses.csv data.h5 --target price", "data.h5 is no CSV or Parquet, but houses.csv is"),
        ("houses.csv plain.csv --target price", "must have the same columns, but houses.csv has"),
        ("data.h5 --target price", "--target is for tables, CSV or Parquet, but DATA is HDF5"),
        ("houses.csv --y price", "--y names a dataset of HDF5, and tables have none"),
        ("houses.csv --target price --delimiter ;", "no column 'price'"),
        ("houses.xlsx --target price", "export it as CSV"),
        ("folder --target price", "folder is a folder"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_and_leaves_nothing(houses, words, message):
    (houses / "folder").mkdir()
    (houses / "houses.xlsx").write_bytes(b"PK\3\4")
    fit = ("fit", *words.split(), "--out", "model.h5", "--quiet")
    assert message in unchanged_by(houses, *fit, status=(1, 2))


LARGE = 200_000


def test_a_stopped_fit_to_a_table_leaves_nothing_and_goes_on_from_its_checkpoint(folder):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((LARGE, 4)).astype("f4")
    columns = {f"x{j}": X[:, j] for j in range(4)} | {"town": rng.choice(["a", "b"], LARGE)}
    pd.DataFrame(columns | {"y": np.sin(X[:, 0])}).to_parquet("t.parquet")
    code = "from streamkern.cli import main; main()"
    options = "--out model.h5 --components 512 --kernel gaussian --target y --checkpoint saved"
    words = [sys.executable, "-c", code, "fit", "t.parquet", *options.split(), "--quiet", "--json"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    saved = folder / "saved"
    wait_until(lambda: process.poll() is not None or list(saved.glob("*.h5")), "saved sums")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.count("\n")) == (130, 1)
    assert "interrupted" in errors
    assert inside(folder) == ["data.h5", "saved", "t.parquet"]
    again = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(again.stdout)["resumed_shards"] > 0
    assert inside(folder) == ["data.h5", "model.h5", "t.parquet"]
