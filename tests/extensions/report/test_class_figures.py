"""Reports of classifiers: classes of rows that were not seen, against fits without them."""

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from pages import Page
from sklearn import metrics
from sklearn.metrics import confusion_matrix

from streamkern import Gaussian, RandomFeatureClassifier, write_report
from streamkern.extensions.report.class_figures import (
    class_figures,
    confusion_table,
    precision_figure,
    probability_figure,
    threshold_figure,
)
from streamkern.extensions.report.validation_pass import validated as validated_model
from streamkern.models.held_out_predictors import folds_of, unseen_by

NAMES = np.array(["hill", "lake", "moor"])


def validated(model, rows):
    fitted = model.model_
    return validated_model(fitted, fitted.source(*rows, as_fitted=True))


def rows(n=240, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    scores = X[:, :1] * np.arange(k) + 0.7 * rng.standard_normal((n, k))
    return X, NAMES[scores.argmax(axis=1)]


def classifier(**options):
    options = {"n_components": 32, "precision": "double"} | options
    return RandomFeatureClassifier(Gaussian(1.5), **options)


def held_out_scores(model, X):
    """Scores of every row by the model without its fold."""
    held_out = unseen_by(model.ridge_, folds_of(model.ridge_)).held_out
    rule, predictors = held_out.rule, held_out.predictors
    folds = rule.at(np.arange(len(X)))
    scores = np.empty((len(X), predictors[0].coef.shape[1]))
    for k, predictor in predictors.items():
        scores[folds == k] = predictor.predict(X[folds == k]).reshape(-1, scores.shape[1])
    return scores


@pytest.mark.parametrize(("k", "weighted"), [(2, True), (3, False)])
def test_errors_are_those_of_models_without_each_fold(k, weighted):
    X, y = rows(k=k)
    s = np.random.default_rng(1).integers(1, 4, len(y)) if weighted else None
    model = classifier().fit(X, y, s, keep_moments=True)
    found = validated(model, (X, y, s))
    scores = held_out_scores(model, X)
    probabilities = model.rule_.probabilities(scores)
    labels = model.rule_.labels(scores)
    assert (found.by_fold, found.n_rows) == (True, len(X))
    errors = found.measure
    assert errors.accuracy == pytest.approx(metrics.accuracy_score(y, labels, sample_weight=s))
    assert errors.log_loss == pytest.approx(metrics.log_loss(y, probabilities, sample_weight=s))
    assert (errors.confusion == confusion_matrix(y, labels, sample_weight=s)).all()
    by_class = metrics.precision_recall_fscore_support(y, labels, sample_weight=s)
    said = [row[-2:] for row in confusion_table(found.measure).rows]
    assert said == [(f"{r:.1%}", f"{p:.1%}") for p, r, *_ in zip(*by_class, strict=True)]
    ranked = probabilities[:, 1] if k == 2 else probabilities
    for j, p in enumerate(ranked.reshape(len(y), -1).T):
        is_of, weights = y == NAMES[j if k > 2 else 1], np.ones(len(y)) if s is None else s
        for b, counted in enumerate(errors.by_probability[j].T):
            mine = np.minimum((p * 20).astype(int), 19) == b
            sums = ((weights * each)[mine].sum() for each in (np.ones(len(y)), p, is_of))
            assert counted == pytest.approx([*sums, mine.sum()])
    area = metrics.roc_auc_score(y, ranked, sample_weight=s, multi_class="ovr")
    assert errors.auc == pytest.approx(area, abs=errors.auc_error + 1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_the_page_shows_classes_and_no_intervals(k, tmp_path):
    X, y = rows(k=k)
    model = classifier().fit(X, y, keep_moments=True)
    write_report(model, tmp_path / "report.html", X, y)
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    found = validated(model, (X, y, None))
    assert "Kernel classification" in page.text
    assert f"{k} classes" in page.text
    assert page.value_of("classes") == f"{k}: {', '.join(NAMES[:k])}"
    assert page.value_of("calibration") == "spline"
    assert f"{100 * found.measure.accuracy:.1f}%" in page.text
    shown = ("ROC curve", "Calibration", "recall", "precision", "log loss")
    assert all(name in page.text for name in shown)
    assert not any(name in page.text for name in ("Intervals", "Residuals", "nan"))
    write_report(model, tmp_path / "without.html")
    page = Page((tmp_path / "without.html").read_text(encoding="utf-8"))
    assert "rows were not read for this report" in page.text
    assert "ROC curve" not in page.text


def test_of_many_classes_the_largest_are_shown():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 2))
    y = np.minimum(rng.geometric(0.15, 900), 15)
    model = classifier(alpha=1.0).fit(X, y, keep_moments=True)
    found = validated(model, (X, y, None))
    header, table, _ = confusion_table(found.measure)
    largest = sorted(np.argsort(-np.bincount(y)[1:], kind="stable")[:12] + 1)
    assert [row[0] for row in table] == [str(label) for label in largest]
    assert header == ("class", *map(str, largest), "recall", "precision")
    titles = [each.title for each in class_figures(found.measure)]
    assert titles == ["Calibration", "ROC curve", "Classes"]


@pytest.mark.parametrize("keep", [True, False])
def test_rows_count_by_their_own_weights_where_classes_have_some(keep):
    X, y = rows(k=3)
    s = np.random.default_rng(2).integers(1, 3, len(y)).astype(float)
    options = {} if keep else {"alpha": 1.0, "calibration": None}
    model = classifier(class_weight={"hill": 5.0, "moor": 0.3}, **options)
    model.fit(X, y, s, keep_moments=keep)
    found = validated(model, (X, y, s))
    for name, weight in zip(NAMES, found.measure.confusion.sum(axis=1), strict=True):
        assert weight == pytest.approx(s[y == name].sum())
    _, table, _ = confusion_table(found.measure)
    assert sum(int(cell.replace(",", "")) for row in table for cell in row[1:4]) == s.sum()


def test_thresholds_and_precision_are_those_of_the_rows_held_out():
    X, y = rows(n=900)
    model = classifier().fit(X, y, keep_moments=True)
    errors = validated(model, (X, y, None)).measure
    p = model.rule_.probabilities(held_out_scores(model, X))[:, 1]
    axes = Canvas().add_subplot()
    threshold_figure(errors).draw(axes)
    drawn = [each.get_ydata() for each in axes.lines]
    for k, t in enumerate(np.linspace(0, 1, 21)[:-1]):
        taken, held = p >= t, y == "lake"
        said = taken[held].mean(), (taken == held).mean()
        assert (drawn[1][k], drawn[2][k]) == pytest.approx(said)
        if taken.any():
            assert drawn[0][k] == pytest.approx(held[taken].mean())
    axes = Canvas().add_subplot()
    precision_figure(errors).draw(axes)
    recall, precision = axes.lines[-1].get_data()
    area = -np.sum(np.diff(recall[::-1]) * precision[-2::-1])
    assert area == pytest.approx(metrics.average_precision_score(y == "lake", p), abs=0.01)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_marks_are_where_rows_are_whatever_they_weigh(unit):
    (X, y), marks = rows(n=1500), []
    for s in (None, np.full(len(y), unit)):
        model = classifier(calibration=None).fit(X, y, s, keep_moments=True)
        axes = Canvas().add_subplot()
        probability_figure(validated(model, (X, y, s)).measure).draw(axes)
        marks.append(axes.lines[-1].get_xdata())
    assert marks[0] == pytest.approx(marks[1], abs=1e-3)
    assert len(marks[0]) > 3
