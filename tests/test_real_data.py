"""Known figures on real data, through the command line; skipped where the data is absent."""

import h5py
import numpy as np
import pytest
from commandline import report_of as streamkern
from commandline import write
from real import DATA, load, needs_data

pytestmark = needs_data


def split(name, folder):
    """Write the published split as two files; return them with sd(y) of the test rows."""
    arrays = load(name)
    test = arrays["test_mask"][:, 0].astype(bool)
    for part, rows in (("train", ~test), ("test", test)):
        write(folder / f"{part}.h5", arrays["X"][rows], arrays["y"][rows])
    return folder / "train.h5", folder / "test.h5", float(arrays["y"][test].std())


@pytest.mark.parametrize("source", ["data.npz", "BostonHousing.csv"])
def test_least_squares_on_boston_has_the_known_training_error(tmp_path, source):
    target = ["--target", "medv"] if source.endswith(".csv") else []
    streamkern("convert", DATA / "boston" / source, tmp_path / "boston.h5", *target)
    model = tmp_path / "model.h5"
    arguments = ("--kernel", "linear", "--alpha", 0, "--out", model)
    fitted = streamkern("fit", tmp_path / "boston.h5", *arguments)
    evaluated = streamkern("evaluate", model, tmp_path / "boston.h5")
    assert evaluated["rows"] == 506
    assert evaluated["rmse"] ** 2 == pytest.approx(21.89483, abs=5e-6)
    assert fitted["train_rmse"] == pytest.approx(evaluated["rmse"], rel=1e-6)


# Length scale and alpha were chosen on a validation part of the training rows.
FIGURES = {
    "uci_kin40k": (2.0, 2e-4, 0.18),
    "uci_protein": (0.78, 0.1, 0.64),
    "uci_elevators": (5.0, 0.01, 0.39),
    "uci_pol": (1.47, 1.0, 0.33),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FIGURES))
def test_the_error_on_a_published_split_is_as_small_as_it_should_be(tmp_path, name):
    length_scale, alpha, largest = FIGURES[name]
    train, test, deviation = split(name, tmp_path)
    options = ("--components", 4096, "--length-scale", length_scale, "--alpha", alpha)
    streamkern("fit", train, "--out", tmp_path / "model.h5", *options)
    evaluated = streamkern("evaluate", tmp_path / "model.h5", test)
    assert evaluated["rmse"] / deviation <= largest


@pytest.mark.parametrize("name", ["uci_elevators", "uci_pol", "uci_protein", "california"])
def test_intervals_of_90_per_cent_hold_85_to_95_per_cent_of_the_test_rows(tmp_path, name):
    arrays, rng = load(name), np.random.default_rng(0)
    X, y = arrays["X"], arrays["y"].reshape(len(arrays["X"]), -1)[:, 0]
    chosen = rng.permutation(len(X))[:6000]
    for part, rows in (("train", chosen[1500:]), ("test", chosen[:1500])):
        write(tmp_path / f"{part}.h5", X[rows], y[rows])
    model, out = tmp_path / "model.h5", tmp_path / "predicted.h5"
    streamkern("fit", tmp_path / "train.h5", "--out", model, "--components", 512)
    streamkern("predict", model, tmp_path / "test.h5", "--out", out, "--std")
    with h5py.File(out) as file:
        apart = np.abs(y[chosen[:1500]] - file["y_pred"][:]) / file["y_std"][:]
    # 90% of a normal distribution lie within 1.645 standard deviations.
    assert 0.85 <= (apart <= 1.645).mean() <= 0.95


def test_flights_with_missing_values_are_fitted_without_them(tmp_path):
    arrays = load("nycflights13")
    known_late = ["dep_time", "arr_time", "dep_delay", "air_time"]
    kept = [i for i, name in enumerate(arrays["feature_names"]) if name not in known_late]
    X, y = arrays["X"][:, kept], arrays["y"]
    missing = int((np.isnan(X).any(axis=1) | np.isnan(y)).sum())
    write(tmp_path / "flights.h5", X, y)
    fitted = streamkern(
        "fit", tmp_path / "flights.h5", "--out", tmp_path / "model.h5",
        "--components", 256, "--on-bad-rows", "skip",
    )  # fmt: skip
    assert missing > 0
    assert fitted["skipped_rows"] == missing
    assert fitted["rows"] == len(y) - missing
    assert fitted["train_rmse"] < y[~np.isnan(y)].std()


def test_random_features_come_within_two_per_cent_of_exact_ridge_on_concrete(tmp_path):
    train, *_ = split("uci_concrete", tmp_path)
    options = ("--length-scale", 2, "--alpha", 0.01, "--components", "256,4096")
    options += ("--maps", "orthogonal", "--seeds", 1)
    found = streamkern("compare", train, "--out", tmp_path / "found", *options)
    exact, *_, largest = found["trials"]
    assert (exact["method"], largest["n_components"]) == ("exact", 4096)
    assert largest["test_rmse"] <= 1.02 * exact["test_rmse"]


def test_a_column_that_is_constant_up_to_rounding_is_left_out(tmp_path):
    arrays = load("uci_keggdirected")
    masks = arrays["test_mask"].astype(bool)
    spans = [np.ptp(arrays["X"][~mask], axis=0) for mask in masks.T]
    (split_index,) = [i for i, span in enumerate(spans) if (span == 0).any()][:1]
    rows = ~masks[:, split_index]
    for name, part in (("train", rows), ("test", ~rows)):
        write(tmp_path / f"{name}.h5", arrays["X"][part], arrays["y"][part])
    model = tmp_path / "model.h5"
    fitted = streamkern("fit", tmp_path / "train.h5", "--kernel", "linear", "--out", model)
    assert fitted["dropped_columns"] == np.flatnonzero(spans[split_index] == 0).tolist()
    evaluated = streamkern("evaluate", model, tmp_path / "test.h5")
    assert evaluated["rmse"] / arrays["y"][~rows].std() < 0.3
