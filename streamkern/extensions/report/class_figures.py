"""Pictures and tables of predictions of held-out rows' classes: calibration, ROC, confusion."""

from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors.formatting import printable
from streamkern.extensions.report import pictures
from streamkern.extensions.report.numbers import percent, shortened
from streamkern.extensions.report.pictures import Figure
from streamkern.extensions.report.prediction_figures import ROWS_A_MEAN, SQUARE
from streamkern.models.report_rows import Table

# Classes that have a row and a column in tables.
_MOST_CLASSES = 12


def class_figures(errors: Any) -> list[Figure]:
    two = [precision_figure(errors), threshold_figure(errors)] if errors.n_classes == 2 else []
    return [probability_figure(errors), roc_figure(errors), *two, share_figure(errors)]


def class_names(errors: Any) -> list[str]:
    values = errors.rule.classes.values.tolist()
    return [shortened(printable(str(value))) for value in values]


def confusion_table(errors: Any) -> Table:
    """Return the weights of rows of the largest classes, by the class predicted."""
    confusion, shown, names = errors.confusion, _largest(errors), class_names(errors)
    of_class, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    rows = [
        (
            names[k],
            *(f"{confusion[k, other]:,.10g}" for other in shown),
            *(percent(confusion[k, k] / n[k]) if n[k] else "–" for n in (of_class, predicted)),
        )
        for k in shown
    ]
    return Table(("class", *(names[k] for k in shown), "recall", "precision"), rows)


def probability_figure(errors: Any) -> Figure:
    """Draw shares of rows over the probabilities that they were given."""
    two = errors.n_classes == 2
    weight, sums, of_class, n_rows = errors.by_probability.sum(axis=0)
    known = (n_rows >= ROWS_A_MEAN) & (weight > 0)

    def draw(axes: Any) -> None:
        name = class_names(errors)[1] if two else "a class"
        pictures.share_axes(axes, f"Probability of {name}", "Share of rows that are of it")
        axes.axline((0.0, 0.0), slope=1.0, **pictures.GUIDE)
        axes.plot(sums[known] / weight[known], of_class[known] / weight[known], "o-")

    caption = (
        f"On the dashed line probabilities are true: of rows that get 80%, 80% are of the class. "
        f"Marks are of bins with {ROWS_A_MEAN} rows or more"
        f"{'' if two else ', all classes together'}."
    )
    return Figure("Calibration", caption, draw, SQUARE)


def roc_figure(errors: Any) -> Figure:
    """Draw the ROC curve of the second of two classes, or of each of the largest."""
    held, areas, names = errors.confusion.sum(axis=1), errors.table.auc, class_names(errors)
    if len(names) == 2:
        places = {names[1]: 0}
    else:
        places = {names[k]: k for k in _largest(errors) if held[k] > 0}
    shown = list(places.items())[: pictures.MOST_LINES]

    def draw(axes: Any) -> None:
        pictures.share_axes(axes, "False positive rate", "True positive rate")
        axes.axline((0.0, 0.0), slope=1.0, **pictures.GUIDE)
        weights = errors.table.weights
        pictures.draw_lines(
            axes, {name: (_above(weights[k][0]), _above(weights[k][1])) for name, k in shown}
        )

    said = ", ".join(f"{areas[k]:.3f} of {name}" for name, k in shown)
    caption = (
        f"Every point is another score from which on a row is taken for one of the class. The area "
        f"under the curve is {said}; on the dashed line scores tell nothing."
    )
    return Figure("ROC curve", caption, draw, SQUARE)


def precision_figure(errors: Any) -> Figure:
    """Draw precision over recall of the second of two classes."""
    others, of_class = (np.cumsum(each[::-1]) for each in errors.table.weights[0])
    known, name = of_class > 0, class_names(errors)[1]
    share = of_class[-1] / max(of_class[-1] + others[-1], 1e-300)

    def draw(axes: Any) -> None:
        pictures.share_axes(axes, f"Recall of {name}", "Precision")
        axes.axhline(share, **pictures.GUIDE)
        recall = of_class[known] / max(of_class[-1], 1e-300)
        axes.plot(recall, (of_class / (of_class + others + 1e-300))[known])

    caption = (
        f"Of the rows that are taken for {name}, the share that are; over the share of {name} that "
        f"is found. On the dashed line, {percent(share)}, rows are taken at random."
    )
    return Figure("Precision and recall", caption, draw, SQUARE)


def threshold_figure(errors: Any) -> Figure:
    """Draw what the probability does from which on rows are taken for the second class."""
    weight, _, of_class, _ = errors.by_probability[0]
    taken, right = (np.append(np.cumsum(each[::-1])[::-1], 0.0) for each in (weight, of_class))
    known, thresholds = taken > 0, np.linspace(0.0, 1.0, len(taken))
    accuracy = (weight.sum() - taken - of_class.sum() + 2.0 * right) / weight.sum()
    lines = {
        "precision": (thresholds, np.where(known, right / np.where(known, taken, 1.0), np.nan)),
        "recall": (thresholds, right / max(of_class.sum(), 1e-300)),
        "accuracy": (thresholds, accuracy),
    }

    def draw(axes: Any) -> None:
        pictures.share_axes(
            axes, f"Probability from which on it is {class_names(errors)[1]}", "Share"
        )
        pictures.draw_lines(axes, lines)

    caption = (
        f"The model takes a row for the more probable class, at 50%. Another threshold gives "
        f"another balance; the best accuracy here is {percent(float(accuracy.max()))}, at "
        f"{percent(thresholds[int(accuracy.argmax())], 0)}."
    )
    return Figure("The threshold", caption, draw, SQUARE)


def share_figure(errors: Any) -> Figure:
    held, shown, names = errors.confusion.sum(axis=1), _largest(errors), class_names(errors)

    def draw(axes: Any) -> None:
        shares = (held[shown] / held.sum()).tolist()
        pictures.bars(axes, [names[k] for k in shown], shares, "Share of rows")

    return Figure("Classes", "The rows of each class.", draw, 0.9 + 0.25 * len(shown))


def _above(weights: Floats) -> Floats:
    """Return the share of the weight that is in each bin or above it, from 0 to 1."""
    above: Floats = np.concatenate([[0.0], np.cumsum(weights[::-1])])
    return above / above[-1] if above[-1] else above


def _largest(errors: Any) -> list[int]:
    """Return the places of the classes with the largest weight, in their own order."""
    held: Array = errors.confusion.sum(axis=1)
    return sorted(np.argsort(-held, kind="stable")[:_MOST_CLASSES].tolist())
