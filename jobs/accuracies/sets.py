"""Real data sets: folders with `data.npz`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

_HELD_OUT = 0.1


class Rows(NamedTuple):
    """Training rows and rows held out, in units of the training rows' deviations.

    Attributes
    ----------
    name : str
    X, X_test : ndarray of shape (n, p) and (m, p), float64
    y, y_test : ndarray of shape (n,) and (m,), float64
    """

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any

    def error(self, predictions: Any) -> float:
        """Return the root mean square error on the rows held out, over sd(y)."""
        return float(np.sqrt(np.mean((predictions - self.y_test) ** 2)))


def read(folder: Path) -> Rows:
    """Read a set: the first column of `test_mask` is held out, or else a random tenth.

    Rows with values that are not finite are left out; inputs that are constant on the training
    rows stay as they are, less their mean.
    """
    with np.load(folder / "data.npz", allow_pickle=False) as data:
        X, y = data["X"].astype(float), data["y"].astype(float)
        held_out = np.random.default_rng(0).random(len(X)) < _HELD_OUT
        if "test_mask" in data:
            held_out = data["test_mask"][:, 0].astype(bool)
    whole = np.isfinite(X).all(axis=1) & np.isfinite(y)
    X, y, held_out = X[whole], y[whole], held_out[whole]
    mean, deviation = X[~held_out].mean(axis=0), X[~held_out].std(axis=0)
    X = (X - mean) / np.where(deviation > 0, deviation, 1.0)
    y = (y - y[~held_out].mean()) / y[~held_out].std()
    return Rows(folder.name, X[~held_out], y[~held_out], X[held_out], y[held_out])
