"""The Adult census as a raw table: one-hot inputs are those that were published, and predict."""

import gzip
import json

import h5py
import numpy as np
from commandline import streamkern
from real import load, needs_data

# Columns of the table, and how many of the published binary inputs each became; numbers are bins.
COLUMNS = {
    "age": 5, "workclass": 8, "fnlwgt": 5, "education": 16, "education-num": 5,
    "marital-status": 7, "occupation": 14, "relationship": 6, "race": 5, "sex": 2,
    "capital-gain": 2, "capital-loss": 2, "hours-per-week": 5, "native-country": 41,
}  # fmt: skip
NUMBERS = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}


def write_raw(path, X, y):
    """Write the rows as the census does: spaces after commas, and ? where a cell is missing."""
    ends = np.cumsum(list(COLUMNS.values()))
    cells = []
    for (name, width), end in zip(COLUMNS.items(), ends, strict=True):
        part = X[:, end - width : end]
        said = part.argmax(axis=1).astype(str)
        if name not in NUMBERS:
            said = np.char.add(f"{name[:3]}-", np.char.zfill(said, 2))
        cells.append(np.where(part.any(axis=1), said, "?"))
    cells.append((y > 0).astype(int).astype(str))
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(",".join([*COLUMNS, "income"]) + "\n")
        file.writelines(", ".join(row) + "\n" for row in zip(*cells, strict=True))


@needs_data
def test_the_raw_table_is_predicted_after_three_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = load("adult_a9a")
    write_raw("train.csv.gz", data["X"], data["y"])
    write_raw("test.csv.gz", data["X_test"], data["y_test"])
    for command in (
        "convert train.csv.gz train.h5 --target income",
        "fit train.h5 --out model.h5 --components 256 --alpha 1 --quiet",
        "predict model.h5 test.csv.gz --out predictions.csv --quiet",
    ):
        streamkern(*command.split())
    predicted = np.loadtxt("predictions.csv", skiprows=1) > 0.5
    assert np.mean(predicted == (data["y_test"] > 0)) > 0.835

    with h5py.File("train.h5") as file:
        names, X = json.loads(file.attrs["feature_names"]), file["X"][:]
    ends = np.cumsum(list(COLUMNS.values()))
    for (name, width), end in zip(COLUMNS.items(), ends, strict=True):
        if name in NUMBERS:
            continue
        published = data["X"][:, end - width : end]
        mine = X[:, [column.startswith(f"{name}=") for column in names]]
        np.testing.assert_array_equal(mine, published)
        missing = f"{name} is missing"
        assert (missing in names) == (name in {"workclass", "occupation", "native-country"})
        if missing in names:
            np.testing.assert_array_equal(X[:, names.index(missing)], ~published.any(axis=1))
