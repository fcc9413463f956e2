"""Classify real sets by official splits: python jobs/classify_sets.py ../shared/data/adult_a9a.

Every set is a folder with `data.npz`: X, y, X_test and y_test.  Of adult_a9a the inputs are taken
as they are, all of them 0 or 1.  Of kddcup99_10pct the classes are attack and normal; three codes
become a column a level, and the logarithms of bytes and seconds are taken.  Its rows are in the
order of time, so folds are contiguous.

The test rows of kddcup99_10pct are in part attacks of kinds that no training row is of, and some
look like normal rows.  Nothing in the training rows tells how many.  So errors are said twice: on
all test rows after the fit; and calibrated on a random tenth of the test rows, on the others.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import streamkern

_LEVELS = {"protocol_type": "protocol_levels", "service": "service_levels", "flag": "flag_levels"}
_HEAVY = ("duration", "src_bytes", "dst_bytes")


class Rows(NamedTuple):
    """Training rows, test rows, and the options that suit them."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    options: dict[str, Any]


def adult(data: Any) -> Rows:
    """Return rows of adult_a9a; landmarks had the least cross-validated error."""
    options = {"kernel": streamkern.Gaussian(4.0), "feature_map": "nystroem", "standardize": False}
    arrays = [data[name] for name in ("X", "y", "X_test", "y_test")]
    return Rows(*arrays, options | {"n_components": 2048})


def kddcup(data: Any) -> Rows:
    """Return rows of kddcup99_10pct, attacks against normal ones."""
    names = data["feature_names"].tolist()
    columns = {names.index(name): len(data[levels]) for name, levels in _LEVELS.items()}
    heavy = [names.index(name) for name in _HEAVY]

    def inputs(X: Any) -> Any:
        one_hot = [X[:, [j]] == np.arange(n_levels) for j, n_levels in columns.items()]
        others = np.delete(X, [*columns, *heavy], axis=1)
        return np.hstack([others, np.log1p(X[:, heavy]), *one_hot], dtype=np.float32)

    def labels(y: Any) -> Any:
        return np.where(data["label_names"][y] == "normal.", "normal", "attack")

    arrays = inputs(data["X"]), labels(data["y"]), inputs(data["X_test"]), labels(data["y_test"])
    return Rows(*arrays, {"fold_by": "blocks", "n_components": 2048})


SETS = {"adult_a9a": adult, "kddcup99_10pct": kddcup}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--components", type=int, help="D, in the place of what suits the set")
    parser.add_argument("--calibration", default="sigmoid", choices=["sigmoid", "isotonic"])
    options = parser.parse_args()
    for folder in options.sets:
        with np.load(folder / "data.npz", allow_pickle=False) as data:
            rows = SETS[folder.name]({name: data[name] for name in data.files})
        chosen = rows.options | ({"n_components": options.components} if options.components else {})
        model = streamkern.RandomFeatureClassifier(calibration=options.calibration, **chosen)
        begun = time.perf_counter()
        model.fit(rows.X, rows.y)
        seconds = time.perf_counter() - begun
        print(
            f"{folder.name}: {model.report_['rows']:,} rows x {model.n_features_in_} inputs, D = "
            f"{len(model.coef_):,}, alpha {model.alpha_:.3g}, {options.calibration} calibration, "
            f"{seconds:.1f} s"
        )
        tell("all test rows", model.evaluate(rows.X_test, rows.y_test))
        tenth = np.random.default_rng(0).random(len(rows.y_test)) < 0.1
        model.calibrate(rows.X_test[tenth], rows.y_test[tenth], calibration=options.calibration)
        found = model.evaluate(rows.X_test[~tenth], rows.y_test[~tenth])
        tell("nine tenths of the test rows, calibrated on the other tenth", found)


def tell(title: str, found: dict[str, Any]) -> None:
    """Print how a model does on rows that it has not seen."""
    print(f"  {title}: {found['rows']:,}")
    names = ("accuracy", "balanced_accuracy", "auc", "log_loss", "brier_score")
    for name in (*names, "expected_calibration_error"):
        print(f"    {name} {found[name]:.4f}")
    for label, counts in zip(found["classes"], found["confusion_matrix"], strict=True):
        said = ", ".join(f"{n:,} as {to}" for n, to in zip(counts, found["classes"], strict=True))
        print(f"    {label}: {said}", flush=True)


if __name__ == "__main__":
    main()
