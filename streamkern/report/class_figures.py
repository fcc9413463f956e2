"""Charts and tables of a classifier's errors on held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.report.drawing import KINDS, Axis, Figure, Plot
from streamkern.report.numbers import number, percent
from streamkern.report.report_rows import class_error_rows
from streamkern.report.trial_tables import Table

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.report.validation_pass import ClassValidation

# Classes that have a row and a column in tables.
_MOST_CLASSES = 12
# Bins with fewer rows say little of a share.
_FEWEST = 30
_SHARES = Axis(-0.02, 1.02, ticks=[(x, percent(x, 0)) for x in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)])


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
            ("Accuracy, held out", percent(errors.accuracy), f"{percent(most)} by guessing"),
            ("Area under the curve", auc, "1 is best, 0.5 chance"),
            ("Calibration error", percent(errors.calibration_error, 2), "of probabilities"),
        ],
        "class_figures": [probability_figure(found), roc_figure(found)],
        "class_errors": class_error_rows(values, number),
        "confusion": confusion_table(found),
        "classes_shown": more,
    }


def confusion_table(found: ClassValidation) -> Table:
    """Return the table of the largest classes, by the class predicted."""
    confusion, shown = found.errors.confusion, _largest(found)
    of_class, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    rows = [
        (
            found.names[k],
            *(number(_whole(confusion[k, other])) for other in shown),
            *(percent(confusion[k, k] / n[k]) if n[k] else "–" for n in (of_class, predicted)),
        )
        for k in shown
    ]
    return Table(("class", *(found.names[k] for k in shown), "recall", "precision"), rows)


def probability_figure(found: ClassValidation) -> Figure:
    """Draw shares of rows over the probabilities that they were given."""
    two = len(found.names) == 2
    name, share = found.names[1] if two else "a class", "Share of rows that are of it"
    plot = Plot(_SHARES, _SHARES, x_label=f"Probability of {name}", y_label=share, height=280.0)
    plot.line([0.0, 1.0], [0.0, 1.0], "guide")
    weight, sums, of_class, n_rows = found.errors.by_probability.sum(axis=0)
    known = (n_rows >= _FEWEST) & (weight > 0)
    plot.series(sums[known] / weight[known], of_class[known] / weight[known])
    caption = (
        f"On the dashed line probabilities are true: of rows that get 80%, 80% are of the class. "
        f"Marks are of bins with {_FEWEST} rows or more"
        f"{'' if two else ', all classes together'}."
    )
    return plot.figure("Calibration", caption)


def roc_figure(found: ClassValidation) -> Figure:
    """Draw the receiver operating characteristic of the largest classes."""
    held, areas = found.errors.confusion.sum(axis=1), found.errors.table.auc
    classes = [1] if len(found.names) == 2 else [k for k in _largest(found) if held[k] > 0]
    y_label = "True positive rate" + f" of {found.names[classes[0]]}" * (len(classes) == 1)
    plot = Plot(_SHARES, _SHARES, x_label="False positive rate", y_label=y_label, height=280.0)
    plot.line([0.0, 1.0], [0.0, 1.0], "guide")
    said = []
    for j, k in enumerate(classes[: len(KINDS)]):
        place = 0 if len(found.names) == 2 else k
        xs, ys = map(_above, found.errors.table.weights[place])
        plot.line(xs, ys, f"line {KINDS[j]}")
        said.append(f"{areas[place]:.3f}")
        if len(classes) > 1:
            middle = int(np.searchsorted(xs, 0.1 * (j + 1)))
            plot.label(found.names[k], xs[middle], ys[middle], dy=14.0)
            said[-1] += f" ({found.names[k]})"
    caption = (
        f"Every point is another score from which on a row is taken for one of the class. The area "
        f"under the curve is {', '.join(said)}; on the dashed line scores tell nothing."
    )
    return plot.figure("ROC curve", caption)


def _above(weights: Floats) -> Floats:
    """Return the share of the weight that is in each bin or above it, from 0 to 1."""
    above: Floats = np.concatenate([[0.0], np.cumsum(weights[::-1])])
    return above / above[-1] if above[-1] else above


def _largest(found: ClassValidation) -> list[int]:
    """Return the places of the classes with the largest weight, in their own order."""
    held: Array = found.errors.confusion.sum(axis=1)
    return sorted(np.argsort(-held, kind="stable")[:_MOST_CLASSES].tolist())


def _whole(weight: float) -> float | int:
    """Return a weight as a whole number where it is one, up to rounding."""
    whole = round(weight)
    return whole if abs(weight - whole) <= 1e-9 * max(weight, 1.0) else float(weight)
