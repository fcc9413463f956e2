"""Maps that are no Fourier maps, from the rows of a file to predictions."""

from __future__ import annotations

import commandline
import h5py
import numpy as np
import pytest

import streamkern
from streamkern import RandomFeatureRidge
from streamkern.errors import ParameterError
from streamkern.features import Chosen
from streamkern.kernels import Gaussian, Laplacian, Polynomial
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.plan import plan_for
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


def ridge_on(Phi, y, alpha, *, intercept=True):
    """Predictions of the rows of features by ridge regression on them."""
    mean, centre = (Phi.mean(axis=0), y.mean()) if intercept else (np.zeros(Phi.shape[1]), 0.0)
    about = Phi - mean
    w = np.linalg.solve(about.T @ about + alpha * np.eye(Phi.shape[1]), about.T @ (y - centre))
    return about @ w + centre


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    X, y = rows(20_000)
    path = tmp_path_factory.mktemp("data") / "train.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(1000, P))
        file.create_dataset("y", data=y, chunks=(1000,))
    return path


@every_map
@pytest.mark.parametrize(("precision", "intercept"), [("double", True), ("single", False)])
def test_a_fit_is_ridge_on_the_features_of_the_map(name, intercept, precision):
    X, y = rows()
    alpha = 0.01 if precision == "double" else 1.0
    fitted = model(name, alpha=alpha, fit_intercept=intercept, precision=precision).fit(X, y)
    exact = ridge_on(fitted.transform(X), y, alpha, intercept=intercept)
    assert close(fitted.predict(X), exact, 1e-7 if precision == "double" else 2e-3)
    assert fitted.report_["n_components"] <= D


@every_nystroem
def test_in_single_precision_whitened_sums_keep_the_small_eigenvalues(name):
    X, y = rows(4000)
    made = {}
    for precision in ("single", "double"):
        fitted = model(name, precision=precision, alpha=1e-5 * len(X), n_components=256).fit(X, y)
        made[precision] = fitted.predict(X)
    assert np.std(made["single"] - made["double"]) < 0.01 * np.std(made["double"])


# Files.


@every_map
def test_moments_that_were_saved_are_solved_to_the_fit(name, tmp_path):
    X, y = rows()
    model(name).moments(X, y).save(tmp_path / "moments.h5")
    moments = streamkern.load_moments(tmp_path / "moments.h5")
    for options in ({}, {"alpha": "cv"}):
        solved, fitted = model(name, **options).solve(moments), model(name, **options).fit(X, y)
        assert close(solved.predict(X), fitted.predict(X))
        assert solved.alpha_ == pytest.approx(fitted.alpha_)


@pytest.mark.parametrize(
    ("name", "precision"), [*((name, "double") for name in MAPS), ("nystroem", "single")]
)
def test_forgetting_what_was_merged_is_never_having_read_it(name, precision):
    X, y = rows()
    options = {"precision": precision, "alpha": 1.0}
    relative = 1e-7 if precision == "double" else 1e-3

    def solved(moments):
        return model(name, **options).solve(moments).predict(X)

    first = model(name, **options).moments(X[:500], y[:500])
    merged = first.merge(model(name, **options).moments(X[500:], y[500:], like=first))
    whole = model(name, **options).fit(X, y, like=first)
    assert whole.feature_map_.equals(model(name).fit(X, y, like=whole).feature_map_)
    assert close(solved(merged), whole.predict(X), relative)
    assert close(solved(merged.forget(X[500:], y[500:])), solved(first), relative)


# Fewer features.


@pytest.mark.parametrize("name", ["nystroem", "binning"])
def test_the_number_of_features_is_chosen_among_the_leading_ones(name):
    X, y = rows()
    fitted = model(name, n_components="auto", alpha="cv").fit(X, y)
    tried = fitted.report_["components_curve"]["n_components"]
    assert len(tried) > 1
    assert len(fitted.coef_) in tried
    assert fitted.evaluate(X, y)["r2"] > 0.85


@every_nystroem
def test_fewer_features_are_the_fit_of_the_first_landmarks(name):
    X, y = rows()
    whole = model(name).moments(X, y)
    few = model(name, n_components=10).solve(whole)
    Phi = whole.feature_map.solved()[0].transform(X)[:, :10]
    assert close(few.predict(X), ridge_on(Phi, y, 0.01), 1e-6)


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


@pytest.mark.parametrize("name", ["nystroem", "binning", "sketch"])
def test_the_command_line_makes_and_uses_such_models(name, data, tmp_path):
    path, made = tmp_path / "model.h5", tmp_path / "made.h5"
    fit = ["fit", data, "--out", path, "--map", name, "--kernel", MAPS[name].name]
    assert commandline.report_of(*fit, "--components", "64")["n_components"] <= 64
    commandline.streamkern("predict", path, data, "--out", made, "--std", "--quiet")
    with h5py.File(made) as file, h5py.File(data) as given:
        error = file["y_pred"][:] - given["y"][:]
        assert np.sqrt(np.mean(error**2)) < 0.6 * np.std(given["y"][:])
        assert (file["y_std"][:] > 0).all()
