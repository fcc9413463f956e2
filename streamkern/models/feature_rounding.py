"""How much of a model's error is the rounding of its features, and what precision that asks for."""

import numpy as np

from streamkern._typing import Floats
from streamkern.features import LEVELS, bounds
from streamkern.predict.predictor import Predictor
from streamkern.statistics.centred_moments import AnyPrecision

# What `auto` tries, and the share of the squared error from which it takes the next finer.
ROUNDED: tuple[AnyPrecision, ...] = ("int8", "int16")
LARGEST_SHARE = 0.002
_FINER = {"int8": "int16", "int16": "double"}
# What the rounding of features usually is, in units of a level.
USUAL_ROUNDING = 12.0**-0.5


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
