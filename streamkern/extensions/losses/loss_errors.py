"""Losses of predictions, beside their squared errors, and shares of rows below them."""

from typing import Any

import numpy as np
from scipy.special import logit

from streamkern._typing import Floats
from streamkern.extensions.losses.losses import Loss
from streamkern.extensions.losses.working_rows import targets_of
from streamkern.predict.evaluation import PredictionErrors
from streamkern.sources import Block
from streamkern.statistics import total

# Linear functions of means, which are no nearer to the ends than digits tell.
_LEAST = np.finfo(float).tiny
_ENDS = np.finfo(float).eps, 1.0 - np.finfo(float).epsneg
_INVERSES = {
    "identity": lambda means: means,
    "sorted": lambda means: means,
    "log": lambda means: np.log(np.maximum(means, _LEAST)),
    "logit": lambda means: logit(np.clip(means, *_ENDS)),
}


class LossErrors(PredictionErrors):
    """Errors of means or quantiles (n, q) of one target, of a loss each."""

    losses: tuple[Loss, ...] = ()
    link: str = "identity"
    constants: tuple[float, ...] = ()  # functions that are best for all rows of the fit alike
    column: int = 0  # of the targets
    are_signs: bool = False
    lost: Floats = total("n_targets")
    # By the constants; by 0, where the mean of the targets is the best.
    of_constants: Floats = total("n_targets")
    below: Floats = total("n_targets")  # the weight of targets up to the predictions
    pearson: Floats = total("n_targets")  # squared errors over variances of dispersion 1

    def add(self, rows: Block, predicted: Floats) -> None:
        y, weights = targets_of(rows, self.column, are_signs=self.are_signs), rows.each_weight()
        etas = _INVERSES[self.link](predicted)
        for k, loss in enumerate(self.losses):
            constant = np.full(len(y), 0.0 if loss.mean_is_best else self.constants[k])
            self.lost[k] += weights @ loss.plain.values(y, etas[:, k])
            self.of_constants[k] += weights @ loss.plain.values(y, constant)
            with np.errstate(divide="ignore", invalid="ignore"):
                variance = loss.variance(predicted[:, k])
                self.pearson[k] += weights @ (np.square(y - predicted[:, k]) / variance)
            self.below[k] += weights @ (y <= predicted[:, k])
        every = np.repeat(y[:, None], self.n_targets, axis=1)
        super().add(Block(rows.X, every, rows.start, rows.weights, rows.rows), predicted)

    @property
    def loss(self) -> Floats:
        """The mean loss, (q,)."""
        return self.lost / self.weight

    @property
    def d2(self) -> Floats:
        """The part of the loss of the best constant that is explained, (q,).

        Of quantiles and Huber's loss, the constant is the best of the rows of the fit.
        """
        of_best = self.of_constants.copy()
        mean = float(self.targets.mean[0])
        for k, loss in enumerate(self.losses):
            if loss.mean_is_best:  # the loss is linear in y but for what no eta changes
                best = loss.constant(np.array([mean]), np.array([self.weight]))
                ones, twos = (_gain(loss, y, best) for y in (1.0, 2.0))
                of_best[k] += self.weight * (ones * (2.0 - mean) + twos * (mean - 1.0))
        varies = float(self.targets.maximum[0]) > float(self.targets.minimum[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((of_best > 0) & varies, 1.0 - self.lost / of_best, 0.0)

    def figures(self) -> dict[str, Any]:
        """Return what is said of the losses, numbers for one and lists for several."""
        name, factor = self.losses[0].figure
        found = {name: factor * self.loss, "d2": self.d2}
        if name == "pinball":
            found["coverage"] = self.below / self.weight
        return {key: values[0].item() if len(values) == 1 else values.tolist()
                for key, values in found.items()}  # fmt: skip


def _gain(loss: Loss, y: float, eta: float) -> float:
    """Return what a target loses more by eta than by 0."""
    both = loss.values(np.full(2, y), np.array([eta, 0.0]))
    return float(both[0] - both[1])
