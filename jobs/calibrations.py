"""Log loss by calibration: python jobs/calibrations.py ../shared/data/*.

A set is a folder with `data.npz`.  Of numbers two tables of classes are made: whether the target
is above its median, of 12,000 rows, and above its ninth decile, of 3,000.  Losses are those of rows
held out, of the same model with each calibration.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from accuracies.sets import read_as_stored, read_classes
from sklearn.metrics import log_loss

import streamkern
from streamkern.predict.calibration_fit import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS = {0.5: 12_000, 0.9: 3000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--components", type=int, default=1024, help="D")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found, methods = [], METHODS[1:]
    print(f"{'table':26}" + "".join(f"{method:>10}" for method in methods))
    for folder in options.sets:
        for name, *rows in tables(folder):
            losses = [loss(method, options.components, rows) for method in methods]
            found.append(np.array(losses) / losses[1])
            print(f"{name:26}" + "".join(f"{each:>10.4f}" for each in losses), flush=True)
    for what, ratios in (("mean", np.mean(found, axis=0)), ("worst", np.max(found, axis=0))):
        print(f"{what + ', over sigmoid':26}" + "".join(f"{each:>10.4f}" for each in ratios))


def tables(folder: Path) -> Iterator[tuple[Any, ...]]:
    """Yield names, rows and classes to fit, and those held out."""
    with np.load(folder / "data.npz", allow_pickle=False) as stored:
        has_classes = "X_test" in stored
    if has_classes:
        yield folder.name, *read_classes(folder)
        return
    X, y, held = read_as_stored(folder)
    some = np.random.default_rng(0).permutation(np.flatnonzero(~held))
    for share, most in _KINDS.items():
        above, mine = y > np.quantile(y[~held], share), some[:most]
        if above[mine].any():
            yield f"{folder.name} > {share}", X[mine], above[mine], X[held], above[held]


def loss(method: str, D: int, rows: Any) -> float:
    X, y, X_test, y_test = rows
    model = streamkern.RandomFeatureClassifier(n_components=D, calibration=method).fit(X, y)
    return float(log_loss(y_test, model.predict_proba(X_test), labels=model.classes_))


if __name__ == "__main__":
    main()
