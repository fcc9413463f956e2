"""Estimators that predict classes and their probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin

from streamkern.models.estimators.base import TableEstimator, fitted
from streamkern.sources import Source, as_source, labelled_rows
from streamkern.sources.lazy import is_lazy

if TYPE_CHECKING:
    from pathlib import Path


class ClassEstimator(ClassifierMixin, TableEstimator):  # type: ignore[misc]
    """An estimator whose fitted model predicts classes."""

    rule_ = fitted("rule", "How scores become classes and probabilities.")
    classes_ = fitted("classes", "The classes, in ascending order, (K,).")

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
        model = self.model_
        return model.predict(self._rows(X))

    def decision_function(self, X: Any) -> Any:
        """Return what classes are chosen by: above 0 for the second of two, else the largest.

        It is the log-odds of a class against the rest, as calibrated; without calibration the
        score itself.

        Returns
        -------
        ndarray of shape (n,) for two classes, else (n, K); a lazy Dask array for one
        """
        model = self.model_
        return model.decision_function(self._rows(X))

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, (n, K); lazy for a Dask array."""
        model = self.model_
        return model.predict_proba(self._rows(X))

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities, (n, K); lazy for a Dask array."""
        model = self.model_
        return model.predict_log_proba(self._rows(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy, in one pass; parameters are those of `fit`.

        Of arrays, a label that is none of the classes counts as an error.  With `on_bad_rows`
        'skip', rows with values that are not finite are left out.
        """
        if y is None or isinstance(X, Source) or is_lazy(X):
            return float(self.evaluate(X, y, sample_weight)["accuracy"])
        model = self.model_
        rows, *others = self.tables(X, y, sample_weight)
        labelled_rows(rows, *others)  # checks lengths and weights
        scores = model.scores(rows)
        known = np.ones(len(scores), dtype=bool)
        if self.on_bad_rows == "skip":
            known = np.isfinite(scores).reshape(len(scores), -1).all(axis=1)
            if not known.any():
                raise as_source(rows).none_left_error(len(known), 0)
        found = model.labels_of_scores(scores[known])
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
        model, skip = self.model_, self.on_bad_rows == "skip"
        source = model.labelled(*self.tables(X, y, sample_weight))
        found: dict[str, Any] = model.evaluate(source, skip_bad_rows=skip)
        return found

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
        model, skip = self.model_, self.on_bad_rows == "skip"
        n_bad: int = model.predict_to_hdf5(
            self._source(X), path, probabilities=probabilities, skip_bad_rows=skip, force=force
        )
        return n_bad
