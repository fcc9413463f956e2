"""Rows as Newton's method takes them: with working targets, and weights of the loss's curvature.

At eta of slope g and curvature h, the loss of a row of weight s is, near by and but for a constant,
s h (z - eta')^2 / 2 with the working target z = eta - g / h.  So a step is ridge regression on z
with weights s h, and the sums of a pass are those of any other fit.  Of several classes, the step
of one is that of its odds against the others, as the functions of these are.

Green (1984), "Iteratively reweighted least squares for maximum likelihood estimation".
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import DataError
from streamkern.extensions.losses.loss import Loss
from streamkern.predict.predictor import Predictor
from streamkern.sources import Block
from streamkern.statistics import Folds, FoldStatistics, total
from streamkern.statistics.folds import Weighting

# Parts of the last step whose losses a pass adds up, beside its Gram matrix where all of it went.
STEPS = (0.0, 0.0625, 0.25, 0.5, 1.0)


def targets_of(block: Block, columns: Any, *, are_signs: bool) -> Floats:
    """Return targets of rows, (n,) of a column or (n, q): 0 and 1 where they are -1 and +1."""
    y = block.y[:, columns]
    return 0.5 * (y + 1.0) if are_signs else y


@dataclass(frozen=True)
class WorkingRows(Weighting):
    """A loss at a linear function of rows.

    `predictor` gives that before the last step, and it, and those of the other classes.
    """

    loss: Loss
    judge: Loss  # what the last step was made by, with its scale
    column: int = 0  # of the targets
    are_signs: bool = False  # targets are +1 and -1, for yes and no
    predictor: Predictor | None = None
    is_first: bool = False  # the step is the first, from a constant

    keeps_targets: ClassVar[bool] = False
    n_steps: ClassVar[int] = len(STEPS)

    def by_fold(self, rule: Folds, empty: Any) -> "WorkingFolds":
        """Return the sums of folds: of one target, about 0 and in its own unit."""
        one = {"target_shift": np.zeros(1), "target_unit": np.ones(1)}
        return WorkingFolds(rule, replace(empty, n_targets=1, **one), self)

    def targets(self, block: Block) -> Floats:
        return targets_of(block, self.column, are_signs=self.are_signs)

    @np.errstate(over="ignore")
    def reweighted(self, block: Block, sums: Any) -> Block:
        """Return rows with working targets and weights, with their losses added to sums."""
        weights, y = block.each_weight(), self.targets(block)
        before, here, *others = self.predictor.predict(block.X).T  # type: ignore[union-attr]
        level, lost = np.zeros(len(y)), 0.0
        if others:  # of the odds against all of them; a row loses more by that of its own class
            level = np.logaddexp.reduce(others)
            theirs = np.delete(targets_of(block, ..., are_signs=True), self.column, axis=1)
            lost = weights @ (level * (1.0 - y) - np.sum(theirs.T * others, axis=0))
        for i, step in enumerate(STEPS):
            eta = here if step == 1.0 else before + step * (here - before)
            sums.losses[i] += lost + weights @ self.judge.values(y, eta - level)
        sums.facts += self.loss.facts(y, here, weights)
        here = self.loss.first_eta(y, here) if self.is_first else here
        slope, curvature = self.loss.derivatives(y, here - level)
        weights, z = weights * curvature, here - slope / curvature
        if not np.isfinite(z @ weights):
            wrong = int(block.places()[np.flatnonzero(~np.isfinite(z * weights))[0]])
            raise DataError(
                f"the loss {self.loss.words} of row {wrong:,} has no finite slope; look at its "
                f"target, or rescale the targets."
            )
        return replace(block, y=z[:, None], weights=weights)


class WorkingFolds(FoldStatistics):
    """The sums of folds of working rows, and the losses at parts of the last step."""

    merges_plainly = True

    losses: Floats = total("weighting.n_steps")
    facts: Floats = total("weighting.loss.n_facts")
