"""From scores to classes and their probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError
from streamkern.predict.calibrators import CALIBRATORS, Calibrator
from streamkern.sources.class_labels import Classes

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats


def codes_of(values: Floats) -> Array:
    """Return the place of the class of every row, (n,), by scores or targets (n, q).

    It is that of the largest, or by the sign of the single one: True is the second of two.
    """
    codes: Array = values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] > 0) * 1
    return codes


@dataclass(frozen=True)
class ClassRule:
    """How classes and probabilities follow from scores (n, q), one class against the rest.

    q is K, but 1 for two classes.  The probabilities of more classes than two are those of each
    against the rest, divided by their sum.
    """

    classes: Classes
    calibrator: Calibrator

    def decisions(self, scores: Floats) -> Floats:
        """Return what classes are chosen by, (n, q)."""
        return self.calibrator.decisions(scores)

    def plain_decisions(self, scores: Floats) -> Floats:
        """Return the same as scikit-learn does: (n,) for two classes, else (n, K)."""
        decisions = self.decisions(scores)
        return decisions[:, 0] if len(self.classes) == 2 else decisions

    def codes(self, scores: Floats) -> Array:
        """Return the place of the chosen class among the classes, (n,)."""
        return codes_of(self.decisions(scores))

    def labels(self, scores: Floats) -> Array:
        """Return the chosen classes (n,); raise DataError if a score is not finite."""
        unknown = ~np.isfinite(scores).all(axis=1)
        if unknown.any():
            raise DataError(
                f"{unknown.sum():,} of {len(scores):,} rows have no finite score, and so no class, "
                f"because their inputs are NaN, infinite or overflow; leave them out."
            )
        chosen: Array = self.classes.values[self.codes(scores)]
        return chosen

    def log_probabilities(self, scores: Floats) -> Floats:
        """Return the logarithms of the probabilities of the classes, (n, K), NaN as scores are."""
        odds = self.calibrator.log_odds(scores)
        if len(self.classes) == 2:
            odds = np.column_stack([-odds[:, 0], odds[:, 0]])
        with np.errstate(invalid="ignore"):  # rows without a score
            logs: Floats = -np.logaddexp(0.0, -odds)
            if len(self.classes) > 2:
                logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
        return logs

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probabilities of the classes, (n, K)."""
        return np.exp(self.log_probabilities(scores))

    def as_dict(self) -> dict[str, Any]:
        """Return classes and calibration as plain JSON values."""
        return {
            "classes": self.classes.as_dict(),
            "calibration": self.calibrator.name,
            "calibration_parameters": self.calibrator.as_dict(),
        }

    @classmethod
    def from_dict(cls, described: dict[str, Any]) -> ClassRule:
        """Return the rule that `as_dict` described; errors are those of `WRONG_VALUES`."""
        classes = Classes.from_dict(described["classes"])
        calibrator = CALIBRATORS[described["calibration"]]
        parameters = described["calibration_parameters"]
        return cls(classes, calibrator.from_dict(parameters, classes.n_targets))
