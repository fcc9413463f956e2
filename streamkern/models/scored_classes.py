"""Classes and their probabilities, by whatever gives scores of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.models.blockwise import by_rows
from streamkern.models.classifier_passes import evaluate_classes, predict_classes_to_hdf5
from streamkern.models.fitted_inputs import TakesRows
from streamkern.predict.class_rule import ClassRule
from streamkern.sources import LabelledSource, Source, as_source, labelled_rows
from streamkern.sources.lazy import is_lazy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamkern._typing import Array, Floats
    from streamkern.predict.predictor import RowFunction


class ScoredClasses(TakesRows, ABC):
    """Predicted classes, their probabilities and errors.

    A class that fits sets `rule_` and `class_factors_`.
    """

    _fitted_by = "rule_"
    rule_: ClassRule
    class_factors_: Floats | None
    on_bad_rows: str

    @property
    @abstractmethod
    def predictor_(self) -> RowFunction:
        """Return what gives the scores of rows."""

    @abstractmethod
    def _scores(self, X: Any) -> Any:
        """Return the scores (n,) or (n, q) of an array, a source, or lazily a Dask array."""

    @property
    def classes_(self) -> Array:
        """The classes, in ascending order, (K,)."""
        self._check_fitted()
        return self.rule_.classes.values

    def predict(self, X: Any) -> Any:
        """Predict classes.

        Parameters
        ----------
        X : array_like, dask.array.Array or Source, of shape (n, p)

        Returns
        -------
        ndarray of shape (n,), of the type of the labels; a lazy Dask array for one

        Raises
        ------
        DataError
            If X has another number of columns than the rows that were fitted, or a row has no
            finite score.
        """
        self._check_fitted()
        return self._by_score(X, ClassRule.labels, None, self.classes_.dtype)

    def decision_function(self, X: Any) -> Any:
        """Return what classes are chosen by: above 0 for the second of two, else the largest.

        It is the log-odds of a class against the rest, as calibrated; without calibration the
        score itself.

        Returns
        -------
        ndarray of shape (n,) for two classes, else (n, K); a lazy Dask array for one
        """
        self._check_fitted()
        K = len(self.classes_)
        return self._by_score(X, ClassRule.plain_decisions, None if K == 2 else K)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, (n, K); lazy for a Dask array."""
        self._check_fitted()
        return self._by_score(X, ClassRule.probabilities, len(self.classes_))

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities, (n, K); lazy for a Dask array."""
        self._check_fitted()
        return self._by_score(X, ClassRule.log_probabilities, len(self.classes_))

    def _by_score(
        self,
        X: Any,
        method: Callable[[ClassRule, Floats], Any],
        n_columns: int | None,
        dtype: Any = float,
    ) -> Any:
        """Apply a method of the rule to scores (n, q), lazily to a Dask array."""
        X, *_ = self._tables(X)
        function = partial(_of_scores, method)
        return by_rows(function, self._scores(X), n_columns, dtype, rule=self.rule_)

    def _labelled(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, weighted: bool = False
    ) -> LabelledSource:
        """Return rows whose targets stand for labels of this model's classes.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        weighted : bool
            Weigh them as the rows of the fit were, by class.
        """
        self._check_fitted()
        rows, labels = labelled_rows(*self._tables(X, y, sample_weight))
        factors = self.class_factors_ if weighted else None
        return LabelledSource(rows, labels, self.rule_.classes, factors)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy, in one pass; parameters are those of `fit`.

        Of arrays, a label that is none of the classes counts as an error.  With `on_bad_rows`
        'skip', rows with values that are not finite are left out.
        """
        if y is None or isinstance(X, Source) or is_lazy(X):
            return float(self.evaluate(X, y, sample_weight)["accuracy"])
        rows, *others = self._tables(X, y, sample_weight)
        labelled_rows(rows, *others)  # checks lengths and weights
        scores = self._scores(rows)
        known = np.ones(len(scores), dtype=bool)
        if self.on_bad_rows == "skip":
            known = np.isfinite(scores).reshape(len(scores), -1).all(axis=1)
            if not known.any():
                raise as_source(rows).none_left_error(len(known), 0)
        found = _of_scores(ClassRule.labels, scores[known], self.rule_)
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average(found == np.asarray(y).ravel()[known], weights=weights))

    def evaluate(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, Any]:
        """Compare predictions with labels, in one pass; parameters are those of `fit`.

        Returns
        -------
        dict
            `rows`, `skipped_rows`, `accuracy`, `balanced_accuracy`, `log_loss`, `brier_score`,
            `auc`, `auc_error`, `expected_calibration_error`, `classes` and `confusion_matrix`.
            The area under the curve is counted in bins; the exact one is within `auc_error` of it.
            For more than two classes it is the mean of each against the rest.  Rows of the matrix
            are classes, and columns what was predicted.

        Raises
        ------
        DataError
            If the rows cannot be used, or a label is none of the classes.
        """
        self._check_fitted()
        return evaluate_classes(
            *(self.predictor_, self.rule_, self._labelled(X, y, sample_weight)),
            skip_bad_rows=self.on_bad_rows == "skip",
        )

    def predict_to_hdf5(
        self, X: Any, path: str | Path, *, probabilities: bool = False, force: bool = False
    ) -> int:
        """Predict the rows of a source or an array into the dataset `y_pred` of a new HDF5 file.

        A dataset `classes` holds the classes; with `probabilities`, `y_proba` (n, K) those.

        Returns
        -------
        int
            How many rows have no class, because `on_bad_rows` is 'skip'.
        """
        self._check_fitted()
        X, *_ = self._tables(X)
        return predict_classes_to_hdf5(
            *(self.predictor_, self.rule_, as_source(X), path),
            probabilities=probabilities,
            skip_bad_rows=self.on_bad_rows == "skip",
            force=force,
        )


def _of_scores(method: Callable[[ClassRule, Floats], Any], scores: Floats, rule: ClassRule) -> Any:
    return method(rule, scores[:, None] if scores.ndim == 1 else scores)
