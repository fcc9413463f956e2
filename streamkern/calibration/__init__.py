"""From scores of classes to their probabilities: how, and what that follows from."""

from streamkern.calibration.calibrators import (
    CALIBRATORS,
    AdditiveVotes,
    Calibrator,
    IsotonicSteps,
    PlainRule,
    PlattSigmoid,
)
from streamkern.calibration.fitting import METHODS, checked_method, fitted_calibrator
from streamkern.calibration.rule import ClassRule
from streamkern.calibration.score_sums import ScoreSums, sigmoid_of_sums

__all__ = [
    "CALIBRATORS",
    "METHODS",
    "AdditiveVotes",
    "Calibrator",
    "ClassRule",
    "IsotonicSteps",
    "PlainRule",
    "PlattSigmoid",
    "ScoreSums",
    "checked_method",
    "fitted_calibrator",
    "sigmoid_of_sums",
]
