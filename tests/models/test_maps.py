"""Maps that are no Fourier maps, from the rows of a file to predictions."""

from __future__ import annotations

import json

import commandline
import dask
import h5py
import numpy as np
import pytest
from test_same_bits import Pickled, bits

import streamkern
from streamkern import RandomFeatureRidge
from streamkern.errors import ParameterError
from streamkern.features import Chosen, Nystroem
from streamkern.kernels import Gaussian, Laplacian, Linear, Polynomial
from streamkern.parameters.fit_options import plan_for
from streamkern.parameters.parameters import Parameters
from streamkern.sources import ArraySource
from streamkern.tune.fold_solution import nested_sizes

N, P, D = 700, 3, 32
MAPS = {
    "nystroem": Gaussian("median"),
    "binning": Laplacian("median"),
    "sketch": Polynomial(2, 1.0),
}
every_map = pytest.mark.parametrize("name", list(MAPS))
every_nystroem = pytest.mark.parametrize("name", [name for name in MAPS if "nystroem" in name])


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * [1.0, 5.0, 0.1] + [0.0, 20.0, -1.0]
    y = np.sin(X[:, 0]) + 0.2 * (X[:, 1] - 20) * (X[:, 2] + 1) + 0.1 * rng.standard_normal(n)
    return X, y


def model(name, **options) -> RandomFeatureRidge:
    given = {"n_components": D, "alpha": 0.01, "precision": "double", "n_folds": 3} | options
    return RandomFeatureRidge(MAPS[name], feature_map=name, **given)


def close(actual, expected, relative=1e-7):
    expected = np.asarray(expected)
    return np.abs(np.asarray(actual) - expected).max() <= relative * np.abs(expected).max()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    X, y = rows(20_000)
    path = tmp_path_factory.mktemp("data") / "train.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(1000, P))
        file.create_dataset("y", data=y, chunks=(1000,))
    return path


# What a fit solves.


@every_map
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_fit_is_ridge_on_the_features_of_the_map(name, intercept, precision):
    X, y = rows()
    alpha = 0.01 if precision == "double" else 1.0
    fitted = model(name, alpha=alpha, fit_intercept=intercept, precision=precision).fit(X, y)
    Phi = fitted.transform(X)
    mean, centre = (Phi.mean(axis=0), y.mean()) if intercept else (np.zeros(Phi.shape[1]), 0.0)
    G = (Phi - mean).T @ (Phi - mean)
    w = np.linalg.solve(G + alpha * np.eye(len(G)), (Phi - mean).T @ (y - centre))
    exact = Phi @ w + centre - mean @ w
    relative = 1e-7 if precision == "double" else 2e-3
    assert close(fitted.predict(X), exact, relative)
    assert fitted.report_["n_components"] == Phi.shape[1] <= D


@every_map
def test_predictions_are_good(name):
    X, y = rows(2000)
    fitted = model(name, precision="single", alpha="cv", n_components=128).fit(X[:1500], y[:1500])
    found = fitted.evaluate(X[1500:], y[1500:])
    assert found["r2"] > (0.7 if name == "sketch" else 0.85)  # a sine is no polynomial
    assert fitted.report_["cv_rmse"] == pytest.approx(found["rmse"], rel=0.25)


@every_nystroem
def test_in_single_precision_whitened_sums_keep_the_small_eigenvalues(name):
    X, y = rows(4000)
    made = {}
    for precision in ("single", "double"):
        fitted = model(name, precision=precision, alpha=1e-5 * len(X), n_components=256).fit(X, y)
        made[precision] = fitted.predict(X)
    assert np.std(made["single"] - made["double"]) < 0.01 * np.std(made["double"])


# The same bits everywhere.


@every_map
def test_wherever_it_runs_a_fit_gives_the_same_bits(name, data):
    source = streamkern.open_hdf5(data)
    found = set()
    for scheduler in ("synchronous", "threads", Pickled().get):
        with dask.config.set(scheduler=scheduler):
            fitted = model(name, precision="single", alpha="cv", fold_by="rows").fit(source)
        found.add(bits(fitted) + json.dumps(fitted.report_["alpha_curve"]).encode())
    assert len(found) == 1


@pytest.mark.cluster
def test_on_workers_a_fit_gives_the_same_bits(data):
    source = streamkern.open_hdf5(data)
    alone = [model(name, alpha="cv", fold_by="rows").fit(source) for name in MAPS]
    with streamkern.connect(n_workers=2):
        elsewhere = [model(name, alpha="cv", fold_by="rows").fit(source) for name in MAPS]
    for here, there in zip(alone, elsewhere, strict=True):
        assert bits(here) == bits(there)
        assert here.feature_map_.equals(there.feature_map_)


# Files.


@every_map
@pytest.mark.parametrize("kept", [True, False], ids=["whole", "compact"])
def test_a_model_that_was_saved_predicts_the_same_bits(name, kept, tmp_path):
    X, y = rows()
    fitted = model(name, precision="single").fit(X, y)
    fitted.save(tmp_path / "model.h5", compact=not kept)
    back = streamkern.load(tmp_path / "model.h5")
    assert back.feature_map_.equals(fitted.feature_map_)
    assert np.array_equal(back.predict(X), fitted.predict(X))
    if kept:
        found, expected = (m.predict(X, return_std=True)[1] for m in (back, fitted))
        assert np.array_equal(found, expected)


@every_map
def test_moments_that_were_saved_are_solved_to_the_fit(name, tmp_path):
    X, y = rows()
    model(name).moments(X, y).save(tmp_path / "moments.h5")
    moments = streamkern.load_moments(tmp_path / "moments.h5")
    for options in ({}, {"alpha": "cv"}):
        solved, fitted = model(name, **options).solve(moments), model(name, **options).fit(X, y)
        assert close(solved.predict(X), fitted.predict(X))
        assert solved.alpha_ == pytest.approx(fitted.alpha_)


@every_map
@pytest.mark.parametrize("precision", ["double", "single"])
def test_forgetting_what_was_merged_is_never_having_read_it(name, precision):
    X, y = rows()
    options = {"precision": precision, "alpha": 1.0}
    first = model(name, **options).moments(X[:500], y[:500])
    second = model(name, **options).moments(X[500:], y[500:], like=first)
    merged = first.merge(second)
    whole = model(name, **options).fit(X, y, like=first)
    relative = 1e-7 if precision == "double" else 1e-3
    assert close(model(name, **options).solve(merged).predict(X), whole.predict(X), relative)
    left = model(name, **options).solve(merged.forget(X[500:], y[500:]))
    assert close(left.predict(X), model(name, **options).solve(first).predict(X), relative)


@every_map
def test_a_fit_like_a_model_takes_its_map(name):
    X, y = rows()
    first = model(name).fit(X, y)
    again = model(name).fit(X, y, like=first)
    assert again.feature_map_.equals(first.feature_map_)
    assert close(again.predict(X), first.predict(X))


# Fewer features.


@pytest.mark.parametrize("name", ["nystroem", "binning"])
def test_the_number_of_features_is_chosen_among_the_leading_ones(name):
    X, y = rows()
    fitted = model(name, n_components="auto", alpha="cv").fit(X, y)
    tried = fitted.report_["components_curve"]["n_components"]
    assert len(tried) > 1
    assert len(fitted.coef_) in tried
    assert fitted.evaluate(X, y)["r2"] > 0.85


def test_a_sketch_has_no_smaller_ones_to_choose_from():
    with pytest.raises(ParameterError, match="map 'sketch' has no smaller ones in it"):
        model("sketch", n_components="auto", alpha="cv").fit(*rows())


@every_nystroem
def test_fewer_features_are_the_fit_of_the_first_landmarks(name):
    X, y = rows()
    whole = model(name).moments(X, y)
    few = model(name, n_components=10).solve(whole)
    Phi = whole.feature_map.solved()[0].transform(X)[:, :10]
    mean = Phi.mean(axis=0)
    G = (Phi - mean).T @ (Phi - mean)
    w = np.linalg.solve(G + 0.01 * np.eye(10), (Phi - mean).T @ (y - y.mean()))
    assert close(few.predict(X), (Phi - mean) @ w + y.mean(), 1e-6)


@every_nystroem
def test_landmarks_that_rows_do_not_make_are_not_missed(name):
    X, y = rows(40)
    X, y = np.repeat(X, 10, axis=0), np.repeat(y, 10)
    y = y + 0.01 * np.arange(len(y)) / len(y)
    options = {"n_components": 64, "alpha": 0.1}
    moments = model(name, **options).moments(X, y)
    assert moments.feature_map.n_components <= 40
    solved = model(name, **options).solve(moments)
    assert close(solved.predict(X), model(name, **options).fit(X, y).predict(X))
    with pytest.raises(ParameterError, match="but n_components is 100"):
        model(name, n_components=100).solve(moments)


@every_map
def test_a_sparse_model_predicts_from_the_features_it_kept(name, tmp_path):
    X, y = rows()
    fitted = model(name, sparse=6).fit(X, y)
    assert len(fitted.coef_) == 6
    assert fitted.evaluate(X, y)["r2"] > 0.3
    fitted.save(tmp_path / "sparse.h5")
    back = streamkern.load(tmp_path / "sparse.h5")
    assert np.array_equal(back.predict(X), fitted.predict(X))
    if "nystroem" not in name:
        assert isinstance(back.feature_map_.inner, Chosen)


def test_sizes_are_multiples_of_what_leading_parts_are():
    assert nested_sizes(1024, 8) == [64, 128, 256, 512, 1024]
    assert nested_sizes(1000, 8) == [120, 248, 496, 1000]
    assert nested_sizes(1000) == [124, 250, 500, 1000]
    assert nested_sizes(1000, 1) == nested_sizes(1000)
    assert nested_sizes(1000, 0) == [1000]


# Options.


@pytest.mark.parametrize(
    ("name", "kernel", "match"),
    [
        ("orthogonal", Polynomial(), "need a shift-invariant kernel, not Polynomial"),
        ("iid", Polynomial(), "take another map, such as 'nystroem'"),
        ("binning", Gaussian(), "random binning is for the Laplacian kernel"),
        ("sketch", Gaussian(), "a sketch is of the polynomial kernel"),
        ("identity", Polynomial(), "no kernel but the linear one"),
    ],
)
def test_a_kernel_and_a_map_that_do_not_go_together_are_refused(name, kernel, match):
    with pytest.raises(ParameterError, match=match):
        RandomFeatureRidge(kernel, feature_map=name).fit(*rows(50))


@every_map
def test_maps_without_phases_refuse_them(name):
    with pytest.raises(ParameterError, match="this map has no phases"):
        model(name, paired=False).fit(*rows(50))


def test_the_linear_kernel_has_landmarks_where_they_are_asked_for():
    X, y = rows()
    fitted = RandomFeatureRidge(Linear(), feature_map="nystroem", n_components=8, alpha=0.1)
    linear = RandomFeatureRidge(Linear(), alpha=0.1, precision="double").fit(X, y)
    fitted.set_params(precision="double").fit(X, y)
    assert isinstance(fitted.feature_map_.inner, Nystroem)
    assert len(fitted.coef_) == P
    assert close(fitted.predict(X), linear.predict(X), 1e-5)


@every_map
def test_the_plan_knows_what_a_map_takes(name):
    source = ArraySource(np.zeros((200_000, P)), np.zeros(200_000))
    options = Parameters.of(model(name, n_components=1024, alpha=0.1)).passes()
    plan = plan_for(source, options)
    fourier = Parameters(n_components=1024, alpha=0.1, precision="double").passes()
    base = plan_for(source, fourier)
    assert options.can_strip == (name == "binning")
    if "nystroem" in name:
        assert options.sample_rows(source) == 8 * 1024
        assert plan.worker_bytes - base.worker_bytes > 3 * 8 * 1024**2
        assert plan.client_bytes - base.client_bytes > 8 * 1024 * 8 * 1024
    else:
        assert options.sample_rows(source) == fourier.sample_rows(source) == 2048


def test_a_sample_for_landmarks_has_a_limit_but_rows_for_all_of_them():
    wide = ArraySource(np.zeros((10, 4000)), np.zeros(10))
    options = Parameters.of(model("nystroem", n_components=8192, alpha=0.1)).passes()
    assert options.sample_rows(wide) == 8192


@every_map
def test_the_command_line_makes_and_uses_such_models(name, data, tmp_path):
    kernel = MAPS[name].name
    path, made = tmp_path / "model.h5", tmp_path / "made.h5"
    fit = ["fit", data, "--out", path, "--map", name, "--kernel", kernel, "--components", "64"]
    assert commandline.report_of(*fit)["n_components"] <= 64
    commandline.streamkern("predict", path, data, "--out", made, "--std", "--quiet")
    with h5py.File(made) as file, h5py.File(data) as given:
        error = file["y_pred"][:] - given["y"][:]
        assert np.sqrt(np.mean(error**2)) < 0.6 * np.std(given["y"][:])
        assert (file["y_std"][:] > 0).all()
