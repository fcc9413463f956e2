"""Errors of rows of a sample that are left out, each alone or together with others."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamkern._typing import Array, Floats

# Penalties that are tried, over the largest eigenvalue.
_PENALTIES = np.geomspace(1e-7, 1.0, 8)


class _Ridge(NamedTuple):
    """A ridge regression on all rows."""

    alone: Floats  # squared errors of rows that are left out one by one, means over targets, (n,)
    residuals: Floats  # (n, q)
    shrunk: Floats  # 1 / (eigenvalue + alpha), (D,)


class LeftOutErrors:
    """What ridge regressions on features (n, D) predict of targets (n, q) that they are without.

    Of the residuals r and their hat matrix H, rows that are left out have the errors (I - H)^-1 r.
    """

    def __init__(self, features: Floats, y: Floats) -> None:
        features, y = features - features.mean(axis=0), y - y.mean(axis=0)
        values, vectors = np.linalg.eigh(features.T @ features)
        self._along, self._fits = features @ vectors, list[_Ridge]()
        for alpha in _PENALTIES * values[-1]:
            shrunk = 1.0 / (np.maximum(values, 0.0) + alpha)
            residuals = y - self._along @ (shrunk[:, None] * (self._along.T @ y))
            spare = 1.0 - 1.0 / len(y) - np.square(self._along) @ shrunk
            alone = np.square(residuals / spare[:, None]).mean(axis=1)
            self._fits.append(_Ridge(alone, residuals, shrunk))
        self._best = min(self._fits, key=lambda each: each.alone.mean())

    def of_parts(self, parts: Sequence[Array], *, own_penalty: bool = False) -> Floats:
        """Return mean squared errors of parts of the rows (K, 2): each row left out, or all.

        The penalty is the best one for single rows; with `own_penalty`, errors of whole parts use
        the penalty that is best for them.
        """
        alone, sizes = [self._best.alone[part].mean() for part in parts], list(map(len, parts))
        fits = self._fits if own_penalty else [self._best]
        several = [[self._without(part, fit) for part in parts] for fit in fits]
        least = min(several, key=lambda each: np.average(each, weights=sizes))
        return np.column_stack([alone, least])

    def _without(self, part: Array, fit: _Ridge) -> float:
        along = self._along[part]
        hat = (along * fit.shrunk) @ along.T + 1.0 / len(self._along)
        errors = np.linalg.solve(np.eye(len(part)) - hat, fit.residuals[part])
        return float(np.square(errors).mean())
