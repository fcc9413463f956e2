"""What reports and evaluations say of classes, in rows of words."""

from collections.abc import Callable
from typing import Any

from streamkern.errors.formatting import listed
from streamkern.models.report_rows import Row
from streamkern.parameters.fit_report import FitReport

_MOST_VALUES = 5  # that are named
_ERRORS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "log_loss": "log loss",
    "brier_score": "Brier score",
    "expected_calibration_error": "expected calibration error",
}


def class_rows(report: FitReport) -> list[Row]:
    values, factors = report["classes"]["values"], report["class_factors"]
    weights = listed((f"{factor:.4g}" for factor in factors or ()), _MOST_VALUES)
    counts = listed((f"{n:,.10g}" for n in report.get("class_counts") or ()), _MOST_VALUES)
    each = "weight" if report.get("weights") else "rows"
    return [
        ("classes", f"{len(values):,}: {listed(values, _MOST_VALUES)}"),
        *([("weights of classes", weights)] if factors is not None else []),
        *([(f"{each} of each", counts)] if factors is None and counts else []),
        *([("calibration", report["calibration"])] if "calibration" in report else []),
        *([("cross-validated accuracy", _accuracy(report))] if "cv_accuracy" in report else []),
    ]


def _accuracy(report: FitReport) -> str:
    """Return the accuracy on rows left out, beside that of always saying the commonest class."""
    shown = f"{report['cv_accuracy']:.4f}"
    if counts := report.get("class_counts"):
        shown += f", where the commonest class alone has {max(counts) / sum(counts):.4f}"
    return shown


def set_rows(found: dict[str, Any] | None) -> list[Row]:
    """Return rows of what prediction sets hold, and of the class that they hold least often."""
    if found is None:
        return []
    worst = min(share for share in found["by_class"] if share is not None)
    held = f"{found['coverage']:.3g} of rows, {worst:.3g} of the class held least"
    return [(f"{100 * found['level']:.3g}% sets hold", f"{held}; {found['size']:.3g} classes each")]


def error_rows(found: dict[str, Any], number: Callable[[Any], str]) -> list[Row]:
    rows = [(words, number(found[name])) for name, words in _ERRORS.items()]
    if found["auc"] is not None:
        area = f"{number(found['auc'])}, within {found['auc_error']:.1g}"
        rows.append(("area under the curve", area))
    return rows
