"""Losses of predictions, beside their squared errors, and shares of rows below them."""

from typing import Any

import numpy as np
from scipy.special import logit

from streamkern._typing import Floats
from streamkern.extensions.losses.loss import Loss
from streamkern.extensions.losses.loss_names import name_of
from streamkern.extensions.losses.working_rows import targets_of
from streamkern.predict.evaluation import PredictionErrors, as_stored
from streamkern.sources import Block
from streamkern.statistics import total

# Linear functions of means, which are no nearer to the ends than digits tell.
_LEAST = np.finfo(float).tiny
_ENDS = np.finfo(float).eps, 1.0 - np.finfo(float).epsneg


def _linear(means: Floats, link: str) -> Floats:
    """Return the linear functions of means, of classes their odds against all others."""
    if link == "log":
        return np.log(np.maximum(means, _LEAST))
    return logit(np.clip(means, *_ENDS)) if link in ("logit", "softmax") else means


class LossErrors(PredictionErrors):
    """Errors of means or quantiles (n, q) of one target, or of shares of q classes, of a loss each.

    What several classes lose is added up.
    """

    losses: tuple[Loss, ...] = ()
    link: str = "identity"
    constants: tuple[float, ...] = ()  # functions that are best for all rows of the fit alike
    columns: tuple[int, ...] = (0,)  # of the targets
    are_signs: bool = False
    lost: Floats = total("n_targets")
    # By the constants; by 0, where the mean of the targets is the best.
    of_constants: Floats = total("n_targets")
    below: Floats = total("n_targets")  # the weight of targets up to the predictions
    pearson: Floats = total("n_targets")  # squared errors over variances of dispersion 1

    def add(self, rows: Block, predicted: Floats) -> None:
        targets = targets_of(rows, list(self.columns), are_signs=self.are_signs)
        weights = rows.each_weight()
        etas = _linear(predicted, self.link)
        for k, (loss, y) in enumerate(zip(self.losses, targets.T, strict=True)):
            constant = np.full(len(y), 0.0 if loss.mean_is_best else self.constants[k])
            self.lost[k] += weights @ loss.values(y, etas[:, k])
            self.of_constants[k] += weights @ loss.values(y, constant)
            with np.errstate(divide="ignore", invalid="ignore"):
                variance = loss.variance(predicted[:, k])
                self.pearson[k] += weights @ (np.square(y - predicted[:, k]) / variance)
            self.below[k] += weights @ (y <= predicted[:, k])
        super().add(Block(rows.X, targets, rows.start, rows.weights, rows.rows), predicted)

    def each(self, sums: Any) -> Any:
        """Return sums over rows by function, (q,), or (1,) of all classes together."""
        return np.sum(sums, keepdims=True) if self.losses[0].is_joint else sums

    @property
    def d2(self) -> Floats:
        """The part of the loss of the best constants that is explained, (q,), or (1,) of classes.

        Of quantiles and Huber's loss, the constant is the best of the rows of the fit.
        """
        of_best = self.of_constants.copy()
        for k, loss in enumerate(self.losses):
            if loss.mean_is_best:  # the loss is linear in y but for what no eta changes
                mean = np.full(2, self.targets.mean[k])
                best = loss.constant(mean[:1], np.array([self.weight]))
                of_best[k] -= self.weight * np.diff(loss.values(mean, np.array([best, 0.0])))[0]
        varies = float(self.targets.maximum[0]) > float(self.targets.minimum[0])
        lost, of_best = self.each(self.lost), self.each(of_best)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((of_best > 0) & varies, 1.0 - lost / of_best, 0.0)

    @property
    def score(self) -> float:
        """The mean of `d2`, as scikit-learn's score of a regression with another loss."""
        return float(np.mean(self.d2))

    def figures(self) -> dict[str, Any]:
        """Return what is said of the losses, numbers for one and lists for several."""
        name, factor = self.losses[0].figure
        found = {name: factor * self.each(self.lost) / self.weight, "d2": self.d2}
        if name == "pinball":
            found["coverage"] = self.below / self.weight
        return {key: as_told(values) for key, values in found.items()}

    def facts(self, *, flat: bool) -> dict[str, Any]:  # noqa: ARG002
        """Return the same of an evaluation, with squared errors; DataError if it cannot be."""
        lowest, highest = float(self.targets.minimum[0]), float(self.targets.maximum[0])
        self.losses[0].check(lowest, highest)
        spread = float(np.sqrt(self.targets.squares[0] / self.weight))
        squared = {name: as_told(getattr(self, name)) for name in ("rmse", "mae", "r2")}
        said = {"loss": name_of(self.losses), "baseline": {"rmse": spread}}
        return self.figures() | squared | said


def as_told(values: Any) -> Any:
    """Return a number for one function, and a list for several."""
    return as_stored(np.asarray(values), len(values) == 1)
