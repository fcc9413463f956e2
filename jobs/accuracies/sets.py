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


def split(X: Any, y: Any, mask: Any = None) -> tuple[Any, Any, Any]:
    """Return finite rows, and which are held out: those of a mask, or else a random tenth."""
    held_out = np.random.default_rng(0).random(len(X)) < _HELD_OUT if mask is None else mask
    whole = np.isfinite(X).all(axis=1) & np.isfinite(y)
    return X[whole], y[whole], held_out[whole]


def read_as_stored(folder: Path) -> tuple[Any, Any, Any]:
    """Return inputs, targets and which rows are held out: the first column of `test_mask`, if any.

    Rows with values that are not finite are left out.
    """
    with np.load(folder / "data.npz", allow_pickle=False) as data:
        mask = data["test_mask"][:, 0].astype(bool) if "test_mask" in data else None
        return split(data["X"].astype(float), data["y"].astype(float), mask)


def read(folder: Path) -> Rows:
    """Read a set, standardised on the training rows.

    Inputs that are constant on these stay as they are, less their mean.
    """
    X, y, held_out = read_as_stored(folder)
    mean, deviation = X[~held_out].mean(axis=0), X[~held_out].std(axis=0)
    X = (X - mean) / np.where(deviation > 0, deviation, 1.0)
    y = (y - y[~held_out].mean()) / y[~held_out].std()
    return Rows(folder.name, X[~held_out], y[~held_out], X[held_out], y[held_out])
