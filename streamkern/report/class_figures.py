"""Validation of a classifier: its errors on held-out rows, in one more light reading of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.errors.formatting import printable
from streamkern.models.held_out_predictors import unseen_by
from streamkern.predict.class_errors import ClassErrors
from streamkern.predict.evaluation import Evaluation, FoldPredictors, PredictionErrors
from streamkern.report.axes import Axis
from streamkern.report.drawing import KINDS, Figure, Plot
from streamkern.report.numbers import number, percent
from streamkern.report.page_facts import Tile
from streamkern.report.report_rows import class_error_rows
from streamkern.report.trial_tables import Table
from streamkern.report.validation_pass import check_held_out, folds_of_rows, read, sample_left_out
from streamkern.sources import Block

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.models.fitted_classes import FittedClassifier
    from streamkern.sources import LabelledSource

# Classes that have a line in pictures, and a row and a column in tables.
_MOST_CLASSES = 12
# Of a class, no longer than this.
_LONGEST = 24
# Bins with fewer rows say little of a share.
_FEWEST = 30
_SHARES = [(x, percent(x, 0)) for x in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]


class ClassValidation(NamedTuple):
    """Errors on held-out rows, of models without their folds or without each row."""

    by_fold: bool
    n_rows: int
    errors: ClassErrors
    names: list[str]


def validated_classes(model: FittedClassifier, source: LabelledSource) -> ClassValidation | None:
    """Predict the classes of the rows of a fit by models that have not seen them.

    Returns None if every row determines its own prediction; raises DataError for other rows.
    """
    ridge, rule, factors = model.ridge, model.rule, model.class_factors
    names = [_name(value) for value in rule.classes.values.tolist()]
    folds, errors = folds_of_rows(ridge, source), ClassErrors(rule, factors)
    if folds is None:
        rows = sample_left_out(ridge, source)
        if not len(rows.y):
            return None
        errors.add(Block(rows.y[:, :0], rows.y, 0, rows.weights), rows.y - rows.residuals)
        return ClassValidation(False, len(rows.y), errors, names)
    unseen = unseen_by(ridge, folds)
    squared = PredictionErrors(rule.classes.n_targets)
    held_out = Evaluation(FoldPredictors(unseen.rule, unseen.predictors), errors, squared)
    evaluation, _, columns = read(ridge, source, held_out)
    errors, squared = evaluation.measures
    check_held_out(ridge, columns, squared.squared, unseen.errors)
    return ClassValidation(True, ridge.report["rows"], errors, names)


def class_section(found: ClassValidation) -> dict[str, Any]:
    """Return what the page shows of predictions of classes."""
    errors, n_classes = found.errors, len(found.names)
    most = errors.confusion.sum(axis=1).max() / errors.weight
    auc = "–" if errors.auc is None else f"{errors.auc:.3f}"
    named = ("accuracy", "balanced_accuracy", "log_loss", "brier_score", "auc", "auc_error")
    values = {name: getattr(errors, name) for name in named}
    values["expected_calibration_error"] = errors.calibration_error
    more = f", the largest {_MOST_CLASSES} of {n_classes:,}" if n_classes > _MOST_CLASSES else ""
    return {
        "tiles": [
            Tile("Accuracy, held out", percent(errors.accuracy), f"{percent(most)} by guessing"),
            Tile("Area under the curve", auc, "1 is best, 0.5 chance"),
            Tile("Calibration error", percent(errors.calibration_error, 2), "of probabilities"),
        ],
        "class_figures": class_figures(found),
        "class_errors": class_error_rows(values, number),
        "confusion": confusion_table(found),
        "classes_shown": more,
    }


def confusion_table(found: ClassValidation) -> Table:
    """Return the table of the largest classes, by the class predicted."""
    confusion = found.errors.confusion
    of_class, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    shown = _largest(found)
    rows = [
        (
            found.names[k],
            *(number(_whole(confusion[k, other])) for other in shown),
            _share(confusion[k, k], of_class[k]),
            _share(confusion[k, k], predicted[k]),
        )
        for k in shown
    ]
    return Table(("class", *(found.names[k] for k in shown), "recall", "precision"), rows)


def class_figures(found: ClassValidation) -> list[Figure]:
    """Draw probabilities beside shares, and the receiver operating characteristic."""
    return [_probabilities(found), _ranks(found)]


def _probabilities(found: ClassValidation) -> Figure:
    two = len(found.names) == 2
    plot = Plot(
        Axis(-0.02, 1.02, ticks=_SHARES),
        Axis(-0.02, 1.02, ticks=_SHARES),
        x_label=f"Probability of {found.names[1]}" if two else "Probability of a class",
        y_label="Share of rows that are of it",
        height=280.0,
    )
    plot.line([0.0, 1.0], [0.0, 1.0], "guide")
    weight, sums, of_class, n_rows = found.errors.by_probability.sum(axis=0)
    known = (n_rows >= _FEWEST) & (weight > 0)
    xs, ys = sums[known] / weight[known], of_class[known] / weight[known]
    plot.line(xs, ys, f"line {KINDS[0]}")
    plot.marks(xs, ys, f"mark {KINDS[0]}")
    caption = (
        f"On the dashed line probabilities are true: of rows that get 80%, 80% are of the class. "
        f"Marks are of bins with {_FEWEST} rows or more"
        f"{'' if two else ', all classes together'}."
    )
    return plot.figure("Calibration", caption)


def _ranks(found: ClassValidation) -> Figure:
    places, areas = _drawn(found), found.errors.table.auc
    plot = Plot(
        Axis(-0.02, 1.02, ticks=_SHARES),
        Axis(-0.02, 1.02, ticks=_SHARES),
        x_label="False positive rate",
        y_label="True positive rate" + (f" of {places[0][0]}" if len(places) == 1 else ""),
        height=280.0,
    )
    plot.line([0.0, 1.0], [0.0, 1.0], "guide")
    said = []
    for kind, (name, j) in enumerate(places):
        others, of_class = found.errors.table.weights[j]
        xs, ys = _above(others), _above(of_class)
        plot.line(xs, ys, f"line {KINDS[kind]}")
        if len(places) > 1:
            middle = int(np.searchsorted(xs, 0.1 * (kind + 1)))
            plot.label(name, xs[middle], ys[middle], dy=14.0)
        said.append(f"{areas[j]:.3f}" + (f" ({name})" if len(places) > 1 else ""))
    caption = (
        f"Every point is another score from which on a row is taken for one of the class. The area "
        f"under the curve is {', '.join(said)}; on the dashed line scores tell nothing."
    )
    return plot.figure("ROC curve", caption)


def _above(weights: Floats) -> Floats:
    """Return the share of the weight that is in each bin or above it, from 0 to 1."""
    above = np.concatenate([[0.0], np.cumsum(weights[::-1])])
    shares: Floats = above / above[-1] if above[-1] else above
    return shares


def _drawn(found: ClassValidation) -> list[tuple[str, int]]:
    """Return the classes that have a line, with their places among the scores."""
    if len(found.names) == 2:
        return [(found.names[1], 0)]
    held = found.errors.confusion.sum(axis=1)
    return [(found.names[k], k) for k in _largest(found) if held[k] > 0][: len(KINDS)]


def _largest(found: ClassValidation) -> list[int]:
    """Return the places of the classes with the largest weight, in their own order."""
    held: Array = found.errors.confusion.sum(axis=1)
    return sorted(np.argsort(-held, kind="stable")[:_MOST_CLASSES].tolist())


def _name(value: object) -> str:
    name = printable(str(value))
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _whole(weight: float) -> float | int:
    """Return a weight as a whole number where it is one, up to rounding."""
    whole = round(weight)
    return whole if abs(weight - whole) <= 1e-9 * max(weight, 1.0) else float(weight)


def _share(part: float, whole: float) -> str:
    return percent(part / whole) if whole else "–"
