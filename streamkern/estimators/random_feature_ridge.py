"""Kernel ridge regression by random features; `fit` is in `feature_estimator.py`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from streamkern._typing import Floats
from streamkern.estimators.base import fitted
from streamkern.estimators.conventions import keep_parameters
from streamkern.estimators.docstrings import documented
from streamkern.estimators.feature_estimator import FeatureEstimator
from streamkern.estimators.problems import Problem, Regression
from streamkern.kernels import Kernel
from streamkern.parameters.parameters import AUTO
from streamkern.registry import extension
from streamkern.runtime.events import job
from streamkern.solve import NormalEquations
from streamkern.sources.containers import keeps_coordinates


@documented
class RandomFeatureRidge(MultiOutputMixin, RegressorMixin, FeatureEstimator):  # type: ignore[misc]
    """Kernel ridge regression by random features, in two passes over the rows.

    Minimises sum_i s_i |y_i - mu - phi(x_i)^T w|^2 + alpha |w|^2, where s_i is the weight of a row
    and phi(x)^T phi(x') is the kernel in expectation.  Memory grows with D^2, not with n.  Work
    runs on the current Dask scheduler.

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
    penalty_curve_ = fitted(
        "penalty_curve", "What the penalty was chosen by, with errors of folds, or None; not saved."
    )

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
        target_range: tuple[float | None, float | None] | None = None,
        random_state: int = 0,
    ) -> None:
        keep_parameters(self, locals())

    def _problem(self) -> Problem:
        return Regression()

    @job("partial_fit")
    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, like: Any = None
    ) -> Self:
        """Add rows to those that the model was made of, which are not read again.

        The first call decides the map: kernel, length scale, scale and landmarks.  All calls
        together, in any order after the first, are `fit` on all rows like the first ones (its
        `like`), up to rounding: to about 1e-9 in double precision.  Rows that come again count
        again.

        The system is solved when a fitted attribute or a prediction is next asked for.  Until then
        the penalty, `sparse` and `fit_intercept` may change; what decides the map may not.  Columns
        that are constant in the first call count in units of their value, or of 1 if that is
        larger.

        Raises
        ------
        ParameterError
            If the model was fitted without its moments, what decides the map has changed, or
            `alpha` is 'loo', which reads all rows again.
        DataError
            If rows have other inputs or targets than the first.
        """
        return self._begin_or_grow(X, y, sample_weight, like)

    @keeps_coordinates
    def predict(self, X: Any, *, return_std: bool = False, interval: float | None = None) -> Any:
        """Predict the targets of rows.

        Returns
        -------
        ndarray of shape (n,) or (n, q), or Dask array for a Dask collection; or tuple of these
            Predictions; then, where they are asked for, standard deviations of the same shape and,
            last, the ends of intervals, (n, 2) or (n, q, 2).

        Raises
        ------
        ModelFileError
            If the model was saved without what standard deviations need, or has no intervals.
        ParameterError
            If `interval` is not between 0 and 1, or the held-out rows of the fit were too few for
            such intervals.

        References
        ----------
        Lei, G'Sell, Rinaldo, Tibshirani and Wasserman (2018), "Distribution-free predictive
        inference for regression".
        """
        return self.model_.predict(self._rows(X), return_std=return_std, interval=interval)

    def predict_grid(
        self, points: Sequence[Any], extent: Any = None, *, return_std: bool = False
    ) -> Any:
        """Predict all points of a grid, an axis for every input.

        Parameters
        ----------
        points : sequence of int or array
            For every input how many points, evenly from one end of the extent to the other, or
            coordinates (n_j,).
        extent : array (p, 2), optional
            Where the axes begin and end, in the units of the inputs; by default the range of the
            rows of the fit, which a model of up to three inputs knows.

        Returns
        -------
        GridPrediction
            `y_pred` (n_1, ..., n_p), `y_std` and `axes`; `to_xarray` makes a dataset of it.

        Raises
        ------
        ParameterError
            If there is not an axis for every input, or no extent is known.
        """
        predicted = extension("fields", "grid_prediction").predicted_grid
        return predicted(self._current_model, points, extent, return_std=return_std)

    def normal_equations(self) -> NormalEquations:
        """Return the normal equations."""
        return self.model_.normal_equations

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, R^2, averaged over targets, in one pass."""
        return float(np.mean(self.evaluate(X, y, sample_weight)["r2"]))

    def evaluate(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, Any]:
        """Compare predictions with targets, in one pass.

        Returns
        -------
        dict
            `rows`, `skipped_rows`, `rmse`, `mae` and `r2`: numbers for targets (n,), else lists,
            with their means as `rmse_mean` and so on; `baseline`, the `rmse` of always predicting
            the mean of these targets; of a model with intervals `intervals`, the `coverage` and
            mean `width` of 90% intervals, in all and `by_difficulty`: by tenth of the error that is
            expected.  A row of weight s counts as s equal rows, but once in `rows`, and there only
            if s is above 0.
        """
        return self._current_model.evaluate(self._source(X, y, sample_weight))

    def gradient_outer_product(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, target_unit: Any = None
    ) -> Floats:
        """Return the mean of grad f(x) grad f(x)^T over rows, in one pass.

        It says which inputs and directions predictions change along.  Gradients are with respect to
        standardised rows.  No targets need be given.

        Raises
        ------
        ParameterError
            If the features have no gradients, or the kernel none whose mean square is finite:
            Laplacian, and Matern of nu up to 1.
        """
        unit = None if target_unit is None else np.asarray(target_unit, dtype=float)
        source = self._source(X, y, sample_weight, targets=y is not None)
        return self._current_model.gradient_outer_product(source, target_unit=unit)

    def diagnose(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, n_largest: int = 10
    ) -> dict[str, Any]:
        """Say how the model does on each of its own rows without that row, in one pass.

        The rows are those that the model was fitted on, or DataError is raised.  A row is left out
        with all its weight: not as one of several equal rows.

        Returns
        -------
        dict
            `rows`, `loo_rmse`, `effective_dof`, `rows_of_leverage_one`, `largest_leverages` and
            `largest_errors`.
        """
        return self._current_model.diagnose(self._source(X, y, sample_weight), n_largest=n_largest)

    def predict_to_hdf5(
        self,
        X: Any,
        path: str | Path,
        *,
        return_std: bool = False,
        interval: float | None = None,
        force: bool = False,
    ) -> int:
        """Predict rows into a new HDF5 file, a block of them at a time.

        Its datasets are `y_pred`, of the shape that `predict` returns; with `return_std` `y_std`;
        with `interval` `y_lower` and `y_upper`.

        Parameters
        ----------
        return_std, interval
            As in `predict`.
        """
        source = self._source(X, targets=False)
        how: Any = {"return_std": return_std, "interval": interval, "force": force}
        return self._current_model.predict_to_hdf5(source, path, **how)
