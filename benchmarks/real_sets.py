"""Real data sets: folders with `data.npz`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

_HELD_OUT = 0.1
# Of kddcup99: codes that become a column a level, and columns of which the logarithm is taken.
_LEVELS = {"protocol_type": "protocol_levels", "service": "service_levels", "flag": "flag_levels"}
_HEAVY = ("duration", "src_bytes", "dst_bytes")


class Rows(NamedTuple):
    """Training rows and rows held out, in units of the training rows' deviations."""

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any

    def error(self, predictions: Any) -> float:
        """Return the root mean square error on the rows held out, over sd(y)."""
        return float(np.sqrt(np.mean((predictions - self.y_test) ** 2)))


def split(X: Any, y: Any, masks: Any = None, number: int = 0) -> tuple[Any, Any, Any]:
    """Return finite rows, and which are held out: a column of masks, or else a random tenth.

    Of a table with texts, rows are finite whose target is.
    """
    tenth = np.random.default_rng(number).random(len(X)) < _HELD_OUT
    held_out = tenth if masks is None else masks[:, number].astype(bool)
    whole = np.isfinite(y)
    if isinstance(X, np.ndarray):
        whole &= np.isfinite(X).all(axis=1)
    return X[whole], y[whole], held_out[whole]


def read_as_stored(folder: Path, number: int = 0) -> tuple[Any, Any, Any]:
    """Return inputs, targets and which rows are held out: a column of `test_mask`, if any."""
    with np.load(folder / "data.npz", allow_pickle=False) as data:
        masks = data.get("test_mask")
        return split(data["X"].astype(float), data["y"].astype(float), masks, number)


def read(folder: Path) -> Rows:
    """Read a set, standardised on the training rows; constant inputs only lose their mean."""
    X, y, held_out = read_as_stored(folder)
    mean, deviation = X[~held_out].mean(axis=0), X[~held_out].std(axis=0)
    X = (X - mean) / np.where(deviation > 0, deviation, 1.0)
    y = (y - y[~held_out].mean()) / y[~held_out].std()
    return Rows(folder.name, X[~held_out], y[~held_out], X[held_out], y[held_out])


def read_classes(folder: Path) -> tuple[Any, Any, Any, Any]:
    """Return inputs and labels of training rows, and of the official test rows.

    Of kddcup99_10pct the classes are attack and normal; three codes become a column a level, and
    the logarithms of bytes and seconds are taken.
    """
    with np.load(folder / "data.npz", allow_pickle=False) as stored:
        data = {name: stored[name] for name in stored.files}
    arrays = [data[name] for name in ("X", "y", "X_test", "y_test")]
    if "label_names" not in data:
        return tuple(arrays)
    names = data["feature_names"].tolist()
    columns = {names.index(name): len(data[levels]) for name, levels in _LEVELS.items()}
    heavy = [names.index(name) for name in _HEAVY]

    def inputs(X: Any) -> Any:
        one_hot = [X[:, [j]] == np.arange(n_levels) for j, n_levels in columns.items()]
        others = np.delete(X, [*columns, *heavy], axis=1)
        return np.hstack([others, np.log1p(X[:, heavy]), *one_hot], dtype=np.float32)

    def labels(y: Any) -> Any:
        return np.where(data["label_names"][y] == "normal.", "normal", "attack")

    X, y, X_test, y_test = arrays
    return inputs(X), labels(y), inputs(X_test), labels(y_test)
