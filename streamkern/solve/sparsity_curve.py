"""The number of features of a sparse model, chosen by cross-validation from moments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from streamkern._typing import Floats
from streamkern.solve.cross_validation import HeldOut, squared_errors
from streamkern.solve.sparse_selection import Sparsifier
from streamkern.statistics import FeatureSums


def sparse_sizes(n_components: int) -> list[int]:
    """Return 1, 2, 3, 4, 6, 8, 11, 16 and so on to D, each about sqrt(2) times the last."""
    halvings = np.arange(2 * np.log2(n_components) + 1)
    return np.unique(np.rint(n_components / np.sqrt(2.0) ** halvings)).astype(int).tolist()


def sparse_errors(
    total: FeatureSums,
    fold: FeatureSums,
    sizes: Sequence[int],
    sparsifier: Sparsifier,
    intercept: bool,
) -> HeldOut:
    """Score on one fold sparse models of all the others, one for every number of features."""
    training = total.without(fold).centred(intercept=intercept)
    chosen = sparsifier.supports(training, sizes)
    held, sse = fold.centred(), np.empty((len(sizes), training.cross.shape[1]))
    for i, support in enumerate(chosen):
        solution, _ = sparsifier.solve(training, support)
        sse[i] = squared_errors(held.subset(support), solution)
    return HeldOut(held.weight, sse, fold.n_rows)


@dataclass(frozen=True)
class SparsityCurve:
    """The held-out error of sparse models, over their numbers of features."""

    sizes: tuple[int, ...]  # ascending
    fold_scores: Floats  # the mean squared errors of the folds, (K, sizes, q)
    fold_weights: Floats  # (K,)
    scale: Floats  # the variances of the targets, which make them comparable

    @classmethod
    def of_folds(cls, sizes: Sequence[int], folds: Sequence[HeldOut], scale: Floats) -> Self:
        weights = np.array([fold.weight for fold in folds])
        scores = np.array([fold.sse / fold.weight for fold in folds])
        return cls(tuple(sizes), scores, weights, scale)

    @property
    def rmse(self) -> Floats:
        return np.sqrt(np.average(self.fold_scores, axis=0, weights=self.fold_weights))

    def rmse_of(self, size: int) -> Floats:
        return self.rmse[self.sizes.index(size)]

    def relative(self) -> tuple[Floats, Floats]:
        """Return the mean squared error in shares of the variances, and its standard error."""
        scores = (self.rmse**2 / self.scale).mean(axis=1)
        folds = (self.fold_scores / self.scale).mean(axis=2)
        return scores, folds.std(axis=0, ddof=1) / np.sqrt(len(folds))

    def choose(self) -> int:
        """Return the index of the fewest features within one standard error of the best."""
        scores, errors = self.relative()
        best = int(scores.argmin())
        return int((scores <= scores[best] + errors[best]).argmax())

    def as_dict(self, *, flat: bool) -> dict[str, Any]:
        scores, errors = self.relative()
        return {
            "n_components": list(self.sizes),
            "cv_rmse": (self.rmse[:, 0] if flat else self.rmse).tolist(),
            "relative_mse": scores.tolist(),
            "standard_errors": errors.tolist(),
        }
