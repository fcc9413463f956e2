"""Regression with other losses by random features, as scikit-learn's users meet it."""

from inspect import signature
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from sklearn.base import RegressorMixin

from streamkern.errors import DataError
from streamkern.estimators.conventions import initializer
from streamkern.estimators.docstrings import documented
from streamkern.estimators.feature_estimator import FeatureEstimator
from streamkern.estimators.paths import are_paths
from streamkern.estimators.random_feature_ridge import RandomFeatureRidge
from streamkern.extensions.losses import exposed_by
from streamkern.extensions.losses.fitted_loss import NOT_OURS, LossRegression
from streamkern.extensions.losses.loss_names import losses_of
from streamkern.runtime.events import job
from streamkern.sources import Source, as_source
from streamkern.sources.containers import unwrapped, with_named_columns


@documented
class RandomFeatureRegressor(RegressorMixin, FeatureEstimator):  # type: ignore[misc]
    """Regression with other losses than the squared one, by random features.

    Minimises sum_i s_i l(y_i, mu + phi(x_i)^T w) + (alpha / 2) |w|^2 by Newton's steps.  Each is a
    pass for the sums of a ridge regression on reweighted rows, after a start from a sample: two to
    twelve passes.  A step by which the objective would grow is cut back.  One more light pass says
    what rows lose by the model, and by those without their fold.

    Parameters
    ----------
    loss : str
        'logistic' for shares, or 0 and 1; 'poisson' for counts; 'gamma' for amounts; 'tweedie:P'
        for sums of amounts, P from 1 to 3; 'huber' or 'huber:T' where outliers are not to count by
        squares, T above 1 in units of the scale of residuals; 'quantile:Q' for a quantile, or
        'quantile:Q,Q' for several, which are put in order for every row so that they do not cross.
        Predictions are means, or quantiles, of the target.
    alpha : float, sequence of float, or 'cv'
        The penalty, or penalties to choose from, in units of the loss.  They are chosen by the
        quadratics of the other folds, which Newton's steps are taken by.

    References
    ----------
    Green (1984), "Iteratively reweighted least squares for maximum likelihood estimation".
    Fernandes, Guerre and Horta (2021), "Smoothing quantile regressions".
    """

    __init__ = initializer(
        [
            each.replace(name="loss", default="poisson", kind=each.POSITIONAL_OR_KEYWORD)
            if name == "self"
            else each.replace(kind=each.KEYWORD_ONLY)
            for name, each in signature(RandomFeatureRidge.__init__).parameters.items()
            if name not in NOT_OURS
        ]
    )

    def predict(self, X: Any, *, return_std: bool = False, interval: float | None = None) -> Any:
        """Predict means, or quantiles, of the targets of rows.

        Parameters
        ----------
        return_std : bool
            Whether standard deviations of new targets come, too, which the losses logistic,
            poisson, gamma and tweedie have: of a target about its mean, and of what that is
            uncertain by.  ParameterError is raised for others.
        interval : float, optional
            Refused by ParameterError: the ends of intervals are quantiles, fitted as such.

        Returns
        -------
        ndarray of shape (n,) or (n, quantiles), or Dask array for a Dask collection; or tuple of 2
            Predictions, and where they are asked for standard deviations (n,).
        """
        return self.model_.predict(self._rows(X), return_std=return_std, interval=interval)

    predict_to_hdf5 = RandomFeatureRidge.predict_to_hdf5

    def _problem(self, exposed: tuple[str, str] | None = None) -> LossRegression:
        return LossRegression(losses_of(self.loss), exposed=exposed)

    @job("fit")
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        exposure: Any = None,
        offset: Any = None,
        groups: Any = None,
        times: Any = None,
        like: Any = None,
        checkpoint: str | Path | None = None,
        keep_moments: bool = False,
    ) -> Self:
        """Fit the model, in two passes and one for every step.

        Errors are those of `RandomFeatureRidge.fit`.

        Parameters
        ----------
        y : array_like or Dask collection of shape (n,), optional
            Targets.  Needed with arrays.  With a path or data frame, the name of the dataset or
            column.
        exposure : array_like or Dask collection of shape (n,), or str, optional
            How much each row stands for, as years of an insurance, above 0; or the name of what
            holds it, in files or of a frame.  The mean of y is then the exposure times what is
            predicted, and errors are of y / exposure.  It is for the losses with a logarithm:
            poisson, gamma and tweedie.
        offset : array_like or Dask collection of shape (n,), or str, optional
            What is added to the linear function of each row: for these losses the logarithm of an
            exposure, for huber and quantile a part of y that is known.  Give one of both.
        """
        X, given, beside, exposed = _beside(X, y, sample_weight, exposure=exposure, offset=offset)
        how: Any = {"like": like, "checkpoint": checkpoint, "keep_moments": keep_moments}
        return self._fit(self._problem(exposed), X, *given, groups, times, beside=beside, **how)

    def update(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse sums that are kept: these are weighted by the coefficients.

        Raises
        ------
        ParameterError
            Always.
        """
        self._problem().check_moments()

    forget = update

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        name = str(self.loss).partition(":")[0]
        tags.target_tags.positive_only = name in ("poisson", "gamma", "tweedie")
        return tags

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        exposure: Any = None,
        offset: Any = None,
    ) -> float:
        """Return the part of the loss of a constant that is explained, D2, in one pass."""
        found = self.evaluate(X, y, sample_weight, exposure=exposure, offset=offset)
        return float(np.mean(found["d2"]))

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        exposure: Any = None,
        offset: Any = None,
    ) -> dict[str, Any]:
        """Compare predictions with targets, in one pass.

        Returns
        -------
        dict
            `rows`, `skipped_rows`, the mean loss by its name (`deviance`, `log_loss`, `pinball` or
            `huber_loss`), `d2`, of quantiles their `coverage`, the share of rows up to them,
            `rmse`, `mae`, `r2` and `baseline`; of several quantiles lists.  With exposures they
            are of y / exposure, weighted as in the fit.
        """
        model = self._current_model
        X, given, beside, exposed = _beside(X, y, sample_weight, exposure=exposure, offset=offset)
        return model.evaluate(model.exposed(as_source(*self._tables(X, *given), beside), exposed))


def _beside(X: Any, y: Any, weights: Any, **given: Any) -> tuple[Any, tuple[Any, Any], Any, Any]:
    """Return rows, targets and weights, and an exposure or offset, by its kind and what it is.

    The kind and the name of the column come last.
    """
    exposed = exposed_by(given)
    if exposed is None:
        return X, (y, weights), {}, None
    X, kind, values = unwrapped("X", X), exposed[0], given[exposed[0]]
    if not (are_paths(X) or isinstance(X, Source)):
        named = {"y": y, "sample_weight": weights, kind: values}
        (X, y, weights, values), exposed = with_named_columns(X, **named), (kind, kind)
    elif not isinstance(values, str):
        raise DataError(
            f"the rows are in files, so {kind} is the name of what holds it there, not values; "
            f"give a name."
        )
    return X, (y, weights), {kind: values}, exposed
