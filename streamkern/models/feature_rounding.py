"""How much of a model's error is the rounding of its features, and what precision that asks for."""

from typing import TYPE_CHECKING

import numpy as np

from streamkern._typing import Floats
from streamkern.features import LEVELS, bounds, round_into
from streamkern.features.base import slices
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
# What the rounding of features usually is, in units of a level.
USUAL_ROUNDING = 12.0**-0.5
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
        precision, unit = model.outcome.precision, model.outcome.weight_unit
        return () if unit is None else (cls(model.predictor, LEVELS[precision], unit),)

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


def rounding_errors(predictor: Predictor, precision: str, rounding: float) -> Floats:
    """Return the root mean square of what rounding moves predictions by, (q,): sigma |w|."""
    feature_map, coef = predictor.feature_map, predictor.coef
    if precision not in LEVELS:
        return np.zeros(coef.shape[1])
    units = feature_map.scale * bounds(feature_map) / LEVELS[precision]
    return rounding * np.sqrt(units**2 @ coef**2)


def share_of_rounding(rounding: Floats, error: Floats) -> float:
    """Return the largest share that rounding has in the squared error of a target, both (q,)."""
    unknown = (rounding > 0).astype(float)
    return float(np.max(np.divide(rounding, error, out=unknown, where=error > 0)) ** 2)


def rounding_note(share: float, precision: str) -> str:
    """Return one sentence where another precision may predict better, else ''."""
    if share <= LARGEST_SHARE:
        return ""
    finer = _FINER.get(precision)
    return (
        f"rounding features to {precision} makes {100 * min(share, 1.0):.3g}% of the squared "
        f"error: precision '{finer}' (--precision {finer}) may predict better."
    )
