"""How much of a model's error is the rounding of its features, and what precision that asks for."""

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern._typing import Floats
from streamkern.features import LEVELS, FeatureMap, bounds, round_into
from streamkern.features.base import slices
from streamkern.parameters.fit_report import FitReport
from streamkern.predict.evaluation import Measure
from streamkern.predict.predictor import Predictor
from streamkern.runtime.scratch import Scratch
from streamkern.sources import Block
from streamkern.statistics import total
from streamkern.statistics.centred_moments import AnyPrecision

if TYPE_CHECKING:
    from streamkern.models.fitted_ridge import FittedRidge

# What `auto` tries, and the share of the squared error from which it takes the next finer.
ROUNDED: tuple[AnyPrecision, ...] = ("int8", "int16")
LARGEST_SHARE = 0.002
_FINER = {"int8": "int16", "int16": "double"}
# What the rounding of features usually is.
_USUAL = 12.0**-0.5
# Rows whose rounded features are held at once.
_ROWS = 512


class RoundedErrors(Measure):
    """Sums of weights and of squared errors (q,), of rounded weights and features as in a fit."""

    predictor: Predictor
    levels: int
    weight_unit: float
    weight: float = total()
    squared: Floats = total("predictor.n_targets")

    @classmethod
    def of(cls, model: "FittedRidge") -> "tuple[RoundedErrors, ...]":
        """Return what measures the rows of a model as integers, for one that was fitted so."""
        precision, unit = model.report["precision"], model.report.get("weight_unit")
        if unit is None or model.report["errors_from"] != "moments":
            return ()
        return (cls(model.predictor, LEVELS[precision], unit),)

    def add(self, rows: Block, predicted: Floats) -> None:  # noqa: ARG002  of features as they are
        feature_map, coef = self.predictor.feature_map, self.predictor.coef
        unit = feature_map.scale * bounds(feature_map) / self.levels
        weights = np.rint(rows.each_weight() / self.weight_unit) * self.weight_unit
        self.weight += float(weights.sum())
        for some in slices(len(rows), _ROWS):
            rounded = np.empty((len(coef), some.stop - some.start), np.int16)
            round_into(feature_map, rows.X[some], self.levels, rounded, Scratch())
            made = self.predictor.intercept + rounded.T @ (unit[:, None] * coef)
            self.squared += weights[some] @ (rows.y[some] - made) ** 2


def rounding_errors(feature_map: FeatureMap, report: FitReport, coef: Floats) -> Floats:
    """Return the root mean square of what rounding moves predictions by, (q,): sigma |w|."""
    if report["precision"] not in LEVELS:
        return np.zeros(coef.shape[1])
    units = feature_map.scale * bounds(feature_map) / LEVELS[report["precision"]]
    return report.get("feature_rounding", _USUAL) * np.sqrt(units**2 @ coef**2)


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
