"""Classification by ridge regression on +1 and -1, against scikit-learn and plain loops."""

import copy

import dask
import naive
import numpy as np
import pytest
from commandline import write
from distributed import Client
from harvests import NAMES, classifier, signs
from harvests import labelled_rows as rows
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    roc_auc_score,
)
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

import streamkern
from streamkern import RandomFeatureClassifier, RandomFeatureRidge
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.extensions.classes.calibration_fit import platt

pytestmark = pytest.mark.usefixtures("in_this_thread")
X, Y = rows()


@pytest.fixture(scope="module")
def fitted():
    """Models of 240 rows by their number of classes, which no test changes."""
    with dask.config.set(scheduler="synchronous"):
        return {K: classifier().fit(*rows(n_classes=K)) for K in (2, 3)}


@pytest.mark.parametrize(
    ("n_classes", "class_weight"),
    [(2, "balanced"), (2, {"oats": 3.0}), (3, None), (3, {"oats": 3.0})],
)
def test_on_plain_inputs_it_is_the_ridge_classifier_of_scikit_learn(n_classes, class_weight):
    (X, y), new = rows(n_classes=n_classes), rows(seed=1)[0]
    scaler = StandardScaler().fit(X)
    expected = RidgeClassifier(alpha=2.0, class_weight=class_weight).fit(scaler.transform(X), y)
    plain = {"feature_map": "identity", "precision": "double", "calibration": None}
    options = plain | {"alpha": 2.0, "class_weight": class_weight, "standardize": False}
    model = RandomFeatureClassifier(**options).fit(scaler.transform(X), y)
    decisions = expected.decision_function(scaler.transform(new))
    found = model.decision_function(scaler.transform(new))
    assert found.shape == decisions.shape
    assert np.abs(found - decisions).max() < 1e-9
    assert (model.predict(scaler.transform(new)) == expected.predict(scaler.transform(new))).all()
    assert (model.classes_ == expected.classes_).all()


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (Y.astype(object), {"calibration": "isotonic", "class_weight": "balanced"}),
        (Y.astype("S"), {}),
        (Y == "oats", {"class_weight": {True: 2.0}}),
        (np.searchsorted(NAMES, Y) - 1, {"class_weight": {1: 2.0}}),
        (np.searchsorted(NAMES, Y).astype(float), {"calibration": None}),
    ],
    ids=["objects", "bytes", "booleans", "integers", "floats"],
)
def test_predictions_are_labels_of_their_own_type_also_from_a_file(labels, options, tmp_path):
    model = classifier(**options).fit(X, labels)
    model.save(tmp_path / "model.h5")
    again = streamkern.load(tmp_path / "model.h5")
    assert again.classes_.dtype == model.classes_.dtype
    for each in (model, again):
        predicted = each.predict(X)
        assert each.classes_.tolist() == np.unique(labels).tolist()
        assert type(predicted[0].item()) is type(np.asarray(labels.tolist())[0].item())
        assert each.score(X, labels) == (predicted == labels).mean() > 0.65
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.get_params() == model.get_params()
    assert clone(again).fit(X, labels).rule_.as_dict() == model.rule_.as_dict()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibration_is_by_scores_of_rows_that_the_model_has_not_seen(n_classes):
    X, y = rows(n_classes=n_classes)
    weights = np.random.default_rng(2).random(len(X)) + 0.5
    model = classifier(n_folds=4, calibration="sigmoid").fit(X, y, weights)
    Phi, targets = model.transform(X), signs(y, model.classes_)
    folds, scores = np.array([naive.fold_of_row(i, 4, 0) for i in range(len(X))]), 0.0 * targets
    for k in range(4):
        others = Phi[folds != k], targets[folds != k], weights[folds != k]
        w, mu = naive.weighted_ridge(*others, 0.1, intercept=True)
        scores[folds == k] = Phi[folds == k] @ w + mu
    found = model.rule_.calibrator
    for j in range(scores.shape[1]):
        expected = platt(scores[:, j], weights, 1.0 * (targets[:, j] > 0))
        assert [found.slope[j], found.offset[j]] == pytest.approx(expected, rel=2e-3, abs=2e-3)


def test_held_out_rows_calibrate_too_and_weigh_as_if_repeated_but_not_a_copy_of_the_model(tmp_path):
    new, labels = rows(seed=1)
    times = np.random.default_rng(2).integers(0, 4, len(new))
    model = classifier(calibration=None).fit(X, Y)
    plain, copied, other = model.predict_proba(X), copy.copy(model), copy.copy(model)
    model.calibrate(new, labels, times)
    other.calibrate(new.repeat(times, axis=0), labels.repeat(times))
    assert np.abs(model.predict_proba(X) - other.predict_proba(X)).max() < 1e-9
    assert np.abs(model.predict_proba(X) - plain).max() > 0.01
    assert np.array_equal(copied.predict_proba(X), plain)
    for each, name in ((model, "spline"), (copied, "none")):
        each.save(tmp_path / f"{name}.h5")
        assert streamkern.load(tmp_path / f"{name}.h5").report_ == each.report_
        assert each.report_["calibration"] == name
    assert np.array_equal(model.calibrate(new, labels, calibration=None).predict_proba(X), plain)
    with pytest.raises(ParameterError, match="calibration must be one of auto, spline, sigmoid"):
        model.calibrate(new, labels, calibration="temperature")
    assert model.calibrate(new, labels, calibration="isotonic").report_["calibration"] == "isotonic"
    assert model.get_params()["calibration"] is None


def calibration_error(p, y, classes, weights, n_bins=15):
    """The mean over bins of |accuracy - confidence|, as it is written."""
    confidence, right = p.max(axis=1), classes[p.argmax(axis=1)] == y
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = (weights * (right - confidence) * (bins == b) for b in range(n_bins))
    return sum(abs(gap.sum()) for gap in gaps) / weights.sum()


@pytest.mark.parametrize(("n_classes", "weighted"), [(2, True), (3, False), (3, True)])
def test_errors_are_those_of_scikit_learn(n_classes, weighted):
    (X, y), (new, labels) = rows(n_classes=n_classes), rows(400, n_classes, seed=1)
    weights = np.random.default_rng(3).random(len(new)) if weighted else np.ones(len(new))
    model = classifier(class_weight="balanced").fit(X, y)
    found = model.evaluate(new, labels, weights if weighted else None)
    p, predicted, named = model.predict_proba(new), model.predict(new), {"sample_weight": weights}
    classes = model.classes_
    one_hot = 1.0 * (labels[:, None] == classes)
    area = p[:, 1] if n_classes == 2 else p
    expected = {
        "accuracy": accuracy_score(labels, predicted, **named),
        "balanced_accuracy": balanced_accuracy_score(labels, predicted, **named),
        "log_loss": log_loss(labels, p, **named),
        "brier_score": np.average(((p - one_hot) ** 2).sum(axis=1), weights=weights)
        if n_classes == 3
        else brier_score_loss(labels == classes[1], p[:, 1], **named),
        "expected_calibration_error": calibration_error(p, labels, classes, weights),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9), name
    score = model.score(new, labels, weights if weighted else None)
    assert score == pytest.approx(expected["accuracy"], rel=1e-12)
    matrix = confusion_matrix(labels, predicted, **named)
    np.testing.assert_allclose(found["confusion_matrix"], matrix)
    exact = roc_auc_score(labels, area, multi_class="ovr", **named)
    assert abs(found["auc"] - exact) <= found["auc_error"] + 1e-12
    assert found["auc_error"] < 0.01


def test_rows_without_a_label_or_a_score_are_told_or_left_out():
    labels, wild = Y.astype(object), X.copy()
    labels[[3, 50]] = None
    with pytest.raises(DataError, match=r"2 of 240 rows have no label.* the first at row 3;"):
        classifier().fit(X, labels)
    model = classifier(on_bad_rows="skip").fit(X, labels)
    assert model.report_["skipped_rows"] == 2
    found = model.evaluate(X, labels)
    assert (found["rows"], found["skipped_rows"]) == (238, 2)
    assert np.sum(found["confusion_matrix"]) == 238
    wild[::7] = np.nan
    unknown = np.isnan(model.predict_proba(wild)).all(axis=1)
    assert np.flatnonzero(unknown).tolist() == list(range(0, 240, 7))
    with pytest.raises(DataError, match="35 of 240 rows have no finite score"):
        model.predict(wild)
    assert model.score(wild, Y) == model.evaluate(wild, Y)["accuracy"]
    assert not np.isnan(cross_val_score(model, wild, Y, cv=3)).any()
    weights, good = np.arange(1.0, len(Y) + 1), np.isfinite(wild).all(axis=1)
    expected = model.score(X[good], Y[good], weights[good])
    assert model.score(wild, Y, weights) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(DataError, match="so none is left"):
        model.score(np.full_like(X, np.nan), Y)
    with pytest.raises(DataError, match="NaN"):
        model.set_params(on_bad_rows="error").score(wild, Y)


def test_labels_that_are_no_class_are_refused_by_evaluate_and_errors_in_a_score(fitted):
    model, others = fitted[3], Y.astype(object)
    with pytest.raises(DataError, match="row 9 has the label 'rye', which is none of the 3 class"):
        model.evaluate(X, np.where(np.arange(len(Y)) == 9, "rye", Y))
    others[:24] = "another"
    assert model.score(X, others) == np.mean(model.predict(X) == others) <= 1 - 24 / len(Y)
    assert model.score(X, Y) == pytest.approx(model.evaluate(X, Y)["accuracy"])
    without = model.evaluate(X[Y != "hay"], Y[Y != "hay"])
    assert (without["auc"], without["confusion_matrix"][0]) == (None, [0, 0, 0])


def test_moments_are_solved_as_rows_are_fitted_and_calibrate_as_rows_that_come_do(tmp_path):
    options = {"calibration": None, "alpha": "cv", "class_weight": "balanced"}
    classifier(**options).moments(X, Y).save(tmp_path / "m.h5")
    fitted = classifier(**options).fit(X, Y)
    solved = classifier(**options).solve(streamkern.load_moments(tmp_path / "m.h5"))
    assert np.abs(solved.predict_proba(X) - fitted.predict_proba(X)).max() < 1e-9
    found = classifier().moments(X, Y)
    solved, grown = classifier().solve(found), classifier().partial_fit(X, Y)
    assert np.abs(solved.predict_proba(X) - grown.predict_proba(X)).max() < 1e-9
    assert (solved.report_["calibration"], solved.moments_) == ("sigmoid", None)
    assert classifier().solve(found, keep_moments=True).moments_ is found
    with pytest.raises(ParameterError, match="calibration 'isotonic' reads the rows again"):
        classifier(calibration="isotonic").solve(found)
    with pytest.raises(ParameterError, match="calibration 'auto' needs 2 folds or more, and"):
        classifier().solve(classifier(calibration=None, alpha=1.0, n_folds=1).moments(X, Y))


def test_moments_are_solved_with_the_weights_of_classes_that_they_have():
    equal, balanced = (classifier(class_weight=how).moments(X, Y) for how in (None, "balanced"))
    solved = classifier().solve(balanced)
    expected = classifier(class_weight="balanced").solve(balanced)
    assert np.array_equal(solved.coef_, expected.coef_)
    assert np.array_equal(solved.class_factors_, expected.class_factors_)
    given = dict(zip(expected.classes_.tolist(), expected.class_factors_.tolist(), strict=True))
    assert np.array_equal(classifier(class_weight=given).solve(balanced).coef_, solved.coef_)
    other = given | {Y[0]: 9.0}
    for how, moments in (("balanced", equal), (given, equal), (other, balanced)):
        with pytest.raises(ParameterError, match="were made with other weights of classes, or no"):
            classifier(class_weight=how).solve(moments)


def test_classes_do_not_depend_on_the_unit_of_weights():
    weights = np.full(len(Y), 1e-6)
    ways = ("auto", "fit"), ("sigmoid", "fit"), ("isotonic", "fit"), ("auto", "partial_fit")
    for calibration, fit in ways:
        model = classifier(calibration=calibration, alpha="cv")
        alike, found = (
            getattr(clone(model), fit)(X, Y, sample_weight=each) for each in (None, weights)
        )
        assert np.abs(found.predict_proba(X) - alike.predict_proba(X)).max() < 1e-5


def test_moments_merge_where_one_has_not_all_classes():
    few, options = Y != "hay", {"calibration": None}
    first = classifier(**options).moments(X[:150], Y[:150])
    second = classifier(**options).moments(X[150:][few[150:]], Y[150:][few[150:]], like=first)
    model = classifier(**options).solve(first.merge(second))
    used = few | (np.arange(len(Y)) < 150)
    expected = classifier(**options).fit(X[used], Y[used], like=first)
    assert np.abs(model.predict_proba(X) - expected.predict_proba(X)).max() < 1e-6
    left = first.merge(second).forget(X[150:][few[150:]], Y[150:][few[150:]])
    again = classifier(**options).solve(left)
    assert np.abs(again.coef_ - classifier(**options).solve(first).coef_).max() < 1e-6


def test_moments_of_other_classes_do_not_merge_and_of_none_make_no_classifier():
    first = classifier().moments(X[:150], Y[:150])
    renamed = np.where(Y == "hay", "rye", Y)
    second = classifier().moments(X[150:], renamed[150:])
    with pytest.raises(DataError, match="the classes 'hay', 'oats', 'straw'"):
        first.merge(second)
    with pytest.raises(DataError, match="has the label 'rye'"):
        classifier().moments(X[150:], renamed[150:], like=first)
    of_regression = RandomFeatureRidge(n_components=8).moments(X, X[:, 0])
    with pytest.raises(ParameterError, match="moments that know classes"):
        classifier(calibration=None).solve(of_regression)


def test_where_rows_crowd_neighbours_calibrate_and_in_gaps_probabilities_are_the_shares():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0.0, 40.0, 1200))
    frequencies, phases = 2.0 * rng.standard_normal(200), rng.uniform(0.0, 2.0 * np.pi, 200)

    def field(t):
        return np.cos(np.outer(t, frequencies) + phases).sum(axis=1) / 10.0

    labels = field(t) + 0.1 * rng.standard_normal(len(t)) > 0.0
    model = RandomFeatureClassifier(n_components=128, n_folds=2)
    with pytest.warns(StreamkernWarning, match="rows crowd"):
        model.fit(t[:, None], labels)
    among = t[:-1] + 0.01
    # By scores of blocks alone it is 0.46.
    assert log_loss(field(among) > 0.0, model.predict_proba(among[:, None])) < 0.2
    far = model.predict_proba(np.array([[200.0], [-100.0]]))
    np.testing.assert_allclose(far[:, 1], labels.mean(), atol=0.1)


REFUSED = {
    "calibration must be one of": [{"calibration": "temperature"}],
    "class_weight must be None": [{"class_weight": "even"}, {"class_weight": np.ones(2)}],
    "class_weight must hold non-negative numbers": [
        {"class_weight": {0: None, 1: 1.0}},
        {"class_weight": {0: "2"}},
    ],
    "needs at least 2 folds": [{"n_folds": 1}],
    "n_components": [{"n_components": 0}],
}


def test_parameters_that_cannot_be_are_refused_before_rows_are_read_and_so_is_one_class():
    for words, given in REFUSED.items():
        for options in given:
            with pytest.raises(ParameterError, match=words):
                classifier(**options).fit(None, None)
    X, y = rows(n_classes=2)
    with pytest.raises(DataError, match="every label is 'a', but a classifier needs at least two"):
        classifier().fit(X, np.full(len(y), "a"))
    with pytest.raises(DataError, match="weighs anything is of the class 'oats'"):
        classifier().fit(X, y, 1.0 * (y == "oats"))


@pytest.mark.cluster
def test_processes_give_the_same_bits(tmp_path, external_scheduler):
    X, y = rows(3000)
    write(tmp_path / "a.h5", X, y)
    source = streamkern.open_hdf5(tmp_path / "a.h5", labels=True)
    here = classifier(precision="single", class_weight="balanced").fit(source)
    with Client(external_scheduler, set_as_default=True):
        there = classifier(precision="single", class_weight="balanced").fit(source)
        assert there.evaluate(source) == here.evaluate(source)
    np.testing.assert_array_equal(here.coef_, there.coef_)
    assert here.rule_.as_dict() == there.rule_.as_dict()
