"""Classify real sets by official splits: python jobs/classify_sets.py ../shared/data/adult_a9a.

Every set is a folder with `data.npz`: X, y, X_test and y_test.  The rows of kddcup99_10pct are in
the order of time, so folds are contiguous.

The test rows of kddcup99_10pct are in part attacks of kinds that no training row is of, and some
look like normal rows.  Nothing in the training rows tells how many.  So errors are said twice: on
all test rows after the fit; and calibrated on a random tenth of the test rows, on the others.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from accuracies.sets import read_classes

import streamkern
from streamkern.predict.calibration_fit import METHODS

# What suits a set; landmarks had the least cross-validated error of adult_a9a.
OPTIONS: dict[str, dict[str, Any]] = {
    "adult_a9a": {
        "kernel": streamkern.Gaussian(4.0), "feature_map": "nystroem", "standardize": False
    },
    "kddcup99_10pct": {"fold_by": "blocks"},
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--components", type=int, default=2048, help="D")
    parser.add_argument("--calibration", default="auto", choices=METHODS)
    options = parser.parse_args()
    for folder in options.sets:
        X, y, X_test, y_test = read_classes(folder)
        model = streamkern.RandomFeatureClassifier(
            n_components=options.components, calibration=options.calibration, **OPTIONS[folder.name]
        )
        begun = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - begun
        print(
            f"{folder.name}: {model.report_['rows']:,} rows x {model.n_features_in_} inputs, D = "
            f"{len(model.coef_):,}, alpha {model.alpha_:.3g}, {options.calibration} calibration, "
            f"{seconds:.1f} s"
        )
        tell("all test rows", model.evaluate(X_test, y_test))
        tenth = np.random.default_rng(0).random(len(y_test)) < 0.1
        model.calibrate(X_test[tenth], y_test[tenth], calibration=options.calibration)
        found = model.evaluate(X_test[~tenth], y_test[~tenth])
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
