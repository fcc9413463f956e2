"""Labelled rows that come and go: the same classifier as one fit on the rows that are in."""

import copy

import naive
import numpy as np
import pytest
from harvests import NAMES, chunks, signs
from harvests import classifier as classifier_of
from harvests import labelled_rows as rows
from sklearn.exceptions import NotFittedError

from streamkern.errors import DataError, ParameterError
from streamkern.extensions.classes.calibration_fit import ScoreSums, sigmoid_of_sums

pytestmark = pytest.mark.usefixtures("in_this_thread")


def classifier(**options):
    return classifier_of(**{"standardize": False, "calibration": None} | options)


def grown(model, X, y, parts, *, classes=NAMES, weights=None):
    for part in parts:
        mine = None if weights is None else weights[part]
        model.partial_fit(X[part], y[part], classes, mine)
        classes = None
    return model


def apart(model, expected, X):
    return np.abs(model.predict_proba(X) - expected.predict_proba(X)).max()


@pytest.mark.parametrize(("n_classes", "class_weight"), [(2, {"oats": 3.0}), (3, None)])
def test_twenty_chunks_in_any_order_are_one_fit(n_classes, class_weight):
    X, y = rows(n_classes=n_classes)
    order = np.argsort(y, kind="stable")  # most chunks have rows of one class alone
    X, y = X[order], y[order]
    weights = np.random.default_rng(1).random(len(X))
    options, classes = {"class_weight": class_weight}, NAMES[:n_classes]
    whole = classifier(**options).fit(X, y, weights)
    model, parts = classifier(**options), chunks(len(X), 20, 0)
    grown(model, X, y, parts, classes=classes, weights=weights)
    assert apart(model, whole, X) < 1e-9
    assert (model.predict(X) == whole.predict(X)).all()
    assert model.report_["rows"] == len(X)
    assert model.classes_.tolist() == classes.tolist()


def sigmoid_of_scores(model, X, y, parts, K):
    """The sigmoid of sums over every row's score by the others' folds."""
    Phi = model.transform(X)
    targets = signs(y, model.classes_)
    folds = np.empty(len(X), dtype=int)
    for part in parts:  # rows of every call are dealt by their places in it
        folds[part] = [naive.fold_of_row(i, K, 0) for i in range(len(part))]
    scores = np.empty_like(targets)
    for k in range(K):
        out = folds == k
        w, mu = naive.weighted_ridge(
            *(Phi[~out], targets[~out], np.ones((~out).sum()), 0.1), intercept=True
        )
        scores[out] = Phi[out] @ w + mu
    n = float(len(X))
    sums = (targets, scores, scores**2, scores * targets)
    parts = [ScoreSums(len(X), n, *(each.sum(axis=0) for each in sums))]
    return sigmoid_of_sums(parts)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_sigmoid_follows_from_moments_of_folds_as_from_scores_of_rows_left_out(n_classes):
    X, y = rows(n_classes=n_classes)
    parts = np.array_split(np.arange(len(X)), 4)
    options = {"calibration": "sigmoid", "n_folds": 4}
    model = grown(classifier(**options), X, y, parts, classes=NAMES[:n_classes])
    expected, found = sigmoid_of_scores(model, X, y, parts, 4), model.rule_.calibrator
    np.testing.assert_allclose(found.slope, expected.slope, rtol=1e-8)
    np.testing.assert_allclose(found.offset, expected.offset, rtol=1e-8, atol=1e-8)
    again = grown(classifier(**options), X, y, parts[::-1], classes=NAMES[:n_classes])
    assert apart(model, again, X) < 1e-9
    assert model.report_["calibration"] == "sigmoid"


def test_a_calibration_on_rows_held_out_lasts_until_rows_come():
    X, y = rows()
    model = classifier().partial_fit(X, y, NAMES)
    assert model.report_["calibration"] == "none"
    assert model.calibrate(*rows(seed=1)).report_["calibration"] == "spline"
    calibrated = model.predict_proba(X)
    model.partial_fit(*rows(20, seed=2))
    assert model.report_["calibration"] == "none"
    assert np.abs(model.predict_proba(X) - calibrated).max() > 0.01


def test_one_row_is_too_few_to_calibrate_by():
    X, y = rows()
    model = classifier(calibration="sigmoid").partial_fit(X[:1], y[:1], NAMES)
    with pytest.raises(DataError, match=r"calibration needs 2 folds with rows.* give more rows"):
        model.predict_proba(X)
    assert model.partial_fit(X[1:], y[1:]).score(X, y) > 0.6


def test_classes_are_those_of_the_first_rows_unless_they_are_named():
    X, y = rows()
    model = classifier().partial_fit(X, y)
    assert model.classes_.tolist() == NAMES.tolist()
    with pytest.raises(DataError, match="row 4 has the label 'rye', which is none of the 3"):
        model.partial_fit(X[:9], np.where(np.arange(9) == 4, "rye", y[:9]))
    with pytest.raises(ParameterError, match="classes were 'hay', 'oats', 'straw' in the first"):
        model.partial_fit(X[:9], y[:9], classes=["hay", "oats"])
    assert model.partial_fit(X[:9], y[:9], classes=NAMES[::-1]).report_["rows"] == 249
    with pytest.raises(DataError, match=r"every label is 'hay', but .*; name all labels"):
        classifier().partial_fit(X[y == "hay"], y[y == "hay"])
    wider = classifier().partial_fit(X, y, classes=[*NAMES, "rye"])
    assert wider.predict_proba(X).shape == (240, 4)


def test_what_would_need_earlier_rows_again_is_refused():
    X, y = rows()
    with pytest.raises(ParameterError, match="'balanced' would weigh earlier rows anew"):
        classifier(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ParameterError, match="'isotonic' reads the rows again"):
        classifier(calibration="isotonic").partial_fit(X, y)
    grown = classifier().partial_fit(X, y)
    for name in ("update", "forget"):
        with pytest.raises(NotFittedError):
            getattr(classifier(), name)(X, y)
    for calibration in ("isotonic", "nonsense"):
        with pytest.raises(ParameterError, match="calibration"):
            copy.deepcopy(grown).set_params(calibration=calibration).predict(X)


def test_parameters_change_as_far_as_only_the_solution_reads_them():
    X, y = rows()
    model = classifier(calibration="sigmoid").partial_fit(X[:200], y[:200])
    for change in ({"class_weight": {"hay": 2.0}}, {"standardize": not model.standardize}):
        changed = copy.deepcopy(model).set_params(**change)
        for method in (changed.partial_fit, changed.update, changed.forget):
            with pytest.raises(ParameterError, match=r"when the first rows came, .* set it back"):
                method(X[200:], y[200:])
    model.set_params(alpha=7.0, calibration=None).partial_fit(X[200:], y[200:])
    assert (model.alpha_, model.report_["calibration"]) == (7.0, "none")
    plain = classifier(calibration=None).partial_fit(X[:200], y[:200])
    with pytest.raises(ParameterError, match="calibration need folds"):
        plain.set_params(calibration="sigmoid").partial_fit(X[200:], y[200:])


def test_a_map_and_classes_can_be_taken_from_another_model():
    X, y = rows()
    like = classifier(standardize=True, class_weight={"hay": 2.0}).fit(X, y)
    few = y != "hay"
    model = classifier().partial_fit(X[few], y[few], like=like)
    assert model.classes_.tolist() == NAMES.tolist()
    assert apart(model.partial_fit(X[~few], y[~few]), like, X) < 1e-9
    with pytest.raises(ParameterError, match="has its map already"):
        model.partial_fit(X, y, like=like)
