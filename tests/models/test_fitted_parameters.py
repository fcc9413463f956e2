"""Parameters set after a fit: files, reports and templates say what the model was fitted with."""

import json
from functools import partial

import h5py
import pytest
from harvests import smooth_rows
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

import streamkern
from streamkern import RandomFeatureClassifier, RandomFeatureRidge
from streamkern.registry import installed, public_names

pytestmark = pytest.mark.usefixtures("in_this_thread")
X, Y = smooth_rows(120)
SMALL = {"n_components": 16, "random_state": 3, "alpha": 0.1}


def rounds():
    return streamkern.RandomFeatureAdaBoost(RandomFeatureRidge(**SMALL), n_estimators=2)


FITS = {
    "ridge": lambda: RandomFeatureRidge(**SMALL).fit(X, Y),
    "tuned": lambda: RandomFeatureRidge(**SMALL).tune(X, Y, kernels="gaussian"),
    "grown": lambda: RandomFeatureRidge(**SMALL).partial_fit(X, Y),
    "classifier": lambda: RandomFeatureClassifier(**SMALL).fit(X, Y > 0),
    "grown classifier": lambda: RandomFeatureClassifier(**SMALL).partial_fit(X, Y > 0),
    "boosting": lambda: rounds().fit(X, Y > 0),
    "components": lambda: streamkern.RandomFeaturePCA(n_random_features=16, random_state=3).fit(X),
}
OTHERS = {
    "kernel": "laplacian",
    "precision": "double",
    "n_components": 3,
    "random_state": 9,
    "standardize": False,
    "fit_intercept": False,
    "alpha": 7.0,
    "calibration": None,
    "class_weight": {True: 2.0},
    "n_estimators": 7,
    "estimator": RandomFeatureRidge(),
}


def change(model):
    return model.set_params(**{name: OTHERS[name] for name in OTHERS if hasattr(model, name)})


def card_of(model, path):
    model.save(path, force=True)
    with h5py.File(path) as file:
        card = json.loads(file["card"][()])
    return {name: card[name] for name in card.keys() - {"created"}}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_a_file_says_what_the_model_was_fitted_with(fit, tmp_path):
    model, path = fit(), tmp_path / "model.h5"
    before, given = card_of(model, path), repr(model.get_params())
    assert card_of(change(model), path) == before
    assert repr(streamkern.load(path).get_params()) == given != repr(model.get_params())


@pytest.mark.parametrize("kind", ["ridge", "grown", "classifier", "grown classifier"])
def test_a_report_and_a_template_say_what_the_model_was_fitted_with(kind, tmp_path):
    model, path, page = FITS[kind](), tmp_path / "model.h5", tmp_path / "report.html"
    model.coef_  # noqa: B018  it is solved here
    change(model).save(path)
    streamkern.write_report(model, page)
    call = f"{type(model).__name__}(n_components=16, alpha=0.1, random_state=3)"
    assert call in page.read_text()
    for like in (model, path):
        options = clone(model).moments(X, Y > 0, like=like).options
        chosen = streamkern.load(path).kernel_
        assert (options.kernel, options.precision) == (chosen, "single")
        assert (options.n_components, options.random_state, options.standardize) == (16, 3, True)


@pytest.mark.parametrize("kind", ["grown", "grown classifier"])
def test_a_solution_of_moments_takes_what_decided_them_and_else_what_is_set(kind, tmp_path):
    model, path = FITS[kind](), tmp_path / "model.h5"
    change(model).save(path)
    given = FITS[kind]().get_params()
    later = {name: OTHERS[name] for name in ("alpha", "fit_intercept", "calibration")}
    expected = given | {name: later[name] for name in later.keys() & given.keys()}
    assert repr(streamkern.load(path).get_params()) == repr(expected)
    assert (model.alpha_, model.coef_.shape[0]) == (7.0, 16)


DELETED = {name for name, ext in public_names().items() if ext not in installed()}
ESTIMATORS = [
    each
    for each in map(partial(getattr, streamkern), sorted(set(streamkern.__all__) - DELETED))
    if isinstance(each, type) and issubclass(each, BaseEstimator)
]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_nothing_is_fitted_before_the_fit(cls):
    fitted = [name for name in dir(cls) if name.endswith("_") and not name.startswith("_")]
    assert [name for name in fitted if hasattr(cls(), name)] == []
    for name in fitted if hasattr(cls, "model_") else ():
        with pytest.raises(NotFittedError, match="not fitted yet; call fit first"):
            getattr(cls(), name)
