"""A boosted classifier is a classifier as any other: on arrays, Dask arrays and files."""

import re

import dask
import h5py
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

import streamkern
from streamkern import RandomFeatureAdaBoost, RandomFeatureClassifier, RandomFeatureRidge
from streamkern.errors import DataError, ParameterError
from streamkern.sources import ArraySource

N = 300


pytestmark = pytest.mark.usefixtures("in_this_thread")


def rows(K=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 4, (N, 2))
    return X, np.array(["ash", "beech", "oak"])[X.astype(int).sum(axis=1) % K]


def model(**options):
    ridge = RandomFeatureRidge(streamkern.Gaussian(0.5), n_components=16, alpha=0.1)
    return RandomFeatureAdaBoost(**({"estimator": ridge, "n_estimators": 2} | options))


@pytest.fixture(scope="module")
def fitted():
    with dask.config.set(scheduler="synchronous"):
        return {K: model().fit(*rows(K)) for K in (2, 3)}


@pytest.mark.parametrize("K", [2, 3])
def test_probabilities_are_those_of_the_additive_model(K, fitted):
    X, y = rows(K)
    votes = fitted[K].ensemble_.votes(X)
    expected = np.exp(votes) / np.exp(votes).sum(axis=1)[:, None]
    found = fitted[K].predict_proba(X)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(np.exp(fitted[K].predict_log_proba(X)), expected)
    labels = fitted[K].classes_[votes.argmax(axis=1)]
    assert (fitted[K].predict(X) == labels).all()
    decisions = fitted[K].decision_function(X)
    assert decisions.shape == ((N,) if K == 2 else (N, 3))
    report = fitted[K].evaluate(X, y)
    assert report["accuracy"] == np.mean(labels == y) == fitted[K].score(X, y)
    assert report["log_loss"] == pytest.approx(log_loss(y, expected, labels=fitted[K].classes_))


def test_a_file_gives_the_same_model_back(tmp_path):
    (X, y), weight = rows(), {"ash": 2.0, "beech": 1.0, "oak": 0.5}
    found = model(algorithm="discrete", learning_rate=0.5, class_weight=weight).fit(X, y)
    found.save(tmp_path / "model.h5")
    loaded = streamkern.load(tmp_path / "model.h5")
    assert loaded.class_weight == weight
    assert repr(loaded.get_params()) == repr(found.get_params())
    assert loaded.n_features_in_ == 2
    assert (clone(loaded).fit(X, y).decision_function(X) == found.decision_function(X)).all()


def test_rows_that_are_not_finite_are_refused_or_left_out_and_have_no_class(fitted, tmp_path):
    X, y = rows()
    wrong = X.copy()
    wrong[7, 0] = np.nan
    with pytest.raises(DataError, match="1 of 300 rows have no finite score, and so no class"):
        fitted[3].predict(ArraySource(wrong))
    with pytest.raises(DataError, match=r"1 of 300 rows have no label, or hold NaN"):
        model().fit(wrong, y)
    for algorithm in ("gentle", "real", "discrete"):
        found = model(algorithm=algorithm).set_params(estimator__on_bad_rows="skip").fit(wrong, y)
        p = found.predict_proba(ArraySource(wrong))
        assert np.isnan(p).any(axis=1).nonzero()[0].tolist() == [7]
        expected = model(algorithm=algorithm).fit(np.delete(X, 7, axis=0), np.delete(y, 7))
        np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-5)
    assert found.report_["skipped_rows"] == found.evaluate(wrong, y)["skipped_rows"] == 1
    found.set_params(estimator__on_bad_rows="error").save(tmp_path / "model.h5")
    assert streamkern.load(tmp_path / "model.h5").on_bad_rows == "error"
    found.set_params(estimator__on_bad_rows="skip")
    assert found.predict_to_hdf5(wrong, tmp_path / "predicted.h5", probabilities=True) == 1
    with h5py.File(tmp_path / "predicted.h5") as file:
        assert file["y_pred"][7] == b""
        np.testing.assert_array_equal(file["y_proba"][:], p)


@pytest.mark.parametrize("is_fitted", [False, True])
def test_the_estimator_that_was_given_is_left_as_it_was(tmp_path, is_fitted):
    X, y = rows()
    ridge = RandomFeatureRidge(streamkern.Gaussian(0.5), n_components=16, alpha=0.1)
    if is_fitted:
        ridge.fit(X, X[:, 0])
    boosted, before = RandomFeatureAdaBoost(ridge, n_estimators=2), dict(vars(ridge))
    boosted.fit(X, y).save(tmp_path / "m.h5")
    boosted.evaluate(X, y)
    boosted.predict_to_hdf5(X, tmp_path / "p.h5")
    with pytest.raises(AttributeError):
        boosted.on_bad_rows = "skip"
    with pytest.raises(ValueError, match="Invalid parameter 'on_bad_rows'"):
        boosted.set_params(on_bad_rows="skip")
    assert boosted.get_params()["estimator"] is boosted.estimator is ridge
    assert {name: id(value) for name, value in vars(ridge).items()} == {
        name: id(value) for name, value in before.items()
    }


def test_parameters_of_the_estimator_are_set_cloned_and_read_again():
    boosted = model().set_params(estimator__on_bad_rows="skip", estimator__n_components=32)
    again = clone(boosted)
    assert again.estimator is not boosted.estimator
    assert again.estimator.get_params() == boosted.estimator.get_params()
    assert (again.on_bad_rows, again.estimator.n_components) == ("skip", 32)
    other = RandomFeatureRidge(n_components=8)
    assert again.set_params(estimator=other).get_params()["estimator"] is other
    assert again.on_bad_rows == "error"
    assert clone(RandomFeatureAdaBoost()).get_params()["estimator"] is None


WRONG = {
    "n_estimators": (0, "n_estimators must be a whole number of at least 1, not 0"),
    "algorithm": ("logit", "algorithm must be one of gentle, real, discrete, not 'logit'"),
    "learning_rate": (1.5, "learning_rate must be above 0 and at most 1, not 1.5"),
    "class_weight": ("equal", "class_weight must be None, 'balanced' or a dictionary"),
    "estimator": (RandomFeatureClassifier(), "estimator must be a RandomFeatureRidge, not"),
}


def test_an_option_that_cannot_be_is_refused_before_rows_are_read():
    for name, (value, words) in WRONG.items():
        with pytest.raises(ParameterError, match=re.escape(words)):
            model(**{name: value}).fit(None)
    with pytest.raises(ParameterError, match="n_components 'auto' is chosen once"):
        RandomFeatureAdaBoost(RandomFeatureRidge(n_components="auto")).fit(None)
    for ask in (model().predict, model().staged_evaluate):
        with pytest.raises(NotFittedError):
            ask(np.zeros((1, 2)))
