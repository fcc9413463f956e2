"""Regression with other losses by random features, as scikit-learn's users meet it."""

from inspect import signature
from pathlib import Path
from typing import Any

from sklearn.base import RegressorMixin

from streamkern.estimators.conventions import initializer
from streamkern.estimators.docstrings import documented
from streamkern.estimators.feature_estimator import FeatureEstimator
from streamkern.estimators.loading import fitted_of
from streamkern.estimators.random_feature_ridge import RandomFeatureRidge
from streamkern.extensions.losses.fitted_loss import NOT_OURS, FittedLoss, LossRegression
from streamkern.extensions.losses.loss_names import are_alike, losses_of


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

    Notes
    -----
    Of counts over an exposure, as claims in a part of a year, give y / exposure for the target, and
    the exposure for the weight: the objective of 'poisson' with the logarithm of the exposure for
    an offset is the same.

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

    def _problem(self) -> LossRegression:
        return self._problem_of(None)

    def _problem_of(self, like: Any) -> LossRegression:
        losses, start = losses_of(self.loss), None
        model = fitted_of(like)
        if isinstance(model, FittedLoss) and are_alike(model.losses, losses):
            start = model
        return LossRegression(losses, start)

    def update(self, *_: Any, **__: Any) -> Any:
        """Raise ParameterError: sums are weighted by the coefficients, and are not kept."""
        self._problem().check_moments(None)

    forget = update

    def predict(self, X: Any, *, return_std: bool = False) -> Any:
        """Predict means (n,), or quantiles (n,) or (n, k), of rows; lazily of a Dask collection.

        With `return_std` the standard deviations of new targets come too, of distributions.
        """
        return self.model_.predict(self._rows(X), return_std=return_std)

    def predict_to_hdf5(
        self, X: Any, path: str | Path, *, return_std: bool = False, force: bool = False
    ) -> int:
        """Predict the rows of a source or an array into the dataset `y_pred` of a new HDF5 file.

        With `return_std`, a dataset `y_std` holds the standard deviations of new targets.  Returned
        is how many rows were predicted as NaN, because `on_bad_rows` is 'skip'.
        """
        source = self._source(X, targets=False)
        how: Any = {"return_std": return_std, "force": force}
        return int(self._current_model.predict_to_hdf5(source, path, **how))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        name = str(self.loss).partition(":")[0]
        tags.target_tags.positive_only = name in ("poisson", "gamma", "tweedie")
        return tags

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the part of the loss of a constant that is explained, D2, in one pass."""
        found = self.evaluate(X, y, sample_weight)["d2"]
        return float(sum(found) / len(found)) if isinstance(found, list) else float(found)

    def evaluate(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, Any]:
        """Compare predictions with targets, in one pass; parameters are those of `fit`.

        Returns
        -------
        dict
            `rows`, `skipped_rows`, the mean loss by its name (`deviance`, `log_loss`, `pinball` or
            `huber_loss`), `d2`, of quantiles their `coverage`, the share of rows up to them,
            `rmse`, `mae`, `r2` and `baseline`; of several quantiles lists.
        """
        return self._current_model.evaluate(self._source(X, y, sample_weight))
