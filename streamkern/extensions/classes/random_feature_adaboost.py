"""AdaBoost with random-feature ridge, as scikit-learn's users meet it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from streamkern.errors import ParameterError
from streamkern.estimators.base import fitted, with_state
from streamkern.estimators.conventions import keep_parameters
from streamkern.estimators.docstrings import documented
from streamkern.estimators.random_feature_ridge import RandomFeatureRidge
from streamkern.extensions.classes.fitted_ensemble import OF_A_ROUND, Boosting
from streamkern.extensions.classes.random_feature_classifier import ClassEstimator
from streamkern.parameters.parameters import Parameters
from streamkern.runtime.events import job


@documented
class RandomFeatureAdaBoost(ClassEstimator):
    """AdaBoost with random-feature ridge regression, on rows that are weighted as they are read.

    A round is ridge regression on +1 and -1, as of `RandomFeatureClassifier`, with a map of its own
    and the standardisation and kernel that all rounds share.  Its scores become votes, the votes
    V (n, K) of all rounds are added up, and the class with most is chosen.  The next round weighs a
    row of class y by its own weight times exp(-V_y), which is computed where the row is read, from
    the rounds before: nothing is kept of any row.  A round is two passes over the rows, one for
    sums and a light one for what its votes count.

    Memory and solving take the D of one round, not of all together.  A single model of as many
    features, where it can be had, often gets fewer rows wrong.

    Parameters
    ----------
    estimator : RandomFeatureRidge, optional
        What every round is, by default of 512 features; the seed of its map is `random_state` in
        the first round and one more in each after it.
    n_estimators : int
        T, the most rounds there may be.  There are fewer where one does no better than chance on
        its weights, or gets no row wrong: `report_["stopped"]` says so.
    algorithm : {'gentle', 'real', 'discrete'}
        How scores become votes: as they are, which is Gentle AdaBoost; by the logarithms of the
        probabilities that they estimate, which is Real AdaBoost, or SAMME.R; or as one class, with
        a weight that follows from how many rows are wrong, which is AdaBoost, or SAMME.
    learning_rate : float
        What votes are multiplied by besides, above 0 and at most 1.

    Attributes
    ----------
    report_ : dict
        Rows, seconds and memory of the fit, and `rounds`: of each its weighted error, and the
        training error after it, for two classes with its bound, the mean of exp(-V) for the votes
        V of a row's class.  Both are means with the weights of rows.

    Notes
    -----
    Probabilities are those of the additive model that the rounds fit: p_k is in proportion to
    exp(V_k).

    References
    ----------
    Freund and Schapire (1997), "A decision-theoretic generalization of on-line learning and an
    application to boosting", for AdaBoost and the bound.
    Friedman, Hastie and Tibshirani (2000), "Additive logistic regression: a statistical view of
    boosting", for Real and Gentle AdaBoost, and probabilities.
    Zhu, Zou, Rosset and Hastie (2009), "Multi-class AdaBoost".
    """

    ensemble_ = fitted("predictor", "The predictors of the rounds, with what their votes count.")
    predictor_ = ensemble_

    def __init__(
        self,
        estimator: RandomFeatureRidge | None = None,
        *,
        n_estimators: int = 10,
        algorithm: str = "gentle",
        learning_rate: float = 1.0,
        class_weight: str | Mapping[Any, float] | None = None,
    ) -> None:
        keep_parameters(self, locals())

    @property
    def on_bad_rows(self) -> str:  # type: ignore[override]
        """What to do about rows that are not finite, or have no label, as `estimator` says."""
        return getattr(self.estimator, "on_bad_rows", "error")

    def _parameters(self) -> Parameters:
        if self.estimator is None:
            return OF_A_ROUND
        if not isinstance(self.estimator, RandomFeatureRidge):
            raise ParameterError(
                f"estimator must be a RandomFeatureRidge, not {self.estimator!r}; give one, or "
                f"None."
            )
        return Parameters.of(self.estimator)

    @job("fit")
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Fit the model: the labels are read for their classes, then the rows.

        A light pass comes first, and another last; every round is a pass of sums and a light one.
        A fit that was stopped goes on in its round.

        Raises
        ------
        DataError
            If rows or labels cannot be used, or the first round does no better than chance.
        """
        options = self.n_estimators, self.algorithm, self.learning_rate, self.class_weight
        boosting, parameters = Boosting(*options), self._parameters()
        boosting.check(parameters)
        rows = self._tables(X, y, sample_weight, first=True, fewest=2)
        return with_state(self, boosting.fit(parameters, rows, checkpoint=checkpoint))

    def staged_evaluate(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, Any]:
        """Say how the first rounds do, for every number of them, in one pass.

        Returns
        -------
        dict
            `rows`, `errors`, the share of rows that is wrong after every round, and
            `error_bounds`, what that is at most, or None of more than two classes.
        """
        model = self._current_model
        return model.staged_evaluate(model.source(*self._tables(X, y, sample_weight)))
