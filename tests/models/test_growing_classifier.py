"""Labelled rows that come and go: the same classifier as one fit on the rows that are in."""

import copy

import naive
import numpy as np
import pytest
from harvests import NAMES, chunks, signs
from harvests import classifier as classifier_of
from harvests import labelled_rows as rows
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

from streamkern.errors import DataError, ParameterError
from streamkern.predict.calibration_fit import ScoreSums, sigmoid_of_sums

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


def rare_rows(share, n_classes, n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    first, second = (X[:, :2] + 0.3 * rng.standard_normal((n, 2))).T
    y = np.where(first > np.quantile(first, 1 - share), 2, 0)
    return X, NAMES[np.where((second > 0.3) & (y == 0), n_classes - 2, y)]


@pytest.mark.parametrize(("share", "n_classes"), [(0.005, 3), (0.03, 2), (0.5, 3)])
def test_probabilities_of_rare_classes_reproduce_their_shares_without_rows(share, n_classes):
    X, y = rare_rows(share, n_classes)
    weights = np.random.default_rng(1).random(len(X)) + 0.5
    model = classifier(calibration="sigmoid").partial_fit(X[:2000], y[:2000], np.unique(y), None)
    model.partial_fit(X[2000:], y[2000:]).forget(X[:2000], y[:2000])
    model.partial_fit(X[:2000], y[:2000], None, weights[:2000])
    weights[2000:] = 1.0
    new, labels = rare_rows(share, n_classes, seed=1)
    for told, known, w in ((X, y, weights), (new, labels, None)):
        p, is_class = model.predict_proba(told), known[:, None] == model.classes_
        shares = np.average(is_class, axis=0, weights=w)
        np.testing.assert_allclose(np.average(p, axis=0, weights=w), shares, rtol=0.2)
        base = log_loss(known, np.tile(shares, (len(p), 1)), sample_weight=w)
        assert log_loss(known, p, sample_weight=w) < 0.9 * base


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


def test_rows_without_a_label_are_left_out_where_that_is_said():
    X, y = rows()
    labels = y.astype(object)
    labels[[3, 50]] = None
    model = classifier(on_bad_rows="skip").partial_fit(X[:120], labels[:120])
    model.partial_fit(X[120:], labels[120:])
    assert (model.report_["rows"], model.report_["skipped_rows"]) == (238, 2)
    with pytest.raises(DataError, match="2 of 240 rows have no label"):
        classifier().partial_fit(X, labels)


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


@pytest.mark.parametrize("class_weight", [None, {"hay": 2.0}])
def test_a_fit_that_kept_its_moments_grows(class_weight):
    X, y = rows()
    options = {"class_weight": class_weight, "calibration": "sigmoid"}
    model = classifier(**options).fit(X[:200], y[:200], keep_moments=True)
    with pytest.raises(ParameterError, match="begin with partial_fit instead of fit"):
        model.forget(X[:9], y[:9])
    model.partial_fit(X[200:], y[200:])
    expected = classifier(**options).partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert apart(model, expected, X) < 1e-9
    with pytest.raises(DataError, match="none of"):
        model.partial_fit(X[:2], ["rye", "hay"])


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
