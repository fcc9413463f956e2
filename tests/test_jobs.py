"""The programs of jobs/ and benchmarks/ run as their first lines say."""

import json
import re
from itertools import product

import h5py
import numpy as np
import pandas as pd
import pytest
from commandline import REPOSITORY, program

import streamkern

CLUSTER = ("--cluster", REPOSITORY / "cluster.yaml")

pytestmark = pytest.mark.cluster


def rows(n=400, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, np.sin(X[:, 0]) + noise * rng.standard_normal(n)


def write(path, n=300, seed=0):
    with h5py.File(path, "w") as file:
        file["X"], file["y"] = X, _ = rows(n, seed)
    return X


def write_set(folder, **arrays):
    (folder / "some").mkdir()
    np.savez(folder / "some" / "data.npz", **arrays)


def test_a_model_is_trained(tmp_path):
    for i in (1, 2):
        write(tmp_path / f"train-{i}.h5", seed=i)
    said = program(tmp_path, "jobs/train.py", *CLUSTER, "train-*.h5", "--components", 64)
    assert "dashboard: " in said
    assert "600 rows in" in said
    assert "model.h5 written" in said
    model = streamkern.load(tmp_path / "model.h5")
    here = streamkern.RandomFeatureRidge(n_components=64)
    here.fit(streamkern.open_hdf5(str(tmp_path / "train-*.h5")))
    assert model.alpha_ == here.alpha_
    assert np.array_equal(model.coef_, here.coef_)


def test_rows_are_predicted(tmp_path, external_scheduler_file):
    X, place = write(tmp_path / "new.h5"), ("--scheduler-file", external_scheduler_file)
    model = streamkern.RandomFeatureRidge(n_components=32).fit(X, np.sin(X[:, 0]))
    model.save(tmp_path / "model.h5")
    said = program(tmp_path, "jobs/predict.py", *place, "model.h5", "new.h5")
    assert said == "300 predictions in predictions.h5\n"
    with h5py.File(tmp_path / "predictions.h5") as file:
        assert np.abs(file["y_pred"][:] - model.predict(X)).max() < 1e-5


def test_lazy_rows_go_through_dask_ml(tmp_path):
    write(tmp_path / "train.h5", n=1500)
    options = ("--components", 64, "--block-rows", 400, "--search-rows", 300)
    said = program(tmp_path, "jobs/dask_ml_rows.py", "train.h5", *options)
    alpha, n_rows, rmse = re.fullmatch(r"alpha (\S+), (\S+) rows, test RMSE (\S+)\n", said).groups()
    assert float(alpha) < 10
    assert n_rows == "1,200"
    assert 0.09 < float(rmse) < 0.12


PROGRAMS = sorted(REPOSITORY.glob("benchmarks/*.py"))


def test_every_benchmark_is_in_the_table_that_says_which_page_has_its_figures():
    table = (REPOSITORY / "benchmarks" / "README.md").read_text()
    named = set(re.findall(r"python benchmarks/(\w+\.py)", table))
    assert named == {path.name for path in PROGRAMS} - {"real_sets.py"}


def test_models_of_tables_are_compared_in_processes_of_their_own_and_a_run_goes_on(tmp_path):
    X, y = rows()
    write_set(tmp_path, X=X, y=y)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table = table.assign(word=np.where(X[:, 1] > 0, "up", None), y=2.0 * X[:, 0])
    table.to_csv(tmp_path / "rows.csv", index=False)
    options = ("some", "rows.csv", "--contenders", "fit,boosting", "--write", "all.jsonl")
    said = program(tmp_path, "benchmarks/tables.py", *options)
    found = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    fitted = [(each["table"], each["model"]) for each in found]
    assert fitted == list(product(["some", "rows"], ["fit", "boosting"]))
    assert all(0 < each["error"] < 0.6 and each["peak_bytes"] > 50e6 for each in found)
    shown = said[said.index("| table |") :]
    assert shown.splitlines()[-1] == "| best | 2 | 0 |"
    assert program(tmp_path, "benchmarks/tables.py", *options) == shown  # nothing is measured twice


@pytest.mark.slow
def test_one_regression_is_fitted_by_every_contender(tmp_path):
    size = ("--rows", 4000, "--components", "32,64", "--repeats", 1, "--workers", 2)
    names = "roofline,streamkern,dask,ridge,sgd"
    said = program(tmp_path, "benchmarks/regression.py", *size, "--contenders", names)
    table = [line.strip("| ").split(" | ") for line in said.splitlines() if line.startswith("| ")]
    table = [row for row in table[1:] if not row[0].startswith("of these")]
    assert [row[0].split(", ")[1] for row in table] == 2 * names.split(",")
    with h5py.File(tmp_path / "benchmark" / "4000x90.h5") as file:
        spread = file["y_test"][:].std()
    assert all(0 < float(row[-1]) < spread for row in table if "roofline" not in row[0])


def test_classes_are_calibrated_and_boosted(tmp_path):
    (X, y), (X_test, y_test) = rows(600, noise=0.5), rows(600, seed=1, noise=0.5)
    write_set(tmp_path, X=X, y=y > 0, X_test=X_test, y_test=y_test > 0)
    for more, models in (((), 2), (("--boost", 2), 4)):
        said = program(tmp_path, "benchmarks/classes.py", "some", "--components", 32, *more)
        accuracies = [float(each) for each in re.findall(r" accuracy (\S+)", said)]
        assert len(accuracies) == models
        assert min(accuracies) > 0.7


def test_solvers_agree(tmp_path):
    X = np.random.default_rng(0).standard_normal((1200, 3))
    noise = 0.1 * np.random.default_rng(1).standard_normal(1200)
    write_set(tmp_path, X=X, y=np.sin(X @ [2.0, 1.0, 0.5]) + noise)
    options = ("--rows", 600, "--components", 256, "--maps", "qmc,nystroem,grid")
    said = program(tmp_path, "benchmarks/solvers.py", "agree", "some", *options).splitlines()[2:]
    for line in said:
        _, _, same, predictions, errors, *_ = line.strip("| ").split(" | ")
        assert same == "yes"
        assert float(predictions) < 1e-5
        assert float(errors) < 1e-4
    assert len(said) == 3


def test_a_trend_is_compared_with_universal_kriging(tmp_path):
    options = ("--rows", 1000, "--components", 512)
    said = program(tmp_path, "benchmarks/fields.py", "trend", *options).splitlines()
    errors = [float(line.split(" | ")[1]) for line in said[2:]]
    assert errors[0] == pytest.approx(errors[3], rel=0.05)
    assert errors[0] < errors[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("fields.py seconds --rows 1e4 --components 512", "10,000"),
        ("fields.py errors --rows 3000 --components 200 --length-scale 0.1", "nearest 30: errors"),
        ("fields.py coordinates --rows 2000 --components 128", "place in the year: error"),
        ("maps.py errors some --components 64", "qmc"),
        ("solvers.py more some --components 500", "passes"),
        ("precisions.py some --components 64", "int16"),
        ("intervals.py some --splits 1", "some"),
        ("memory.py Parquet --rows 2000", "| Parquet | 1,280 | 2,000 |"),
        ("sparse_rows.py --rows 2000 --inputs 300 --components 64", "rows, GB"),
        ("targets.py --rows 300 --components 16 --targets 20 --repeats 1 --alphas 3", "100.0%"),
    ],
)
def test_a_benchmark_runs(tmp_path, arguments, words):
    X, y = rows(600)
    write_set(tmp_path, X=X, y=y)
    name, *options = arguments.split()
    assert words in program(tmp_path, f"benchmarks/{name}", *options)
