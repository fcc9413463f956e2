"""Exposures and offsets: the objective that they stand for, and rows that have none."""

import json

import h5py
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import cross_val_score

import streamkern as sk
from streamkern import RandomFeatureRegressor
from streamkern.errors import DataError, ParameterError
from tests.commandline import refused, streamkern

N = 2000
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2))
ETA = np.sin(X[:, 0]) + 0.5 * X[:, 1]
EXPOSURE = RNG.uniform(0.2, 3.0, N)
POWERS = {"poisson": 1.0, "tweedie:1.5": 1.5, "gamma": 2.0}
TARGETS = {
    "poisson": RNG.poisson(EXPOSURE * np.exp(ETA)) * 1.0,
    "tweedie:1.5": EXPOSURE * np.where(RNG.random(N) < 0.3, 0.0, RNG.gamma(2.0, np.exp(ETA))),
    "gamma": EXPOSURE * RNG.gamma(2.0, np.exp(ETA)),
}


def model(loss, **how):
    return RandomFeatureRegressor(
        loss, **{"n_components": 64, "kernel": "gaussian", "precision": "double", **how}
    )


@pytest.mark.parametrize("loss", POWERS)
@pytest.mark.parametrize("kind", ["exposure", "offset"])
def test_the_objective_has_the_offset_in_it(loss, kind):
    y, p = TARGETS[loss], POWERS[loss]
    beside = {kind: EXPOSURE if kind == "exposure" else np.log(EXPOSURE)}
    mine = model(loss).fit(X, y, **beside)
    features = mine.transform(X)

    def gradient(coef, level):
        mean = EXPOSURE * np.exp(features @ coef + level)
        slope = mean ** (2 - p) - y * mean ** (1 - p)
        return np.append(features.T @ slope + mine.alpha_ * coef, slope.sum())

    begun = np.abs(gradient(0.0 * mine.coef_, 0.0)).max()
    assert np.abs(gradient(mine.coef_, mine.intercept_)).max() < 1e-3 * begun
    assert mine.predict(X) == pytest.approx(np.exp(features @ mine.coef_ + mine.intercept_))
    assert 0.2 < mine.score(X, y, **beside) <= 1


def test_the_dispersion_of_counts_is_1_whatever_the_unit_of_exposures():
    for unit in (1.0, 365.0, 1e-3):
        found = model("poisson").fit(X, TARGETS["poisson"], exposure=unit * EXPOSURE)
        assert found.report_["dispersion"] == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("loss", ["huber", "quantile:0.3"])
def test_an_offset_of_numbers_is_taken_from_them(loss):
    known = RNG.normal(size=N)
    y = ETA + known + 0.1 * RNG.normal(size=N)
    found = model(loss).fit(X, y, offset=known)
    plain = model(loss).fit(X, y - known)
    assert found.coef_ == pytest.approx(plain.coef_, rel=1e-6)
    assert found.evaluate(X, y, offset=known)["rmse"] < 0.5


def test_files_and_frames_name_the_column(tmp_path):
    y = TARGETS["poisson"]
    expected = model("poisson").fit(X, y, exposure=EXPOSURE).predict(X)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "years": EXPOSURE, "claims": y})
    found = model("poisson").fit(frame, "claims", exposure="years")
    assert found.predict(frame[["a", "b"]]) == pytest.approx(expected, rel=1e-4)
    frame.to_parquet(tmp_path / "claims.parquet")
    found = model("poisson").fit(tmp_path / "claims.parquet", "claims", exposure="years")
    assert found.predict(frame[["a", "b"]]) == pytest.approx(expected, rel=1e-4)
    whole = found.evaluate(tmp_path / "claims.parquet", "claims", exposure="years")
    assert whole["deviance"] == pytest.approx(found.report_["deviance"], rel=1e-6)
    with h5py.File(tmp_path / "claims.h5", "w") as file:
        file["X"], file["y"], file["years"] = X, y, EXPOSURE
    found = model("poisson").fit(tmp_path / "claims.h5", exposure="years")
    assert found.predict(X) == pytest.approx(expected, rel=1e-4)
    with pytest.raises(DataError, match="exposure is the name"):
        model("poisson").fit(tmp_path / "claims.h5", exposure=EXPOSURE)
    found.save(tmp_path / "model.h5")
    again = sk.load(tmp_path / "model.h5")
    assert again.evaluate(X, y, exposure=EXPOSURE) == found.evaluate(X, y, exposure=EXPOSURE)
    with pytest.raises(ParameterError, match="had an exposure, but those to evaluate have no"):
        again.evaluate(X, y)


def test_the_shell_takes_an_exposure(tmp_path):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "years": EXPOSURE})
    frame["claims"] = TARGETS["poisson"]
    frame.to_csv(tmp_path / "claims.csv", index=False)
    table, out = tmp_path / "claims.csv", tmp_path / "model.h5"
    how = ["--target", "claims", "--loss", "poisson", "--components", "64", "--exposure", "years"]
    streamkern("fit", table, "--out", out, *how)
    assert sk.load(out).n_features_in_ == 2
    found = json.loads(streamkern("evaluate", out, table, "--exposure", "years", "--json").stdout)
    assert 0 < found["d2"] < 1
    assert "had an exposure" in refused("evaluate", out, table, status=2)
    wrong = refused("fit", table, "--out", out, "--force", *how[:-1], "yaers")
    assert "'yaers' (did you mean 'years'?) is no column" in wrong


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.inf])
def test_what_is_no_exposure_names_its_row(wrong):
    with pytest.raises(DataError, match="row 7 has the exposure"):
        model("poisson").fit(
            X, TARGETS["poisson"], exposure=np.where(np.arange(N) == 7, wrong, 1.0)
        )
    with pytest.raises(DataError, match="row 7 has the offset inf"):
        model("huber").fit(X, ETA, offset=np.where(np.arange(N) == 7, np.inf, 1.0))


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:target 0")
def test_exposures_of_any_unit_are_right_or_refused():
    y = TARGETS["poisson"]
    usual = model("poisson").fit(X, y, exposure=EXPOSURE).predict(X)
    found = model("poisson").fit(X, y, exposure=1e10 * EXPOSURE).predict(X)
    assert found * 1e10 == pytest.approx(usual, rel=1e-6)
    few = np.where(np.arange(N) == y.argmax(), 1e-30, EXPOSURE)
    for exposure in (1e-30 * EXPOSURE, few):
        with pytest.raises(DataError, match="give them in other units"):
            model("poisson").fit(X, y, exposure=exposure)


def test_an_exposure_of_another_shape_is_called_by_its_name():
    with pytest.raises(DataError, match=r"values must have .* but exposure has shape \(2000, 2\)"):
        model("poisson").fit(X, TARGETS["poisson"], exposure=np.ones((N, 2)))


def test_what_is_missing_is_a_bad_row():
    exposure = np.where(np.arange(N) == 7, np.nan, EXPOSURE)
    with pytest.raises(DataError, match="NaN"):
        model("poisson").fit(X, TARGETS["poisson"], exposure=exposure)
    found = model("poisson", on_bad_rows="skip").fit(X, TARGETS["poisson"], exposure=exposure)
    assert found.report_["skipped_rows"] == 1


def test_a_missing_cell_of_a_file_is_a_bad_row(tmp_path):
    frame = pd.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "years": EXPOSURE, "claims": TARGETS["poisson"]}
    )
    frame.loc[7, "years"] = np.nan
    for name, write in {"c.csv": frame.to_csv, "c.parquet": frame.to_parquet}.items():
        write(tmp_path / name, index=False)
        found = model("poisson", on_bad_rows="skip")
        found.fit(tmp_path / name, "claims", exposure="years")
        assert found.report_["skipped_rows"] == 1


def test_exposures_are_routed_in_cross_validation():
    params = {"exposure": EXPOSURE}
    with sklearn.config_context(enable_metadata_routing=True):
        each = model("poisson", alpha=1.0).set_fit_request(exposure=True)
        each.set_score_request(exposure=True)
        found = cross_val_score(each, X, TARGETS["poisson"], params=params, cv=3)
    assert (found > 0.2).all()


def test_losses_without_exposures_refuse_them():
    for loss, kind in (("logistic", "exposure"), ("logistic", "offset"), ("huber", "exposure")):
        with pytest.raises(ParameterError, match="leave it out"):
            model(loss).fit(X, TARGETS["poisson"] > 0, **{kind: EXPOSURE})
    with pytest.raises(ParameterError, match="one of both"):
        model("poisson").fit(X, TARGETS["poisson"], exposure=EXPOSURE, offset=EXPOSURE)
