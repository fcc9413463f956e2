"""A fitted model that needs NumPy alone: no scheduler, no files, no scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.predictor import Predictor


@dataclass(frozen=True)
class LocalModel:
    """What a fitted model predicts, in the calling thread; made by `to_local`.

    It has neither the moments nor the normal equations of the model, so it pickles in about
    8 D (p + q) bytes, half of that p for paired features.  To load the pickle and to predict, this
    package and NumPy are imported, and nothing else; for the kernel at landmarks SciPy too.

    Parameters
    ----------
    predictor : Predictor
    """

    predictor: Predictor

    @property
    def n_features_in_(self) -> int:
        """The number of inputs, p."""
        return self.predictor.feature_map.n_features

    def predict(self, X: Any) -> Floats:
        """Return predictions (n,) or (n, q) for rows (n, p), NaN for a row that is not finite.

        Raises
        ------
        DataError
            If `X` is no table of numbers with the columns that the model was fitted on.
        """
        rows = _table(X)
        self.predictor.feature_map.check(rows.shape)
        return self.predictor.predict(rows)

    def transform(self, X: Any) -> Floats:
        """Return the features (n, D) of rows (n, p): standardised, mapped, and scaled.

        Raises
        ------
        DataError
            As `predict`.
        """
        return self.predictor.feature_map.transform(_table(X))


def _table(X: Any) -> Array:
    rows = np.asarray(X)
    if rows.dtype.kind not in "fiu":
        raise DataError(
            f"X must hold floats or integers, but its type is {rows.dtype}; convert it to numbers "
            f"first."
        )
    return rows
