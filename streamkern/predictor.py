"""A fitted linear function of features, and nothing more: what is sent to workers to predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamkern.features.base import cached_slices

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Predictor:
    """The function intercept + phi(x)^T coef.

    Parameters
    ----------
    feature_map : FeatureMap
        Drawn, of D features.
    coef : ndarray of shape (D, q), float64
    intercept : ndarray of shape (q,), float64
    precision : {'single', 'double'}
        Of the features; they are summed in double.
    flat : bool
        Predict (n,) for the single target.
    """

    feature_map: FeatureMap
    coef: Floats
    intercept: Floats
    precision: str = "single"
    flat: bool = False

    def predict(self, X: Array) -> Floats:
        """Return predictions (n, q) for rows (n, p), or (n,) where the predictor is flat.

        A row with a value that is not finite has the prediction NaN.

        Raises
        ------
        DataError
            If `X` has another number of columns than the model was fitted on.
        """
        self.feature_map.check(X.shape)
        dtype = np.float32 if self.precision == "single" else np.float64
        coef = self.coef * self.feature_map.scale
        predictions = np.empty((len(X), coef.shape[1]))
        buffer = np.empty((min(len(X), _ROWS_AT_ONCE), len(coef)), dtype=dtype)
        for start in range(0, len(X), _ROWS_AT_ONCE):
            rows = X[start : start + _ROWS_AT_ONCE]
            features = buffer[: len(rows)]
            with np.errstate(invalid="ignore", over="ignore"):
                self.feature_map.evaluate(rows, features)
                for part in cached_slices(len(rows), len(coef)):
                    predictions[start + part.start : start + part.stop] = features[part] @ coef
        predictions += self.intercept
        predictions[~np.isfinite(predictions)] = np.nan
        return predictions[:, 0] if self.flat else predictions
