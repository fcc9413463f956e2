"""AdaBoost beside one model of as many features: python jobs/boosting.py FOLDER [options].

The folder holds `data.npz`: X, y of classes, and X_test, y_test.  For every algorithm a line a
round: the share of training rows that is wrong, what that is at most, and the share of test rows.
Beside them a single classifier of one round's features, and one of as many as all rounds have.

    python jobs/boosting.py ../shared/data/adult_a9a --rounds 10 --components 512
    python jobs/boosting.py ../shared/data/adult_a9a --length-scale 4 --no-standardize
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from streamkern import Gaussian, RandomFeatureAdaBoost, RandomFeatureClassifier, RandomFeatureRidge

ALGORITHMS = ("gentle", "real", "discrete")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("folder", type=Path, help="with data.npz")
    add("--rounds", type=int, default=10)
    add("--components", type=int, default=512, help="features of a round")
    add("--length-scale", type=float, help="of the Gaussian kernel, by default the median")
    add("--no-standardize", action="store_true", help="take the inputs in their own units")
    add("--alpha", default="cv", help="cv, gcv, or evidence: how rounds choose the penalty")
    add("--learning-rate", type=float, default=1.0)
    add("--algorithms", default=",".join(ALGORITHMS), help="with commas between")
    add("--seed", type=int, default=0)
    add("--json", type=Path, help="file to write what is printed to")
    return parser.parse_args()


def choices(given: argparse.Namespace, components: int) -> dict[str, Any]:
    """Return what one model of so many features, and a round, have in common."""
    return {
        "kernel": Gaussian(given.length_scale or "median"),
        "standardize": not given.no_standardize,
        "n_components": components,
        "alpha": given.alpha,
        "random_state": given.seed,
    }


def boosted(given: argparse.Namespace, algorithm: str, rows: Any, test: Any) -> dict[str, Any]:
    """Fit by one algorithm, and print what every round does."""
    model = RandomFeatureAdaBoost(
        RandomFeatureRidge(**choices(given, given.components)),
        n_estimators=given.rounds,
        algorithm=algorithm,
        learning_rate=given.learning_rate,
    )
    begun = time.perf_counter()
    model.fit(*rows)
    seconds = time.perf_counter() - begun
    on_test = model.staged_evaluate(*test)["errors"]
    whole, report = model.evaluate(*test), model.report_
    stopped = f"; stopped, {report['stopped']}" if report["stopped"] else ""
    print(f"\n{algorithm}, {given.components:,} features a round, {seconds:.1f} s{stopped}")
    print(f"{'round':>6}{'step':>8}{'weighted':>10}{'training':>10}{'at most':>9}{'test':>9}")
    for each, error in zip(report["rounds"], on_test, strict=True):
        bound = each["train_error_bound"]
        most = "-" if bound is None else f"{bound:.4f}"
        print(
            f"{each['round']:>6}{each['step']:>8.3f}{each['weighted_error']:>10.4f}"
            f"{each['train_error']:>10.4f}{most:>9}{error:>9.4f}"
        )
    print(summary("all rounds", whole))
    rounds = [{**one, "test_error": e} for one, e in zip(report["rounds"], on_test, strict=True)]
    return {"model": algorithm, "seconds": seconds, "rounds": rounds, "test": whole}


def single(given: argparse.Namespace, components: int, rows: Any, test: Any) -> dict[str, Any]:
    """Fit one model, and print how it does."""
    model = RandomFeatureClassifier(**choices(given, components))
    begun = time.perf_counter()
    model.fit(*rows)
    seconds = time.perf_counter() - begun
    train, whole = model.evaluate(*rows), model.evaluate(*test)
    print(f"\none model of {components:,} features, {seconds:.1f} s")
    print(f"training error {1 - train['accuracy']:.4f}; {summary('test', whole)}")
    return {"model": f"one of {components}", "seconds": seconds, "train": train, "test": whole}


def summary(name: str, found: dict[str, Any]) -> str:
    """Return in words how a model does on test rows."""
    return (
        f"{name}: error {1 - found['accuracy']:.4f}, area under the curve {found['auc']:.4f}, log "
        f"loss {found['log_loss']:.4f}, calibration error {found['expected_calibration_error']:.4f}"
    )


def main() -> None:
    given = options()
    with np.load(given.folder / "data.npz", allow_pickle=False) as arrays:
        rows = arrays["X"].astype(np.float32), arrays["y"]
        test = arrays["X_test"].astype(np.float32), arrays["y_test"]
    print(f"{given.folder.name}: {len(rows[0]):,} rows, {len(test[0]):,} test rows")
    found = [
        single(given, D, rows, test) for D in (given.components, given.components * given.rounds)
    ]
    found += [boosted(given, name, rows, test) for name in given.algorithms.split(",")]
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
