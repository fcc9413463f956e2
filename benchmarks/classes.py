"""Classify real sets by official splits: python benchmarks/classes.py ../shared/data/adult_a9a.

Every set is a folder with `data.npz`: X, y, X_test and y_test.  The rows of kddcup99_10pct are in
the order of time, so folds are contiguous.  Some of its test rows are attacks of kinds that no
training row is of, and nothing in the training rows tells how many.  So errors are said twice: on
all test rows after the fit; and calibrated on a random tenth of the test rows, on the others.
With `--boost ROUNDS` the model is boosted as often, beside one of as many features as all rounds.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from real_sets import read_classes

from streamkern import Gaussian, RandomFeatureAdaBoost, RandomFeatureClassifier, RandomFeatureRidge

# What suits a set; landmarks had the least cross-validated error of adult_a9a.
OPTIONS: dict[str, dict[str, Any]] = {
    "adult_a9a": {"kernel": Gaussian(4.0), "feature_map": "nystroem", "standardize": False},
    "kddcup99_10pct": {"fold_by": "blocks"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--components", type=int, default=2048, help="D, or that of a round")
    parser.add_argument("--calibration", default="auto")
    parser.add_argument("--boost", type=int, metavar="ROUNDS")
    options = parser.parse_args()
    for folder in options.sets:
        X, y, X_test, y_test = read_classes(folder)
        how = dict(OPTIONS.get(folder.name, {}))
        if options.boost:
            how |= {"feature_map": "orthogonal"}
            for model in boosted_and_single(options.components, options.boost, how):
                seconds = fitted(model, X, y)
                tell(f"{folder.name}: {model}, {seconds:.1f} s", model.evaluate(X_test, y_test))
            continue
        how |= {"n_components": options.components, "calibration": options.calibration}
        model = RandomFeatureClassifier(**how)
        seconds = fitted(model, X, y)
        tell(f"{folder.name}: all test rows, {seconds:.1f} s", model.evaluate(X_test, y_test))
        tenth = np.random.default_rng(0).random(len(y_test)) < 0.1
        model.calibrate(X_test[tenth], y_test[tenth], calibration=options.calibration)
        found = model.evaluate(X_test[~tenth], y_test[~tenth])
        tell("nine tenths of the test rows, calibrated on the other tenth", found)


def boosted_and_single(components: int, rounds: int, how: dict[str, Any]) -> list[Any]:
    """Return boosted models of every kind, and one model of as many features."""
    one_round = RandomFeatureRidge(n_components=components, **how)
    kinds = [
        RandomFeatureAdaBoost(one_round, n_estimators=rounds, algorithm=kind)
        for kind in ("gentle", "real", "discrete")
    ]
    return [*kinds, RandomFeatureClassifier(n_components=components * rounds, **how)]


def fitted(model: Any, X: Any, y: Any) -> float:
    begun = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begun


def tell(title: str, found: dict[str, Any]) -> None:
    """Print how a model does on rows that it has not seen."""
    print(f"{' '.join(title.split())}: {found['rows']:,} rows")
    names = ("accuracy", "balanced_accuracy", "auc", "log_loss", "brier_score")
    for name in (*names, "expected_calibration_error"):
        print(f"    {name} {found[name]:.4f}", flush=True)
    if sets := found.get("sets"):
        classes = ", ".join(f"{share:.3f}" for share in sets["by_class"])
        print(f"    sets of 90% hold {sets['coverage']:.3f}, by class {classes}")
        print(f"    classes in a set {sets['size']:.3f}", flush=True)


if __name__ == "__main__":
    main()
