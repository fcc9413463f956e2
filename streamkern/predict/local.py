"""A fitted model that needs NumPy alone: no scheduler, no files, no scikit-learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamkern.errors import DataError
from streamkern.sources.lazy import as_table

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.predict.class_rule import ClassRule
    from streamkern.predict.predictor import Predictor


@dataclass(frozen=True)
class Local(ABC):
    """What a fitted model predicts, in the calling thread; made by `to_local`.

    It has neither the moments nor the normal equations of the model, so it pickles in about
    8 D (p + q) bytes, half of that p for paired features.  To load the pickle and to predict, this
    package and NumPy are imported, and nothing else; for the kernel at landmarks SciPy too.

    Parameters
    ----------
    predictor : Predictor
    feature_names : tuple of str, optional
        What the columns of data frames must be called, in this order.
    """

    predictor: Predictor
    feature_names: tuple[str, ...] | None = field(default=None, kw_only=True)

    @property
    def n_features_in_(self) -> int:
        """The number of inputs, p."""
        return self.predictor.feature_map.n_features

    @abstractmethod
    def predict(self, X: Any) -> Array:
        """Return predictions for rows (n, p).

        Raises
        ------
        DataError
            If `X` is no table of numbers with the columns that the model was fitted on.
        """

    def predicted(self, X: Any) -> Floats:
        """Return the function (n,) or (n, q) of rows (n, p), NaN for a row that is not finite."""
        rows = self._table(X)
        self.predictor.feature_map.check(rows.shape)
        return self.predictor.predict(rows)

    def _table(self, X: Any) -> Array:
        rows, names = as_table("X", X), getattr(X, "columns", None)
        if rows.dtype.kind not in "fiu":
            raise DataError(
                f"X must hold floats or integers, but its type is {rows.dtype}; convert it to "
                f"numbers first."
            )
        expected = self.feature_names
        if names is not None and expected is not None and tuple(names) != expected:
            raise DataError(
                f"the columns must be {', '.join(expected)}, but are "
                f"{', '.join(map(str, names))}; give them in that order."
            )
        return rows

    def transform(self, X: Any) -> Floats:
        """Return the features (n, D) of rows (n, p): standardised, mapped, and scaled.

        Raises
        ------
        DataError
            As `predict`.
        """
        return self.predictor.feature_map.transform(self._table(X))


@dataclass(frozen=True)
class LocalModel(Local):
    """What a fitted regression predicts; the rest is as in `Local`."""

    def predict(self, X: Any) -> Floats:
        """Return predictions (n,) or (n, q) for rows (n, p), NaN for a row that is not finite."""
        return self.predicted(X)


@dataclass(frozen=True)
class LocalClassifier(Local):
    """Classes that a fitted classifier predicts, and their probabilities.

    Parameters
    ----------
    predictor : Predictor
        Of scores.
    rule : ClassRule
        From scores to classes and probabilities.
    """

    rule: ClassRule

    @property
    def classes_(self) -> Array:
        """The classes, in ascending order, (K,)."""
        return self.rule.classes.values

    def predict(self, X: Any) -> Array:
        """Return classes (n,) for rows (n, p).

        Raises
        ------
        DataError
            If `X` is no table of numbers with the columns that the model was fitted on, or a row
            has no finite score.
        """
        return self.rule.labels(self._scores(X))

    def decision_function(self, X: Any) -> Floats:
        """Return what classes are chosen by, (n,) for two classes, else (n, K)."""
        return self.rule.plain_decisions(self._scores(X))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes, (n, K), NaN for a row that is not finite."""
        return self.rule.probabilities(self._scores(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities, (n, K)."""
        return self.rule.log_probabilities(self._scores(X))

    def _scores(self, X: Any) -> Floats:
        scores = self.predicted(X)
        return scores.reshape(len(scores), -1)
