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

    Minimises sum_i s_i |y_i - mu - phi(x_i)^T w|^2 + alpha |w|^2, s_i being the weight of a row, 1
    by default, and phi(x)^T phi(x') equal to the kernel in expectation.  Rows may be more than
    memory holds: memory grows with D^2, not with n.  Work runs on the current Dask scheduler.

    Parameters
    ----------
    kernel : Kernel or str
        By default Gaussian with the median length scale; or its name, or what the command line
        takes for --kernel, such as 'matern32' or 'gaussian[0-2]*periodic(period=7)[3]'.
    n_components : int or 'auto'
        D, the number of features; with pairs, of D / 2 frequencies, the last of which has a cosine
        alone, of random phase, where D is odd.  'auto' makes 4,096, or fewer where there are fewer
        rows, and keeps the smallest of 64, 128, ... of them whose cross-validated error is within
        one standard error of the best, without reading the rows again.
    alpha : float, sequence of float, or {'cv', 'gcv', 'evidence', 'loo'}
        The penalty, in the units of the sum of squares: not divided by n.  Or penalties to choose
        from by cross-validation; or how to choose: by cross-validation, robust generalised
        cross-validation, the evidence, for which the rows are not read again, or by leaving out
        every row in turn, exactly, in one more pass.  One penalty for several targets has the
        least error as a share of their variances, averaged; by 'loo' the least mean squared error
        of the targets as they are, as in `sklearn.linear_model.RidgeCV`.
    alphas : sequence of float, optional
        What to choose from, where `alpha` says how; by default 30 penalties between the precision
        floor and the largest eigenvalue of G.
    n_folds : int
        K, the parts that cross-validation leaves out in turn.
    fold_by : {'auto', 'shards', 'rows', 'blocks'}
        How rows are dealt to folds: whole shards by a seeded shuffle, which costs no memory while
        rows are read; rows, spread evenly by a seeded rule; or contiguous blocks, for rows in the
        order of time.  'auto' is shards where there are 4 a fold, else rows.
    per_target : bool
        Choose one penalty for every target, instead of one for all.
    one_standard_error : bool
        Choose the largest penalty whose error is within one standard error of the least.
    sparse : int or 'auto', optional
        K, the number of features that are kept of the D: the model predicts in K cosines.  'auto'
        keeps the fewest of 1, 2, 3, 4, 6, 8, 11, 16, ... D whose cross-validated error is within
        one standard error of the best; every fold is predicted with features chosen without it.
    sparse_method : {'forward', 'omp', 'lasso'}
        How they are chosen: each the one that lowers the sum of squares most; orthogonal matching
        pursuit; or the path of the lasso.  The coefficients are those of ridge, whichever it is.
    feature_map : str
        Fourier features of frequencies that are random, 'orthogonal' or independent ('iid'); by
        fast transforms, for hundreds of inputs ('sorf'); at Sobol or Halton points ('qmc',
        'halton'); on a 'grid', for one to three inputs.  The kernel at landmarks, for every kernel:
        'nystroem', 'nystroem-uniform' or 'nystroem-pivoted'.  'binning' for the Laplacian kernel;
        'sketch' for the polynomial one; 'identity' for the inputs as features, D = p of them;
        'auto', for `tune` alone, is a short list to choose from.
    paired : bool
        Cosine and sine of every frequency, or cosines with random phases.
    metric : str, or ndarray of shape (p, p), optional
        M: the kernel takes (x - x')^T M (x - x') of standardised rows for the squared distance.
        'learn' takes the average gradient outer product of a fit for the metric of the next one, in
        up to four rounds, or ROUNDS of 'learn:ROUNDS', and keeps the round that predicts rows held
        out best, or plain distances where no round does better by more than a standard error;
        'diagonal' or 'diagonal:ROUNDS' learns one weight an input, as 'learn' does for the
        Laplacian kernel, whose distance is along the axes.  That is done on a sample of up to
        16,384 rows, at up to 1,024 features, and takes 10 rows an input.  The length scale is
        chosen again in every round.
    standardize : bool
        Take inputs less their means, over their standard deviations; where fewer than a tenth of
        the rows depart from the value that all others have, over what it would be if a tenth did.
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
        M, the identity where no metric was given or learnt; 0 for inputs that are left out.
    report_ : dict
        Rows, seconds, memory and diagnostics of the fit.  `errors_from` says whether `train_rmse`
        and `cv_rmse` are told by the 'moments', or by the 'rows', or are a 'bound', where residuals
        are smaller than the rounding of sums.
    penalty_curve_ : PenaltyCurve or None
        What the penalty was chosen by, with the errors of every fold; not saved.
    moments_ : DataMoments or None
        Of all rows that are in, where they were to be kept or rows come and go; not saved with the
        model, but by themselves.
    recipe_ : Recipe or None
        How a table became the inputs, where it was not numbers alone, or `convert` wrote it.
    n_features_in_ : int
        Columns of the rows that were fitted, before a recipe makes inputs of them.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where a data frame or a table had some.  Predictions ask a frame for the same:
        in any order and among others where there is a recipe.

    Notes
    -----
    Of features that are there already this is `sklearn.linear_model.RidgeCV` out of core, where
    `feature_map` is 'identity', `standardize` False, `precision` 'double' and `alpha` 'loo', with
    its grid as `alphas` and its `alpha_per_target` as `per_target`; `n_folds` in `fold_by` 'blocks'
    are its `cv` with `scoring` 'neg_mean_squared_error', and `penalty_curve_` has the means of its
    `cv_results_`.  A target of 1 and -1, or one for every class of several, makes it
    `RidgeClassifierCV`.

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

        The first call fits as `fit` does, and keeps the moments.  It decides the map: length scale,
        standardisation and landmarks.  Columns that are constant in it are not left out: where they
        vary later they count in units of their value then, or of 1 where that is smaller.  The
        moments of further rows are added to those that are there; so are rows to those of a `fit`,
        `tune` or `solve` with `keep_moments=True`.  So all calls together, in any order after
        the first, are `fit` on all rows, like the first ones (its `like`), up to rounding: to about
        1e-9 in double precision.  They predict what a plain `fit` on all rows does, in any order,
        where nothing follows from the first rows: with a given length scale, `standardize=False`,
        and paired random Fourier features or the identity map.  Rows that come again count again.

        The system is solved when a fitted attribute or a prediction is next asked for, not in every
        call.  Parameters that are changed meanwhile count from then on where only the solution
        reads them, as the penalty, `sparse` and `fit_intercept`; those that decide the map and the
        number of folds are refused.  `alpha='cv'` deals the rows of every call to folds, so the
        penalty is chosen on other folds than those of one fit; a number, 'gcv' and 'evidence' are
        the same.  Rows may be fewer than folds, of which two have rows when the system is solved.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        like : DataMoments, RandomFeatureRidge, or path of either, optional
            In the first call, whose map and standardisation are taken instead.

        Raises
        ------
        ParameterError
            If the model was fitted without its moments, has a map and is given another or
            parameters of another, or if `alpha` is 'loo', which reads all rows again.
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
