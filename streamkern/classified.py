"""What a fitted classifier can do, however it was fitted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.calibration import ClassRule, PlainRule, checked_method
from streamkern.classification import (
    calibrated_by_rows,
    evaluate_classes,
    predict_classes_to_hdf5,
)
from streamkern.sources import LabelledSource, as_source, labelled_rows
from streamkern.sources.arrays import is_dask_array
from streamkern.storage import ModelFile, write_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap
    from streamkern.kernels import Kernel
    from streamkern.model import RidgeModel


class FittedClassifier:
    """Classes, their probabilities and errors, and the file of a fitted classifier.

    A class that fits sets `ridge_`, `rule_` and `class_factors_`.
    """

    ridge_: RidgeModel
    rule_: ClassRule
    class_factors_: Floats | None
    class_weight: Any
    calibration: Any
    on_bad_rows: str

    @property
    def classes_(self) -> Array:
        """The classes, in ascending order, (K,)."""
        self._check_fitted()
        return self.rule_.classes.values

    @property
    def report_(self) -> dict[str, Any]:
        """Rows, seconds, memory and diagnostics of the fit; errors are those of the scores."""
        return self.ridge_.report_

    @property
    def coef_(self) -> Floats:
        """Of the scores before calibration, (D,) for two classes, else (D, K)."""
        return self.ridge_.coef_

    @property
    def intercept_(self) -> Any:
        """Of the scores before calibration, a float for two classes, else (K,)."""
        return self.ridge_.intercept_

    @property
    def feature_map_(self) -> FeatureMap:
        """From raw rows to features, standardisation included."""
        return self.ridge_.feature_map_

    @property
    def kernel_(self) -> Kernel:
        """With its length scale resolved."""
        return self.ridge_.kernel_

    @property
    def alpha_(self) -> Any:
        """The penalty that was given or chosen."""
        return self.ridge_.alpha_

    @property
    def metric_(self) -> Floats:
        """M (p, p), as of `RandomFeatureRidge`."""
        return self.ridge_.metric_

    @property
    def n_features_in_(self) -> int:
        """The number of inputs, p."""
        self._check_fitted()
        return self.ridge_.n_features_in_

    def _check_fitted(self) -> None:
        if not hasattr(self, "ridge_"):
            from sklearn.exceptions import NotFittedError  # noqa: PLC0415  slow

            raise NotFittedError("this model is not fitted yet; call fit first.")

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
        return self._by_score(X, self.rule_.labels, None, self.classes_.dtype)

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
        return self._by_score(X, self._decisions, None if K == 2 else K)

    def _decisions(self, scores: Floats) -> Floats:
        decisions = self.rule_.decisions(scores)
        return decisions[:, 0] if len(self.classes_) == 2 else decisions

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, (n, K); lazy for a Dask array."""
        self._check_fitted()
        return self._by_score(X, self.rule_.probabilities, len(self.classes_))

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities, (n, K); lazy for a Dask array."""
        self._check_fitted()
        return self._by_score(X, self.rule_.log_probabilities, len(self.classes_))

    def _by_score(
        self, X: Any, function: Callable[[Floats], Any], n_columns: int | None, dtype: Any = float
    ) -> Any:
        """Apply a function of scores (n, q), lazily to a Dask array."""
        scores = self.ridge_.predict(X)
        of_scores = partial(_of_scores, function)
        if not is_dask_array(scores):
            return of_scores(scores)
        wide, shape = n_columns is not None, (0,) if n_columns is None else (0, n_columns)
        return scores.map_blocks(
            of_scores,
            dtype=dtype,
            drop_axis=1 if scores.ndim == 2 and not wide else None,
            new_axis=1 if scores.ndim == 1 and wide else None,
            chunks=(scores.chunks[0], *((n_columns,) if wide else ())),
            meta=np.empty(shape, dtype=dtype),
        )

    def transform(self, X: Any) -> Any:
        """Return the features (n, D) of rows (n, p), as `RandomFeatureRidge.transform` does."""
        self._check_fitted()
        return self.ridge_.transform(X)

    def labelled(
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
        rows, labels = labelled_rows(X, y, sample_weight)
        factors = self.class_factors_ if weighted else None
        return LabelledSource(rows, labels, self.rule_.classes, factors)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy, in one pass; parameters are those of `fit`."""
        return float(self.evaluate(X, y, sample_weight)["accuracy"])

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
        return evaluate_classes(
            *(self._predictor(), self.rule_, self.labelled(X, y, sample_weight)),
            skip_bad_rows=self.on_bad_rows == "skip",
        )

    def calibrate(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        method: str | None = "sigmoid",
    ) -> Self:
        """Calibrate the probabilities by rows that the model was not fitted on, in one pass.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        method : {'sigmoid', 'isotonic'}, optional
            None forgets the calibration, and reads no rows.
        """
        source = self.labelled(X, y, sample_weight, weighted=True)
        if checked_method(method) is None:
            calibrator: Any = PlainRule(source.n_targets)
        else:
            calibrator = calibrated_by_rows(self.ridge_, source, str(method))
        self.rule_ = ClassRule(self.rule_.classes, calibrator)
        self.ridge_.report_["calibration"] = calibrator.name
        return self

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
        return predict_classes_to_hdf5(
            *(self._predictor(), self.rule_, as_source(X), path),
            probabilities=probabilities,
            skip_bad_rows=self.on_bad_rows == "skip",
            force=force,
        )

    def _predictor(self) -> Any:
        self._check_fitted()
        return self.ridge_.predictor_

    def save(self, path: str | Path, *, compact: bool = False, force: bool = False) -> None:
        """Write the fitted model to an HDF5 file, which `streamkern.load` reads.

        Parameters and errors are those of `RandomFeatureRidge.save`.
        """
        self._check_fitted()
        factors = self.class_factors_
        card = self.ridge_.card() | {
            "kind": "RandomFeatureClassifier",
            "classifier": {
                **self.rule_.as_dict(),
                "class_factors": None if factors is None else factors.tolist(),
                "option_class_weight": self._described_weight(),
                "option_calibration": self.calibration,
            },
        }
        kept = None if compact else self.ridge_.equations_
        write_model(path, ModelFile(self.ridge_.predictor_, card, kept), force=force)

    def _described_weight(self) -> Any:
        """Return the option `class_weight` as plain JSON values: by class where it is a mapping."""
        if self.class_weight is None or isinstance(self.class_weight, str):
            return self.class_weight
        factors: Any = self.class_factors_
        return factors.tolist()


def _of_scores(function: Callable[[Floats], Any], scores: Floats) -> Any:
    return function(scores[:, None] if scores.ndim == 1 else scores)
