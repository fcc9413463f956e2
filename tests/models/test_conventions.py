"""Estimators as users of scikit-learn put them together: searches, pipelines, frames, weights."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from harvests import ridge, smooth_rows
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import streamkern
from streamkern import ExactKernelRidge, Gaussian, Matern, RandomFeatureRidge, RandomFourierFeatures
from streamkern.errors import DataError, ParameterError
from streamkern.estimators.conventions import checked_rows

NAMES = ["width", "depth", "age"]


X, Y = smooth_rows(120)


estimators = pytest.mark.parametrize(
    "estimator",
    [ridge(), ExactKernelRidge(), RandomFourierFeatures(n_components=8), streamkern.Identity()],
    ids=lambda estimator: type(estimator).__name__,
)


def test_kernels_parameters_are_parameters_of_the_estimator():
    parameters = ridge(Matern(2.0, nu=2.5)).get_params()
    assert (parameters["kernel__length_scale"], parameters["kernel__nu"]) == (2.0, 2.5)
    assert "kernel__nu" not in ridge(Matern(2.0)).get_params(deep=False)
    first, second = RandomFeatureRidge(), RandomFeatureRidge()
    assert first.set_params(kernel__length_scale=3.0, alpha=2.0) is first
    assert (first.kernel, first.alpha) == (Gaussian(3.0), 2.0)
    assert second.kernel == RandomFeatureRidge().kernel == "auto"
    model = ExactKernelRidge().set_params(kernel__nu=0.5, kernel=Matern(7.0))
    assert model.kernel == Matern(7.0, nu=0.5)
    named = RandomFeatureRidge("matern").set_params(kernel__nu=0.5)
    assert named.kernel == Matern(nu=0.5)
    with pytest.raises(ParameterError, match="has the parameters length_scale, not 'gamma'"):
        ridge().set_params(kernel__gamma=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'kern'"):
        ridge().set_params(kern__length_scale=1.0)
    for made in (RandomFeatureRidge, RandomFourierFeatures):
        words = rf"{made.__name__}.__init__\(\) got an unexpected keyword argument 'kern'"
        with pytest.raises(TypeError, match=words):
            made(kern=Matern())


def test_models_and_maps_are_steps_of_pipelines():
    scaled = StandardScaler().fit_transform(X)
    piped = make_pipeline(StandardScaler(), ridge(standardize=False)).fit(X, Y)
    alone = ridge(standardize=False).fit(scaled, Y)
    assert piped.predict(X) == pytest.approx(alone.predict(scaled), rel=1e-9)
    assert piped.score(X, Y) == pytest.approx(alone.score(scaled, Y), rel=1e-9)
    steps = StandardScaler(), RandomFourierFeatures(Gaussian(1.5), 48), Ridge(alpha=0.1)
    whole = ridge().fit(X, Y)
    assert make_pipeline(*steps).fit(X, Y).predict(X) == pytest.approx(whole.predict(X), rel=1e-8)
    assert np.array_equal(ridge().fit_transform(X, Y), whole.transform(X))
    before = make_pipeline(ridge(), Ridge()).fit(X, Y)[:-1]
    assert before.get_feature_names_out()[-1] == "randomfeatureridge47"


def test_missing_values_that_pandas_has_a_type_for_are_found():
    table = pd.DataFrame(X, columns=NAMES).assign(count=pd.array([None, *range(119)], "Int64"))
    recipe = ridge().fit(table, Y).recipe_
    assert recipe.feature_names == [*NAMES, "count", "count is missing"]
    skipping = ridge(on_bad_rows="skip").fit(table, pd.Series(Y, dtype="Float64"))
    assert skipping.report_["skipped_rows"] == 1
    assert np.isnan(skipping.predict(table)).nonzero()[0].tolist() == [0]


def test_they_are_routed_through_pipelines_and_searches():
    weights = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        model = ridge(standardize=False).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        piped = make_pipeline(scaler, model).fit(X, Y, sample_weight=weights)
        found = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3)
        found.fit(X, Y, sample_weight=weights)
    scaled = StandardScaler().fit_transform(X)
    alone = ridge(standardize=False).fit(scaled, Y, sample_weight=weights)
    assert piped.predict(X) == pytest.approx(alone.predict(scaled), rel=1e-9)
    part = np.arange(len(X)) >= 40
    first = clone(model).fit(X[part], Y[part], weights[part])
    score = first.score(X[~part], Y[~part], weights[~part])
    assert found.cv_results_["split0_test_score"][0] == pytest.approx(score, rel=1e-9)
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match=r"sample_weight.* are passed but are not explicitly set"),
    ):
        make_pipeline(StandardScaler(), ridge()).fit(X, Y, sample_weight=np.ones(len(X)))


TABLES = {
    "Expected 2D array, got 1D array": np.ones(3),
    "Complex data not supported": np.ones((9, 2)) + 1j,
    "Found array with 0 sample": np.empty((0, 2)),
    "Found array with 0 feature": np.empty((9, 0)),
    "could not convert|dtype='numeric' is not compatible": np.full((9, 2), "oak"),
    "could not convert string to float: 'oak'": np.array([[1.0, "oak"]] * 9, dtype=object),
}


@pytest.mark.parametrize(
    "estimator", [ridge(), ExactKernelRidge(), RandomFourierFeatures(n_components=8)]
)
def test_what_is_no_table_of_numbers_is_refused(estimator):
    for words, table in TABLES.items():
        with pytest.raises(DataError, match=words):
            clone(estimator).fit(table, np.arange(len(table)))


def test_arrays_are_not_copied():
    fitted = ridge().fit(X, Y)
    for table in (X, np.float32(X), np.asfortranarray(X)):
        assert np.shares_memory(checked_rows(fitted, table, first=False, finite=True), table)


@pytest.mark.parametrize(
    ("kind", "call"), [("file", "partial_fit"), ("moments", "fit"), ("classifier", "moments")]
)
def test_a_map_is_taken_for_the_columns_that_it_was_made_of(kind, call, tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 3)), columns=list("abc"))
    targets, new = np.sin(X["a"]).to_numpy(), streamkern.RandomFeatureRidge
    if kind == "classifier":
        targets, new = np.where(X["a"] > 0, "hill", "lake"), streamkern.RandomFeatureClassifier
    new = partial(new, n_components=16, alpha=0.1)
    like = new().moments(X, targets) if kind == "moments" else new().fit(X, targets)
    if kind == "file":
        like.save(tmp_path / "model.h5")
        like = tmp_path / "model.h5"
    for rows in (X, X[["c", "b", "a"]], X.to_numpy()):
        getattr(new(), call)(rows, targets, like=like)
