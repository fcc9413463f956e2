"""Kernel classification by random features, as scikit-learn's users meet it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from streamkern.kernels import Gaussian, Kernel
from streamkern.models.classification import Classification
from streamkern.models.estimators.base import fitted
from streamkern.models.estimators.class_estimator import ClassEstimator
from streamkern.models.estimators.feature_estimator import FeatureEstimator
from streamkern.runtime.events import job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array
    from streamkern.models.fitted_classes import FittedClassifier
    from streamkern.models.tasks import Task


class RandomFeatureClassifier(ClassEstimator, FeatureEstimator):
    """Kernel classification by random features, in a few passes over the rows.

    Ridge regression on +1 for a class and -1 for the rest, as scikit-learn's `RidgeClassifier`: of
    K classes each against the rest, from the same sums, and of two classes one.  Scores become
    probabilities by a calibration on rows that the model which predicts them has not seen: every
    row is predicted from the moments of the other folds.  Classes are chosen by these
    probabilities, each against the rest.

    Parameters
    ----------
    kernel, n_components, feature_map, paired, metric, standardize, fit_intercept, precision
        As of `RandomFeatureRidge`.
    alpha, alphas, n_folds, fold_by, per_target, one_standard_error
        As of `RandomFeatureRidge`: what is compared is the squared error of +1 and -1, and with
        `per_target` each class has a penalty of its own.  Folds are made for the calibration too,
        whatever `alpha` is.
    sparse, sparse_method, random_state
        As of `RandomFeatureRidge`.
    on_bad_rows : {'error', 'skip'}
        What to do about rows with values that are not finite, or without a label.
    class_weight : 'balanced', or mapping of label to float, optional
        What weights of rows are multiplied by.  'balanced' is N / (K N_k) for a class of weight
        N_k, so that all classes weigh the same.  Probabilities are then those of rows so weighted.
    calibration : {'sigmoid', 'isotonic'}, optional
        Platt's sigmoid, or a function that never falls, for each class against the rest.  With
        None the probability is (1 + s) / 2 of a score s, cut off at 0 and 1, no folds are made for
        it, and the rows are read once less.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    coef_ : ndarray of shape (D,), or (D, K) for more classes than two
        Of the scores before calibration.
    intercept_ : float or ndarray of shape (K,)
    feature_map_, kernel_, alpha_, metric_, n_features_in_
        As of `RandomFeatureRidge`.
    report_ : dict
        Rows, seconds, memory and diagnostics of the fit; its errors are those of +1 and -1.
    ridge_ : RidgeModel
        The regression that gives the scores.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".
    Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass probability
    estimates", for isotonic regression, and for more classes than two.
    """

    ridge_ = fitted("ridge", "The regression that gives the scores.")
    class_factors_ = fitted("class_factors", "What weights of rows were multiplied by, (K,).")

    def __init__(
        self,
        kernel: Kernel | str = Gaussian("median"),  # noqa: B008  immutable
        *,
        n_components: int | str = 2048,
        alpha: float | str | Sequence[float] = "cv",
        alphas: Sequence[float] | None = None,
        n_folds: int = 5,
        fold_by: str = "auto",
        per_target: bool = False,
        one_standard_error: bool = False,
        sparse: int | str | None = None,
        sparse_method: str = "forward",
        feature_map: str = "orthogonal",
        paired: bool = True,
        metric: str | Array | None = None,
        standardize: bool = True,
        fit_intercept: bool = True,
        precision: str = "single",
        on_bad_rows: str = "error",
        random_state: int = 0,
        class_weight: Any = None,
        calibration: str | None = "sigmoid",
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.alpha = alpha
        self.alphas = alphas
        self.n_folds = n_folds
        self.fold_by = fold_by
        self.per_target = per_target
        self.one_standard_error = one_standard_error
        self.sparse = sparse
        self.sparse_method = sparse_method
        self.feature_map = feature_map
        self.paired = paired
        self.metric = metric
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.precision = precision
        self.on_bad_rows = on_bad_rows
        self.random_state = random_state
        self.class_weight = class_weight
        self.calibration = calibration

    def _task(self) -> Task:
        return Classification(self.class_weight, self.calibration)

    def _current_model(self) -> FittedClassifier:
        model: FittedClassifier = self.model_
        return replace(model, class_weight=self.class_weight, calibration=self.calibration)

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
        by the model without it, as the moments tell them, and can be coarser than that of `fit`.
        `calibrate` on rows held out takes another one, until rows come or go again.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array_like of shape (K,), optional
            All labels that there will be; by default those of `like`, or of the first call.
        sample_weight : array_like of shape (n,), optional
        like : DataMoments, estimator, or path of either, optional
            In the first call, whose map, classes and their weights are taken.

        Raises
        ------
        ParameterError
            If `classes` are not those of the first call, `class_weight` is 'balanced' or
            `calibration` 'isotonic', or as `RandomFeatureRidge.partial_fit` does.
        DataError
            If the rows cannot be used, or a label is none of the classes.
        InsufficientMemoryError
            If the job cannot fit, before the first read.
        """
        return self._begin_or_grow(X, y, sample_weight, like, classes)

    def calibrate(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        calibration: str | None = "sigmoid",
    ) -> Self:
        """Calibrate the probabilities by rows that the model was not fitted on, in one pass.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        calibration : {'sigmoid', 'isotonic'}, optional
            As the parameter of that name, which stays as it is.  None forgets the calibration, and
            reads no rows.
        """
        model: FittedClassifier = self.model_
        source = model.labelled(*self.tables(X, y, sample_weight), weighted=True)
        return self.set_fitted(model.calibrated(source, calibration))
