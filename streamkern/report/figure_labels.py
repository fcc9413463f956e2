"""Labels of figures: what the fields of reports and comparisons are called, and their formats."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Label(NamedTuple):
    text: str
    form: str = ""  # of one number; without it the terminal and the page have formats of their own


LABELS = {
    # A solution.
    "train_rmse": Label("training rmse"),
    "cv_rmse": Label("cross-validated rmse"),
    "loo_rmse": Label("leave-one-out rmse"),
    "effective_dof": Label("effective degrees of freedom"),
    "noise": Label("standard deviation of the noise"),
    "precision_floor": Label("precision floor of alpha"),
    "rounding_rmse": Label("rmse of the rounding of features"),
    # A search.
    "relative_mse": Label("Error on rows left out, in sd of y", "{:.4f}"),  # its root
    # Rounds of boosting.
    "train_error": Label("training error"),
    "train_error_bound": Label("training error, at most"),
    # Classes.
    "accuracy": Label("accuracy"),
    "cv_accuracy": Label("cross-validated accuracy"),
    "balanced_accuracy": Label("balanced accuracy"),
    "log_loss": Label("log loss"),
    "brier_score": Label("Brier score"),
    "expected_calibration_error": Label("expected calibration error"),
    "auc": Label("area under the curve"),
    # A comparison, whose labels are the headings of columns.
    "test_rmse": Label("test rmse", "{:#.4g}"),
    "relative_rmse": Label("over\nexact", "{:.3f}"),
    "kernel_error": Label("kernel\nerror", "{:.4f}"),
    "fit_seconds": Label("fit\ns", "{:.2f}"),
    "predict_seconds": Label("test\ns", "{:.3f}"),
    "matrix_megabytes": Label("matrix\nMB", "{:.3f}"),
}


def figure_row(
    field: str, figures: Mapping[str, Any], number: Callable[[Any], str]
) -> tuple[str, str]:
    """Return the label of a field, and its figure as `number` writes it."""
    return LABELS[field].text, number(figures[field])


def figure(field: str, value: float | None) -> str:
    """Return a figure in the format of its field, and nothing where it is None."""
    return "" if value is None else LABELS[field].form.format(value)
