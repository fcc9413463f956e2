"""Kernel classification by random features, as scikit-learn's users meet it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from streamkern._typing import Floats
from streamkern.estimators.base import TableEstimator, fitted, with_state
from streamkern.estimators.conventions import keep_parameters
from streamkern.estimators.docstrings import documented
from streamkern.estimators.feature_estimator import FeatureEstimator
from streamkern.estimators.paths import are_paths
from streamkern.estimators.problems import Problem
from streamkern.extensions.classes.class_labels import MISSING
from streamkern.extensions.classes.class_rule import ClassRule
from streamkern.extensions.classes.classification import Classification
from streamkern.extensions.classes.prediction_sets import known_sets
from streamkern.kernels import Kernel
from streamkern.parameters.parameters import AUTO
from streamkern.runtime.events import job
from streamkern.sources import Source, labelled_rows
from streamkern.sources.containers import is_lazy, keeps_coordinates
from streamkern.sources.nonfinite_rows import none_left_error


class ClassEstimator(ClassifierMixin, TableEstimator):  # type: ignore[misc]
    """An estimator whose fitted model predicts classes."""

    _reads_labels = True

    rule_ = fitted("rule", "How scores become classes and probabilities.")
    classes_ = fitted("classes", "The classes, in ascending order, (K,).")
    class_factors_ = fitted("class_factors", "What weights of rows were multiplied by, (K,).")

    @keeps_coordinates
    def predict(self, X: Any) -> Any:
        """Predict the classes of rows.

        Returns
        -------
        ndarray of shape (n,), or Dask array for a Dask collection
            Labels of their own type.

        Raises
        ------
        DataError
            For rows of other columns than the fit's, or without a finite score.
        """
        return self.model_.by_score(self._rows(X), ClassRule.labels)

    @keeps_coordinates
    def decision_function(self, X: Any) -> Any:
        """Return what classes are chosen by: above 0 for the second of two, else the largest.

        Returns
        -------
        ndarray of shape (n,) for two classes, else (n, K), or Dask array for a Dask collection
            The log-odds of a class against the rest, as calibrated; without calibration the scores.
        """
        return self.model_.by_score(self._rows(X), ClassRule.plain_decisions)

    @keeps_coordinates
    def predict_proba(self, X: Any) -> Any:
        """Predict the probabilities of the classes."""
        return self.model_.by_score(self._rows(X), ClassRule.probabilities)

    @keeps_coordinates
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithms of the probabilities of the classes."""
        return self.model_.by_score(self._rows(X), ClassRule.log_probabilities)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy, in one pass.

        Of arrays, a label that is none of the classes counts as an error.  With `on_bad_rows`
        'skip', rows without a label or with values that are not finite are left out.
        """
        if y is None or isinstance(X, Source) or is_lazy(X) or are_paths(X):
            return float(self.evaluate(X, y, sample_weight)["accuracy"])
        model, rows = self.model_, self._tables(X, y, sample_weight)
        source, _ = labelled_rows(*rows)  # which checks lengths and weights
        codes, scores = model.rule.classes.codes(np.asarray(y).ravel()), model.scores(rows[0])
        scores = scores.reshape(len(scores), -1)
        weights = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, float)
        whole = np.isfinite(scores).all(axis=1) & np.isfinite(weights) & (codes != MISSING)
        if not (self._skips or whole.all()):
            return float(self.evaluate(X, y, sample_weight)["accuracy"])  # which says where
        if not weights[whole].any():
            raise none_left_error(source, int((~whole).sum()), int((weights == 0).sum()))
        right = model.rule.codes(scores[whole]) == codes[whole]
        return float(np.average(right, weights=weights[whole]))

    def evaluate(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, Any]:
        """Compare predictions with labels, in one pass.

        Returns
        -------
        dict
            `rows`, `skipped_rows`, `accuracy`, `balanced_accuracy`, `log_loss`, `brier_score`,
            `auc`, `auc_error`, `expected_calibration_error`, `classes` and `confusion_matrix`.
            The area under the curve is counted in bins; the exact one is within `auc_error` of it.
            For more than two classes it is the mean of each against the rest.  Rows of the matrix
            are classes, and columns what was predicted.  `baseline` is the `accuracy` of always
            saying the commonest class.  `sets` has the `coverage` of sets of the `level` 0.9, by
            weight, in all and `by_class` (None of one without rows), and their mean `size`.
        """
        model = self._current_model
        return model.evaluate(model.source(*self._tables(X, y, sample_weight)))

    def predict_to_hdf5(
        self,
        X: Any,
        path: str | Path,
        *,
        probabilities: bool = False,
        interval: float | None = None,
        force: bool = False,
    ) -> int:
        """Predict the classes of rows into a new HDF5 file, a block of them at a time.

        Its datasets are `y_pred` (n,) and `classes` (K,).

        Parameters
        ----------
        probabilities : bool
            A dataset `y_proba` (n, K), too.
        interval : float, optional
            A dataset `y_set` (n, K), too: the sets of `predict_sets` for that share.
        """
        options: Any = {"skip_bad_rows": self._skips, "force": force}
        options |= {"probabilities": probabilities, "interval": interval}
        return self.model_.predict_to_hdf5(self._source(X, targets=False), path, **options)


@documented
class RandomFeatureClassifier(ClassEstimator, FeatureEstimator):
    """Kernel classification by random features, in a few passes over the rows.

    Ridge regression on +1 for a class and -1 for the rest, as scikit-learn's `RidgeClassifier`: of
    K classes each against the rest, from the same sums, and of two classes one.  Scores become
    probabilities by a calibration on rows that the model which predicts them has not seen: every
    row is predicted from the moments of the other folds.  Classes are chosen by these
    probabilities, each against the rest.

    The penalty is chosen by the squared error of +1 and -1; with `per_target` there is one for each
    class.  Folds are made for the calibration too, whatever `alpha` is.

    Parameters
    ----------
    calibration : {'auto', 'spline', 'sigmoid', 'isotonic'}, optional
        Log-odds that are straight between a few quantiles of the scores, Platt's sigmoid, or steps
        that never fall, for each class against the rest; 'auto' is the spline, but of moments
        alone the sigmoid.  With None the probability is (1 + s) / 2 of a score s, cut off at 0 and
        1, no folds are made for it, and the rows are read once less.
    loss : {'squared', 'logistic', 'multinomial'}
        With the last two, which are one, scores are logarithms of probabilities but for a constant,
        and of two classes log-odds: logistic regression by Newton's steps, two to twelve passes.
        Of more classes each takes so many, one beside the others, with one penalty for all.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".
    Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass probability
    estimates", for isotonic regression, and for more classes than two.
    """

    ridge_ = fitted("ridge", "The regression that gives the scores.")

    def __init__(
        self,
        kernel: Kernel | str = AUTO,
        *,
        n_components: int | str = 2048,
        alpha: float | str | Sequence[float] | Floats = "cv",
        alphas: Sequence[float] | Floats | None = None,
        n_folds: int = 5,
        fold_by: str = "auto",
        gap: float | str = 0,
        per_target: bool = False,
        one_standard_error: bool = False,
        sparse: int | str | None = None,
        sparse_method: str = "forward",
        solver: str = "auto",
        feature_map: str = "orthogonal",
        paired: bool = True,
        metric: str | Floats | None = None,
        trend: str | Sequence[int | str] | None = None,
        scale: str | None = None,
        standardize: bool = True,
        fit_intercept: bool = True,
        precision: str = "single",
        on_bad_rows: str = "error",
        random_state: int = 0,
        class_weight: str | Mapping[Any, float] | None = None,
        calibration: str | None = "auto",
        loss: str = "squared",
    ) -> None:
        keep_parameters(self, locals())

    def _problem(self) -> Problem:
        return Classification(self.class_weight, self.calibration, loss=self.loss)

    @job("partial_fit")
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        like: Any = None,
    ) -> Self:
        """Add rows to those that the model was made of, as `RandomFeatureRidge.partial_fit` does.

        Rows are not read again to calibrate by: the sigmoid follows from the scores of every fold
        by the model without it, as the moments tell them, and can be coarser than that of `fit`;
        there are no prediction sets.  `calibrate` on rows held out takes another one, until rows
        come or go again.

        Parameters
        ----------
        classes : array_like of shape (K,), optional
            All labels that there will be; by default those of `like`, or of the first call.

        Raises
        ------
        ParameterError
            If `classes` are others than in the first call, or `class_weight` is 'balanced' or
            `calibration` 'spline' or 'isotonic'.
        """
        problem = Classification(self.class_weight, self.calibration, classes, self.loss)
        return self._begin_or_grow(X, y, sample_weight, like, problem)

    @keeps_coordinates
    def predict_sets(self, X: Any, interval: float = 0.9) -> Any:
        """Return which classes rows may be of.

        Thresholds are of rows that models without their folds scored, or after `calibrate` of the
        rows given there.

        Parameters
        ----------
        interval : float
            The share of new rows of every class, about, that have it in their sets.

        Returns
        -------
        ndarray of shape (n, K), of bool, or Dask array for a Dask collection
            The class that is predicted is in the set, and a row without a finite score has none.

        Raises
        ------
        ParameterError
            Unless 0 < `interval` < 1.
        ModelFileError
            By models that were fitted without a calibration on rows.

        References
        ----------
        Vovk, Gammerman and Shafer (2005), "Algorithmic learning in a random world", section 4.5.
        """
        model = self.model_
        sets = known_sets(model.sets).at(interval)
        return model.by_score(self._rows(X), sets.members)

    def calibrate(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, calibration: str | None = "auto"
    ) -> Self:
        """Calibrate the probabilities by rows that the model was not fitted on, in one pass.

        Prediction sets are of these rows then.

        Parameters
        ----------
        calibration : {'auto', 'spline', 'sigmoid', 'isotonic'}, optional
            As of the class, whose own stays as it is.  With None the model is without a calibration
            and sets, and no rows are read.
        """
        model = self._current_model
        source = model.source(*self._tables(X, y, sample_weight), as_fitted=True)
        return with_state(self, model.calibrated(source, calibration))
