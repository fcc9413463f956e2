"""Write tables that models go wrong on: python jobs/hard_tables.py FOLDER, then tables.py FOLDER/*.

Each is a folder with `data.npz`: X, y, and test_mask, by which 2,000 rows of the same kind are held
out.  A model should be no worse on any of them than `linear` and `fit`, but for noise:
`python jobs/tables.py FOLDER/* --contenders "linear,fit,tune 1m"`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Table = tuple[Any, Any]

_ROWS, _FEW, _TEST = 3000, 80, 2000


def noise(n: int, random: Any) -> Table:
    return random.normal(size=(n, 8)), random.normal(size=n)


def linear(n: int, random: Any) -> Table:
    X = random.normal(size=(n, 8))
    return X, X @ np.arange(8.0) + random.normal(size=n)


def exclusive_or(n: int, random: Any) -> Table:
    X = random.normal(size=(n, 8))
    return X, np.sign(X[:, 0] * X[:, 1]) + 0.1 * random.normal(size=n)


def waves(n: int, random: Any) -> Table:
    X = random.uniform(size=(n, 2))
    return X, np.sin(60 * X[:, 0]) + np.sin(40 * X[:, 1]) + 0.1 * random.normal(size=n)


def heavy_tails(n: int, random: Any) -> Table:
    X = random.standard_t(1.5, size=(n, 5))
    return X, np.tanh(X[:, 0]) + np.tanh(X[:, 1]) + 0.1 * random.standard_t(2.0, size=n)


def clusters(n: int, random: Any) -> Table:
    mine = random.integers(50, size=n)
    X = random.normal(size=(50, 4))[mine] + 0.01 * random.normal(size=(n, 4))
    return X, random.normal(size=50)[mine] + 0.1 * random.normal(size=n)


def smooth(n: int, random: Any) -> Table:
    X = random.normal(size=(n, 5))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.normal(size=n)


def in_order(n: int, random: Any) -> Table:
    X, y = smooth(n, random)
    order = np.argsort(y)
    return X[order], y[order]


def from_elsewhere(n: int, random: Any) -> Table:
    """Return rows of which the first nine tenths lie far from the others, in another unit of y."""
    X, y = smooth(n, random)
    far = np.arange(n) < 0.9 * n
    return X + 20.0 * far[:, None], np.where(far, 10.0 * y + 100.0, y)


TABLES: dict[str, tuple[Callable[[int, Any], Table], int]] = {
    "noise": (noise, _ROWS),
    "linear": (linear, _ROWS),
    "exclusive-or": (exclusive_or, _ROWS),
    "waves": (waves, _ROWS),
    "heavy-tails": (heavy_tails, _ROWS),
    "clusters": (clusters, _ROWS),
    "in-order": (in_order, _ROWS),
    "from-elsewhere": (from_elsewhere, _ROWS),
    "few-rows": (smooth, _FEW),
    "few-rows-noise": (noise, _FEW),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name, (table, n) in TABLES.items():
        random = np.random.default_rng(options.seed)
        X, y = table(n + _TEST, random)
        held_out = np.isin(np.arange(n + _TEST), random.choice(n + _TEST, _TEST, replace=False))
        path = options.folder / name
        path.mkdir(parents=True, exist_ok=True)
        np.savez(path / "data.npz", X=X, y=y, test_mask=held_out[:, None])


if __name__ == "__main__":
    main()
