"""Charts and tables of predictions of held-out rows' classes: calibration, ROC, confusion."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import compute, delayed
from streamkern.errors.formatting import printable
from streamkern.predict.class_errors import ClassErrors
from streamkern.report import chart_marks as chart
from streamkern.report.held_out_rows import linear_accuracy, place_of
from streamkern.report.numbers import number, percent, shortened
from streamkern.report.prediction_figures import ROWS_A_MEAN, SQUARE
from streamkern.report.rendering import Figure
from streamkern.report.report_rows import class_error_rows
from streamkern.report.trial_tables import Table
from streamkern.report.validation_pass import Validation

# Classes that have a row and a column in tables.
_MOST_CLASSES = 12


def class_section(found: Validation | None, data: Mapping[str, Any]) -> dict[str, Any]:
    if found is None:
        return {"tiles": []}
    errors: ClassErrors = found.measure
    n_classes = errors.n_classes
    most = errors.confusion.sum(axis=1).max() / errors.weight
    auc = "–" if errors.auc is None else f"{errors.auc:.3f}"
    more = f", the largest {_MOST_CLASSES} of {n_classes:,}" if n_classes > _MOST_CLASSES else ""
    linear = compute(delayed(linear_accuracy, found.sample, errors, name="linear"))
    accuracies = {"this model": errors.accuracy, "linear ridge": linear, "the largest class": most}
    figures = [probability_figure(errors), roc_figure(errors)]
    figures += [precision_figure(errors), threshold_figure(errors)] if n_classes == 2 else []
    return {
        "baseline": [(name, percent(each), each) for name, each in accuracies.items()],
        "worst": _worst_rows(found, data, _names(errors)),
        "tiles": [
            ("Accuracy, held out", percent(errors.accuracy), f"{percent(linear)} by linear ridge"),
            ("Area under the curve", auc, "1 is best, 0.5 chance"),
            ("Calibration error", percent(errors.calibration_error, 2), "of probabilities"),
        ],
        "class_figures": [*figures, class_figure(errors)],
        "class_errors": class_error_rows(errors.figures(), number),
        "confusion": confusion_table(errors),
        "classes_shown": more,
    }


def _names(errors: ClassErrors) -> list[str]:
    values = errors.rule.classes.values.tolist()
    return [shortened(printable(str(value))) for value in values]


def _worst_rows(found: Validation, data: Mapping[str, Any], names: list[str]) -> Table:
    """Return the rows whose own class got the least probability."""
    rows = [
        (place_of(data, place), names[int(facts[0])], names[int(facts[1])], percent(facts[2], 2))
        for place, facts in zip(found.worst.places.tolist(), found.worst.facts, strict=True)
    ]
    return Table(("row", "class", "predicted", "probability of its class"), rows)


def confusion_table(errors: ClassErrors) -> Table:
    confusion, shown, names = errors.confusion, _largest(errors), _names(errors)
    of_class, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    rows = [
        (
            names[k],
            *(number(_whole(confusion[k, other])) for other in shown),
            *(percent(confusion[k, k] / n[k]) if n[k] else "–" for n in (of_class, predicted)),
        )
        for k in shown
    ]
    return Table(("class", *(names[k] for k in shown), "recall", "precision"), rows)


def probability_figure(errors: ClassErrors) -> Figure:
    """Draw shares of rows over the probabilities that they were given."""
    two = errors.n_classes == 2
    weight, sums, of_class, n_rows = errors.by_probability.sum(axis=0)
    known = (n_rows >= ROWS_A_MEAN) & (weight > 0)

    def draw(axes: Any) -> None:
        name = _names(errors)[1] if two else "a class"
        chart.share_axes(axes, f"Probability of {name}", "Share of rows that are of it")
        chart.guide(axes, [0.0, 1.0], [0.0, 1.0])
        chart.series(axes, sums[known] / weight[known], of_class[known] / weight[known])

    caption = (
        f"On the dashed line probabilities are true: of rows that get 80%, 80% are of the class. "
        f"Marks are of bins with {ROWS_A_MEAN} rows or more"
        f"{'' if two else ', all classes together'}."
    )
    return Figure("Calibration", caption, draw, SQUARE)


def roc_figure(errors: ClassErrors) -> Figure:
    held, areas, names = errors.confusion.sum(axis=1), errors.table.auc, _names(errors)
    classes = [1] if len(names) == 2 else [k for k in _largest(errors) if held[k] > 0]
    y_label = "True positive rate" + f" of {names[classes[0]]}" * (len(classes) == 1)
    shown = [(k, 0 if len(names) == 2 else k) for k in classes[: len(chart.KINDS)]]

    def draw(axes: Any) -> None:
        chart.share_axes(axes, "False positive rate", y_label)
        chart.guide(axes, [0.0, 1.0], [0.0, 1.0])
        for j, (k, place) in enumerate(shown):
            xs, ys = map(_above, errors.table.weights[place])
            chart.line(axes, xs, ys, j)
            if len(classes) > 1:
                middle = int(np.searchsorted(xs, 0.1 * (j + 1)))
                chart.label(axes, names[k], xs[middle], ys[middle], down=14.0, j=j)

    said = [f"{areas[place]:.3f}" + f" ({names[k]})" * (len(classes) > 1) for k, place in shown]
    caption = (
        f"Every point is another score from which on a row is taken for one of the class. The area "
        f"under the curve is {', '.join(said)}; on the dashed line scores tell nothing."
    )
    return Figure("ROC curve", caption, draw, SQUARE)


def precision_figure(errors: ClassErrors) -> Figure:
    """Draw precision over recall of the second of two classes."""
    others, of_class = (np.cumsum(each[::-1]) for each in errors.table.weights[0])
    known, name = of_class > 0, _names(errors)[1]
    share = of_class[-1] / max(of_class[-1] + others[-1], 1e-300)

    def draw(axes: Any) -> None:
        chart.share_axes(axes, f"Recall of {name}", "Precision")
        chart.guide(axes, [0.0, 1.0], [share, share])
        recall = of_class[known] / max(of_class[-1], 1e-300)
        chart.line(axes, recall, (of_class / (of_class + others + 1e-300))[known])

    caption = (
        f"Of the rows that are taken for {name}, the share that are; over the share of {name} that "
        f"is found. On the dashed line, {percent(share)}, rows are taken at random."
    )
    return Figure("Precision and recall", caption, draw, SQUARE)


def threshold_figure(errors: ClassErrors) -> Figure:
    """Draw what the probability does from which on rows are taken for the second class."""
    weight, _, of_class, _ = errors.by_probability[0]
    taken, right = (np.append(np.cumsum(each[::-1])[::-1], 0.0) for each in (weight, of_class))
    known, thresholds = taken > 0, np.linspace(0.0, 1.0, len(taken))
    accuracy = (weight.sum() - taken - of_class.sum() + 2.0 * right) / weight.sum()
    lines = {
        "precision": np.where(known, right / np.where(known, taken, 1.0), np.nan),
        "recall": right / max(of_class.sum(), 1e-300),
        "accuracy": accuracy,
    }

    def draw(axes: Any) -> None:
        chart.share_axes(axes, f"Probability from which on it is {_names(errors)[1]}", "Share")
        for j, (name, values) in enumerate(lines.items()):
            chart.line(axes, thresholds, values, j)
            at = (3, 14, 18)[j]
            chart.label(axes, name, thresholds[at], values[at], down=14.0, j=j)

    caption = (
        f"The model takes a row for the more probable class, at 50%. Another threshold gives "
        f"another balance; the best accuracy here is {percent(float(accuracy.max()))}, at "
        f"{percent(thresholds[int(accuracy.argmax())], 0)}."
    )
    return Figure("The threshold", caption, draw, SQUARE)


def class_figure(errors: ClassErrors) -> Figure:
    held, shown, names = errors.confusion.sum(axis=1), _largest(errors), _names(errors)

    def draw(axes: Any) -> None:
        chart.bars(axes, [names[k] for k in shown], (held[shown] / held.sum()).tolist())
        chart.name_axes(axes, "Share of rows", "", "x")

    return Figure("Classes", "The rows of each class.", draw, 90.0 + 22.0 * len(shown))


def _above(weights: Floats) -> Floats:
    """Return the share of the weight that is in each bin or above it, from 0 to 1."""
    above: Floats = np.concatenate([[0.0], np.cumsum(weights[::-1])])
    return above / above[-1] if above[-1] else above


def _largest(errors: ClassErrors) -> list[int]:
    """Return the places of the classes with the largest weight, in their own order."""
    held: Array = errors.confusion.sum(axis=1)
    return sorted(np.argsort(-held, kind="stable")[:_MOST_CLASSES].tolist())


def _whole(weight: float) -> float | int:
    """Return a weight as a whole number where it is one, up to rounding."""
    whole = round(weight)
    return whole if abs(weight - whole) <= 1e-9 * max(weight, 1.0) else float(weight)
