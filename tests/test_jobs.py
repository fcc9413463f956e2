"""The jobs run as their first lines say, on the cluster file of the repository."""

import json
import re
from itertools import product
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from commandline import JOBS, job

import streamkern

REPOSITORY = Path(__file__).parents[1]
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
    said = job(tmp_path, "train.py", *CLUSTER, "train-*.h5", "--components", 64)
    assert "dashboard: " in said
    assert "600 rows in" in said
    assert "model.h5 written" in said
    model = streamkern.load(tmp_path / "model.h5")
    assert (model.report_["rows"], model.report_["n_components"]) == (600, 64)
    here = streamkern.RandomFeatureRidge(n_components=64)
    here.fit(streamkern.open_hdf5(str(tmp_path / "train-*.h5")))
    assert model.report_["alpha_curve"] == here.report_["alpha_curve"]
    assert model.alpha_ == here.alpha_
    assert np.array_equal(model.coef_, here.coef_)


def test_rows_are_predicted(tmp_path, external_scheduler_file):
    X, place = write(tmp_path / "new.h5"), ("--scheduler-file", external_scheduler_file)
    model = streamkern.RandomFeatureRidge(n_components=32).fit(X, np.sin(X[:, 0]))
    model.save(tmp_path / "model.h5")
    said = job(tmp_path, "predict.py", *place, "model.h5", "new.h5")
    assert said == "300 predictions in predictions.h5\n"
    with h5py.File(tmp_path / "predictions.h5") as file:
        assert np.abs(file["y_pred"][:] - model.predict(X)).max() < 1e-5


@pytest.mark.slow
def test_random_features_are_compared_with_the_exact_model(tmp_path):
    write(tmp_path / "train.h5")
    options = ("--rows", 200, "--seeds", 2)
    said = job(tmp_path, "compare_exact.py", *CLUSTER, "train.h5", *options)
    lines = [line.split() for line in said.splitlines()]
    assert lines[0][:2] == ["model", "D"]
    models = [line[0] for line in lines[1:-1]]
    assert models == ["exact", "linear", *["orthogonal"] * 6, *["iid"] * 6]
    sizes = ["64", "128", "256", "512", "1024", "2048"]
    assert [line[1] for line in lines[3:-1]] == sizes * 2
    assert lines[1][2] == "1.000"
    for largest in (lines[8], lines[14]):
        assert abs(float(largest[3]) - 1) < 0.1
        low, test_rmse, high = (float(largest[i]) for i in (4, 2, 6))
        assert low <= test_rmse <= high
    assert said.splitlines()[-1].startswith("exact: alpha ")


def test_ridge_cv_is_compared_with_scikit_learn_and_bounded(tmp_path):
    options = ("--bytes", 4e5, "--share", 2000, "--features", 8, "--slice-rows", 900)
    said = job(tmp_path, "ridge_cv.py", *options)
    for name in ("file", "rows", "alpha", "seconds", "peak", "projected", "slice"):
        assert re.search(rf"^{name} +\S", said, re.MULTILINE)
    assert float(re.search(r"difference +(\S+)", said)[1]) < 1e-9


def test_many_targets_are_compared_in_processes_of_their_own(tmp_path):
    sizes = ("--rows", 300, "--components", 16, "--targets", 20, "--repeats", 1)
    title, *rows = job(tmp_path, "many_targets.py", *sizes, "--alphas", 3).splitlines()
    assert title.split() == ["model", "penalty", "clock", "processor", "peak", "R2", "same"]
    assert [row.split()[0] for row in rows[:5]] == ["streamkern"] * 3 + ["scikit-learn"] * 2
    assert all(row.endswith("100.0%") for row in rows)


NAMES = sorted(path.name for path in JOBS.glob("*.py"))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "slow_files.py"])  # needs FUSE
def test_every_job_explains_itself(tmp_path, name):
    assert "usage: " in job(tmp_path, name, "--help")


def test_tune_and_fit_are_compared_on_real_sets(tmp_path):
    X, y = rows()
    write_set(tmp_path, X=X, y=y)
    title, row = job(tmp_path, "tune_sets.py", "some", "--components", 64).splitlines()
    assert title.split() == ["set", "seed", "rows", "by", "folds", "held", "out", "seconds"]
    name, seed, n_rows, *errors = row.split()[:7]
    assert (name, seed) == ("some", "0")
    assert 300 < int(n_rows) < 400
    assert all(0 < float(error) < 0.5 for error in errors)


def test_models_of_tables_are_compared_in_processes_of_their_own_and_a_run_goes_on(tmp_path):
    X, y = rows()
    write_set(tmp_path, X=X, y=y)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table = table.assign(word=np.where(X[:, 1] > 0, "up", None), y=2.0 * X[:, 0])
    table.to_csv(tmp_path / "rows.csv", index=False)
    options = ("some", "rows.csv", "--contenders", "fit,boosting", "--write", "all.jsonl")
    said = job(tmp_path, "tables.py", *options)
    found = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    fitted = [(each["table"], each["model"]) for each in found]
    assert fitted == list(product(["some", "rows"], ["fit", "boosting"]))
    assert all(0 < each["error"] < 0.6 and each["peak_bytes"] > 50e6 for each in found)
    shown = said[said.index("| table |") :]
    assert shown.splitlines()[-1] == "| best | 2 | 0 |"
    assert job(tmp_path, "tables.py", *options) == shown  # nothing is measured twice
    other = job(tmp_path, "tables.py", "rows.csv", *options[2:], "--split", 1)
    assert other[other.index("| rows") :].splitlines()[0] not in shown


@pytest.mark.slow
def test_rows_in_a_store_are_fitted_and_predicted_beside_those_in_a_file(tmp_path):
    options = ("--rows", 5000, "--inputs", 4, "--components", 32, "--repeats", 1)
    said = job(tmp_path, "object_store.py", *options, "--seconds", 0.01)
    for step in ("fit", "predict"):
        assert re.search(rf"\n{step}: [\d.]+ s from a file, [\d.]+ s from the store", said)
    assert "the proxy computed" in said


def test_contenders_are_compared_on_a_set(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    write_set(tmp_path, X=X, y=np.sin(2 * X[:, 0]) + 0.1 * X[:, 1])
    contenders = "orthogonal/gaussian,orthogonal/gaussian/learn:1,nystroem/matern32,linear,boosting"
    options = ("--contenders", contenders, "--components", 64)
    said = job(tmp_path, "accuracy.py", "some", *options)
    found = json.loads((tmp_path / "accuracy" / "accuracy.json").read_text())
    errors = {one["contender"]: one["error"] for one in found}
    assert errors["orthogonal/gaussian/learn:1"] < errors["orthogonal/gaussian"] < errors["linear"]
    assert max(errors.values()) < 1.1
    assert all(one["kernel_error"] < 0.2 for one in found if "/" in one["contender"])
    assert said.count("some  ") == 5
    assert (tmp_path / "accuracy" / "accuracy.png").stat().st_size > 10_000


def test_boosting_is_compared_with_one_model_of_as_many_features(tmp_path):
    rng = np.random.default_rng(0)
    X, X_test = rng.uniform(0, 4, (2, 500, 2))
    y, y_test = (rows.astype(int).sum(axis=1) % 2 for rows in (X, X_test))
    write_set(tmp_path, X=X, y=y, X_test=X_test, y_test=y_test)
    options = ("--rounds", 3, "--components", 16, "--length-scale", 0.5, "--alpha", "gcv")
    said = job(tmp_path, "boosting.py", "some", *options, "--json", "found.json")
    assert "one model of 48 features" in said
    found = {one["model"]: one for one in json.loads((tmp_path / "found.json").read_text())}
    assert {"gentle", "real", "discrete"} < set(found)
    for name in ("gentle", "real", "discrete"):
        errors = [each["test_error"] for each in found[name]["rounds"]]
        assert len(errors) == 3
        assert f"{errors[-1]:9.4f}\n" in said


def test_maps_are_compared_by_their_kernels_and_on_a_field(tmp_path):
    write_set(tmp_path, X=np.random.default_rng(0).standard_normal((600, 3)))
    header, found = job(tmp_path, "maps.py", "errors", "some", "--components", 64).splitlines()[-2:]
    assert header.split() == ["D", "iid", "orthogonal", "sorf", "qmc"]
    like = [float(each) for each in re.findall(r"\( *([\d.]+)x\)", found)]
    assert like[0] == 1.0 < like[1] < like[3]
    options = ("--rows", 3000, "--components", 200, "--length-scale", 0.1)
    said = job(tmp_path, "maps.py", "field", *options)
    of_names = re.findall(r"(\w+|nearest 30): errors ([\d.]+) and ([\d.]+)", said)
    errors = [float(error) for _, error, _ in of_names]
    *_, random, _, _, grid, finer, by_folds, _, chosen, _, nearest = errors
    assert len(of_names) == 20
    assert said.count("95% intervals hold") == 6
    assert max(by_folds, chosen) < random
    assert finer <= grid < random < 0.5
    assert abs(finer - nearest) < 0.1 * nearest


def test_grids_are_compared_with_the_exact_process(tmp_path):
    said = job(tmp_path, "exact_fields.py", "--rows", 300, "--most-components", 256)
    rows = [line.split(" | ") for line in said.splitlines()[2:]]
    assert [row[0] for row in rows] == [
        "| Gaussian", "| Matern 1/2", "| Matern 3/2", "| Matern 5/2", "| rational quadratic"
    ]  # fmt: skip
    means, deviations = ([float(row[i]) for row in rows] for i in (3, 4))
    assert means[0] < 1e-9 > deviations[0]
    assert means[0] < means[3] < means[2] < means[1] < 1.0


def test_iterations_are_fewer_with_a_preconditioner(tmp_path):
    options = ("--rows", 1e5, "--modes", 70, "--most", 150)
    said = job(tmp_path, "field_iterations.py", *options).splitlines()[2:]
    taken = [line.split(" | ")[5] for line in said]
    assert taken[0::2] == ["more than 150"] * 2
    assert 0 < int(taken[1]) < int(taken[3]) < 150


def test_solvers_agree(tmp_path):
    X = np.random.default_rng(0).standard_normal((1200, 3))
    noise = 0.1 * np.random.default_rng(1).standard_normal(1200)
    write_set(tmp_path, X=X, y=np.sin(X @ [2.0, 1.0, 0.5]) + noise)
    options = ("--rows", 600, "--components", 256, "--maps", "qmc,nystroem,grid")
    said = job(tmp_path, "solvers.py", "some", *options).splitlines()[2:]
    for line in said:
        _, _, same, predictions, errors, *_ = line.strip("| ").split(" | ")
        assert same == "yes"
        assert float(predictions) < 1e-5
        assert float(errors) < 1e-4
    assert len(said) == 3


def test_coordinates_are_compared(tmp_path):
    said = job(tmp_path, "coordinates.py", "--rows", 2000, "--components", 128).splitlines()
    assert [line.split(":")[0].strip() for line in said] == [
        "degrees", "three coordinates", "as they are", "turned by hand", "along the inputs",
        "times", "place in the year"
    ]  # fmt: skip
    chosen, by_hand, along = (float(line.split()[-1]) for line in said[2:5])
    assert by_hand == pytest.approx(chosen, rel=0.1)
    assert chosen < along
    times, seasons = (float(re.search(r"0.7 years ([\d.]+)", line)[1]) for line in said[5:])
    assert seasons < 0.1 < times


def test_a_trend_is_compared_with_universal_kriging(tmp_path):
    said = job(tmp_path, "trend.py", "--rows", 1000, "--components", 512).splitlines()
    errors = [float(line.split(" | ")[1]) for line in said[2:]]
    assert errors[0] == pytest.approx(errors[3], rel=0.05)
    assert errors[0] < errors[1]


def test_calibrations_are_compared(tmp_path):
    X, y = rows(600, noise=0.5)
    write_set(tmp_path, X=X, y=y)
    said = job(tmp_path, "calibrations.py", "some", "--components", 32).splitlines()
    assert said[0].split() == ["table", "spline", "sigmoid", "isotonic"]
    assert all(0 < float(each) < 1 for line in said[1:3] for each in line.split()[-3:])
    assert said[-2].split()[-2] == "1.0000"


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--metric", "learn:1"), ("--gradients", "--shards", 80)])
def test_chaos_ends_in_the_same_bits(tmp_path, more):
    options = ("--shards", 20, "--components", 128, "--life", 3, "--deaths", 1)
    said = job(tmp_path, "chaos.py", *options, *more, dies=True)
    # Without a checkpoint workers may die faster than sums are made.
    assert said.count("the same bits: True") >= (2 if "--gradients" in more else 3)
    assert "False" not in said


@pytest.mark.slow
def test_damaged_files_are_read_or_refused(tmp_path):
    said = job(tmp_path, "fuzz.py", "--files", 250, "--seed", 1)
    assert said.splitlines()[-1].startswith("250 files in ")
    assert said.splitlines()[-1].endswith(", 0 neither read nor refused")


@pytest.mark.slow
def test_a_fit_that_is_stopped_goes_on(tmp_path):
    options = ("--times", 3, "--shards", 20, "--components", 64, "--kinds", "SIGTERM")
    said = job(tmp_path, "stops.py", *options, "--until", 0.5)
    # Now and then it ends before, but not always.
    assert re.search(r"SIGTERM: 3 times \([012] after its end\); the same bits 3 times", said)
    assert said.rstrip().endswith("0 with something wrong")


def test_lazy_rows_go_through_dask_ml(tmp_path):
    write(tmp_path / "train.h5", n=1500)
    options = ("--components", 64, "--block-rows", 400, "--search-rows", 300)
    said = job(tmp_path, "dask_ml_rows.py", "train.h5", *options)
    alpha, n_rows, rmse = re.fullmatch(r"alpha (\S+), (\S+) rows, test RMSE (\S+)\n", said).groups()
    assert float(alpha) < 10
    assert n_rows == "1,200"
    assert 0.09 < float(rmse) < 0.12
