"""Kernel ridge regression by random features, as scikit-learn's users meet it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from streamkern.kernels import Gaussian, Kernel
from streamkern.models.estimators.base import fitted
from streamkern.models.estimators.feature_estimator import FeatureEstimator
from streamkern.models.tasks import Regression, Task
from streamkern.runtime.events import job

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from streamkern._typing import Array, Floats
    from streamkern.models.fitted_ridge import FittedRidge
    from streamkern.solve import NormalEquations


class RandomFeatureRidge(
    MultiOutputMixin,  # type: ignore[misc]
    RegressorMixin,  # type: ignore[misc]
    FeatureEstimator,
):
    """Kernel ridge regression by random features, in two passes over the rows.

    Minimises sum_i s_i |y_i - mu - phi(x_i)^T w|^2 + alpha |w|^2, where s_i is the weight of a row
    and phi(x)^T phi(x') is the kernel in expectation.  Memory grows with D^2, not with n.  Work
    runs on the current Dask scheduler.

    Parameters
    ----------
    kernel : Kernel or str
        By default Gaussian with the median length scale.  A text is a name such as 'matern32', or
        an expression such as 'gaussian[0-2]*periodic(period=7)[3]'.
    n_components : int or 'auto'
        D, the number of features.  'auto' makes up to 4,096, and keeps the smallest of 64, 128, ...
        whose cross-validated error is within one standard error of the best.
    alpha : float, sequence of float, or {'cv', 'gcv', 'evidence', 'loo'}
        The penalty, in units of the sum of squares, not divided by n.  Or penalties to choose from
        by cross-validation.  Or how to choose: cross-validation, robust generalised
        cross-validation, the evidence, or exact leave-one-out, which takes one more pass.  With
        several targets, errors are divided by the targets' variances and averaged; with 'loo' they
        are taken as they are, as in `sklearn.linear_model.RidgeCV`.
    alphas : sequence of float, optional
        What to choose from if `alpha` says how; by default 30 penalties from the precision floor to
        the largest eigenvalue of G.
    n_folds : int
        K of cross-validation.
    fold_by : {'auto', 'shards', 'rows', 'blocks'}
        How rows are dealt to folds: whole shards in a seeded shuffle, which takes no memory while
        rows are read; single rows by a seeded rule; or contiguous blocks, for rows in the order of
        time.  'auto' is shards if there are 3 a fold, else rows.
    per_target : bool
        Choose one penalty for every target, instead of one for all.
    one_standard_error : bool
        Choose the largest penalty whose error is within one standard error of the least.
    sparse : int or 'auto', optional
        K, how many of the D features to keep.  'auto' keeps the fewest of 1, 2, 3, 4, 6, 8, ... D
        whose cross-validated error is within one standard error of the best.
    sparse_method : {'forward', 'omp', 'lasso'}
        How they are chosen: forward selection, orthogonal matching pursuit, or the path of the
        lasso.  The coefficients are those of ridge.
    feature_map : str
        Random Fourier features, 'orthogonal' or independent ('iid'); by fast transforms for
        hundreds of inputs ('sorf'); quasi-Monte Carlo ('qmc'); on a 'grid' for one to three
        inputs.  The kernel at landmarks: 'nystroem'.
        'binning' for the Laplacian kernel, 'sketch' for the polynomial one, 'identity' for the
        inputs as features, and 'auto', in `tune` alone.
    paired : bool
        Cosine and sine of every frequency, or cosines with random phases.
    metric : str, or ndarray of shape (p, p), optional
        M: the kernel takes (x - x')^T M (x - x') of standardised rows for the squared distance.
        'learn' takes the average gradient outer product of a fit on a sample as the metric of the
        next fit, in up to four rounds ('learn:ROUNDS'), and keeps the round that predicts held-out
        rows best.  'diagonal' learns one weight for each input.
    standardize : bool
        Take inputs less their means, over their standard deviations.  If fewer than a tenth of the
        rows depart from a column's usual value, its deviation is what it would be if a tenth did.
    fit_intercept : bool
    precision : {'single', 'double'}
        Of features and products, which are summed in double.
    on_bad_rows : {'error', 'skip'}
        What to do about rows with values that are not finite.
    random_state : int

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (D, q)
    intercept_ : float or ndarray of shape (q,)
    feature_map_ : FeatureMap
        From raw rows to features, standardisation included.
    kernel_ : Kernel
        With its length scale resolved.
    alpha_ : float
    metric_ : ndarray of shape (p, p)
        M, the identity if no metric was given or learnt; 0 for inputs that are left out.
    report_ : dict
        Rows, seconds, memory and diagnostics of the fit.
    penalty_curve_ : PenaltyCurve or None
        What the penalty was chosen by, with the errors of every fold; not saved.
    moments_ : DataMoments or None
        Of the rows, if they are kept or rows come and go; not saved with the model.
    recipe_ : Recipe or None
        How a table became the inputs.
    n_features_in_ : int
        Columns of the rows, before a recipe makes inputs of them.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names.  Predictions ask a data frame for the same.

    Notes
    -----
    With `feature_map` 'identity', `standardize` False, `precision` 'double' and `alpha` 'loo' this
    is `sklearn.linear_model.RidgeCV` out of core.

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), "Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models", for the metric.
    """

    equations_ = fitted("equations", "The normal equations of all rows, or None.")
    penalty_curve_ = fitted("penalty_curve", "What the penalty was chosen by; not saved.")

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

    def _task(self) -> Task:
        return Regression()

    def _current_model(self) -> FittedRidge:
        model: FittedRidge = self.model_
        return replace(model, parameters=self._parameters())

    @job("partial_fit")
    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, like: Any = None
    ) -> Self:
        """Add rows to those that the model was made of, which are not read again.

        The first call decides the map: length scale, standardisation and landmarks.  All calls
        together, in any order after the first, are `fit` on all rows like the first ones (its
        `like`), up to rounding: to about 1e-9 in double precision.  Rows that come again count
        again.

        The system is solved when a fitted attribute or a prediction is next asked for.  Until then
        the penalty, `sparse` and `fit_intercept` may change; what decides the map may not.  Columns
        that are constant in the first call count in units of their value, or of 1 if that is
        larger.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        like : DataMoments, estimator, or path of either, optional
            In the first call, whose map and standardisation are taken instead.

        Raises
        ------
        ParameterError
            If the model was fitted without its moments, parameters that decide the map have
            changed, or `alpha` is 'loo', which reads all rows again.
        DataError
            If the rows cannot be used, or have other inputs or targets than the first.
        InsufficientMemoryError
            If the job cannot fit, before the first read.
        """
        return self._begin_or_grow(X, y, sample_weight, like)

    def predict(self, X: Any, *, return_std: bool = False) -> Any:
        """Predict targets.

        Parameters
        ----------
        X : array_like, Source, dask.array.Array or dask.dataframe.DataFrame, of shape (n, p)
        return_std : bool
            Return the standard deviations of new targets too: the noise's, and what the
            coefficients are uncertain by.

        Returns
        -------
        ndarray of shape (n,) or (n, q), or two of them; lazy Dask arrays for a Dask collection

        Raises
        ------
        DataError
            If X has another number of columns than the rows that were fitted.
        ModelFileError
            If standard deviations are asked of a model that was saved without them.
        """
        model = self.model_
        return model.predict(self._rows(X), return_std=return_std)

    def normal_equations(self) -> NormalEquations:
        """Return the normal equations, or raise ModelFileError if they were not saved."""
        equations: NormalEquations = self.model_.normal_equations
        return equations

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, averaged over targets, in one pass.

        Parameters are those of `fit`.
        """
        return float(np.mean(self.evaluate(X, y, sample_weight)["r2"]))

    def evaluate(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, Any]:
        """Compare predictions with targets, in one pass; parameters are those of `fit`.

        Returns
        -------
        dict
            `rows`, `skipped_rows`, `rmse`, `mae` and `r2`: numbers for targets (n,), else lists,
            with their means as `rmse_mean` and so on.  A row of weight s counts as s equal rows,
            but once in `rows`, and there only if s is above 0.
        """
        found: dict[str, Any] = self._current_model().evaluate(self._source(X, y, sample_weight))
        return found

    def gradient_outer_product(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, target_unit: Any = None
    ) -> Floats:
        """Return the mean of grad f(x) grad f(x)^T over rows, in one pass.

        It says which inputs and directions predictions change along.  Gradients are with respect to
        standardised rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; targets may be left out.
        target_unit : array_like of shape (q,), optional
            What targets are divided by before their outer products are added, such as their
            standard deviations; 1 by default.

        Returns
        -------
        ndarray of shape (p, p)
            With 0 for inputs that are left out.

        Raises
        ------
        ParameterError
            If the features have no gradients.
        """
        unit = None if target_unit is None else np.asarray(target_unit, dtype=float)
        source = self._source(X, y, sample_weight)
        found: Floats = self._current_model().gradient_outer_product(source, target_unit=unit)
        return found

    def diagnose(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, n_largest: int = 10
    ) -> dict[str, Any]:
        """Say how the model does on each of its own rows without that row, in one pass.

        A row is left out with all its weight: not as one of several equal rows.

        Parameters
        ----------
        X, y, sample_weight
            The rows that the model was fitted on, as in `fit`.
        n_largest : int
            How many rows of largest leverage and of largest error to name.

        Returns
        -------
        dict
            `rows`, `loo_rmse`, `effective_dof`, `rows_of_leverage_one`, `largest_leverages` and
            `largest_errors`.

        Raises
        ------
        DataError
            If these are not the rows that the model was fitted on.
        """
        source = self._source(X, y, sample_weight)
        found: dict[str, Any] = self._current_model().diagnose(source, n_largest=n_largest)
        return found

    def predict_to_hdf5(
        self, X: Any, path: str | Path, *, return_std: bool = False, force: bool = False
    ) -> int:
        """Predict the rows of a source or an array into the dataset `y_pred` of a new HDF5 file.

        With `return_std`, a dataset `y_std` holds the standard deviations of new targets.

        Returns
        -------
        int
            How many rows were predicted as NaN, because `on_bad_rows` is 'skip'.
        """
        source = self._source(X)
        model, options = self._current_model(), {"return_std": return_std, "force": force}
        n_bad: int = model.predict_to_hdf5(source, path, **options)
        return n_bad
