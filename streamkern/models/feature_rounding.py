"""How much of a model's error is the rounding of its features, and what precision that asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from streamkern.parameters.fit_report import FitReport
    from streamkern.statistics.centred_moments import AnyPrecision

# What `auto` tries, and the share of the squared error from which it takes the next finer.
ROUNDED: tuple[AnyPrecision, ...] = ("int8", "int16")
LARGEST_SHARE = 0.002
_FINER = {"int8": "int16", "int16": "double"}


def share_of_rounding(report: FitReport) -> float:
    """Return the largest share that rounding has in a target's squared error, 0 without any.

    That is of rows left out, or of training rows where none were.
    """
    if "rounding_rmse" not in report:
        return 0.0
    whole: Any = report["train_rmse"] if report["cv_rmse"] is None else report["cv_rmse"]
    rounding, error = np.atleast_1d(report["rounding_rmse"]), np.atleast_1d(whole)
    unknown = (rounding > 0).astype(float)
    return float(np.max(np.divide(rounding, error, out=unknown, where=error > 0)) ** 2)


def rounding_note(report: FitReport) -> str:
    """Return one sentence where another precision may predict better, else ''."""
    share, finer = share_of_rounding(report), _FINER.get(report["precision"])
    if share <= LARGEST_SHARE:
        return ""
    return (
        f"rounding features to {report['precision']} makes {100 * min(share, 1.0):.3g}% of the "
        f"squared error: precision '{finer}' (--precision {finer}) may predict better."
    )
