"""Classify real sets by their official split: python jobs/classify_sets.py ../shared/data/adult_a9a.

Every set is a folder with `data.npz`: X, y, X_test and y_test.  Of adult_a9a the inputs are taken as
they are, all of them 0 or 1.  Of kddcup99_10pct the classes are attack and normal; three codes become
a column a level, and the logarithms of bytes and seconds are taken.  Its rows are in the order of
time, so folds are contiguous there, and attacks are left out that are in no other fold: that is what
its test set has too, whose attacks are in part of kinds that the training rows do not have.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import streamkern


class Rows(NamedTuple):
    """Training rows, test rows, and what suits them."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    options: dict[str, Any]


def adult(data: Any) -> Rows:
    parts = (data[name] for name in ("X", "y", "X_test", "y_test"))
    options = {"kernel": streamkern.Gaussian(4.0), "standardize": False}
    return Rows(*parts, options)


def kddcup(data: Any) -> Rows:
    names = data["feature_names"].tolist()
    codes = {"protocol_type": "protocol", "service": "service", "flag": "flag"}
    columns = {name: names.index(name) for name in codes}
    heavy = [names.index(name) for name in ("duration", "src_bytes", "dst_bytes")]

    def inputs(X: Any) -> Any:
        others = np.delete(X, list(columns.values()), axis=1)
        others = np.delete(X, [*columns.values(), *heavy], axis=1)
        levels = [np.arange(len(data[f"{codes[name]}_levels"])) for name in columns]
        one_hot = [X[:, [j]] == values for j, values in zip(columns.values(), levels, strict=True)]
        return np.hstack([others, np.log1p(X[:, heavy]), *one_hot]).astype(np.float32)

    def labels(y: Any) -> Any:
        return np.where(data["label_names"][y] == "normal.", "normal", "attack")

    X, X_test, y, y_test = data["X"], data["X_test"], data["y"], data["y_test"]
    return Rows(inputs(X), labels(y), inputs(X_test), labels(y_test), {"fold_by": "blocks"})


SETS = {"adult_a9a": adult, "kddcup99_10pct": kddcup}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--components", type=int, default=2048)
    parser.add_argument("--calibration", default="sigmoid,isotonic", help="one or several")
    parser.add_argument("--fold-by", help="in the place of what suits the set")
    options = parser.parse_args()
    for folder in options.sets:
        with np.load(folder / "data.npz", allow_pickle=False) as data:
            rows = SETS[folder.name](data)
        chosen = rows.options | ({"fold_by": options.fold_by} if options.fold_by else {})
        for calibration in options.calibration.split(","):
            model = streamkern.RandomFeatureClassifier(
                n_components=options.components, calibration=calibration, **chosen
            )
            begun = time.perf_counter()
            model.fit(rows.X, rows.y)
            seconds = time.perf_counter() - begun
            tell(f"{folder.name}, {calibration}", model, model.evaluate(rows.X_test, rows.y_test))
            print(f"  seconds {seconds:.1f}\n", flush=True)


def tell(title: str, model: Any, found: dict[str, Any]) -> None:
    """Print how a model does on rows that it has not seen."""
    rows = model.report_["rows"]
    print(f"{title}: {rows:,} rows, D = {len(model.coef_):,}, alpha {model.alpha_:.3g}, ", end="")
    print(f"length scale {model.report_['length_scale']:.3g}; {found['rows']:,} test rows")
    for name in ("accuracy", "balanced_accuracy", "auc", "log_loss", "brier_score"):
        print(f"  {name} {found[name]:.4f}")
    print(f"  expected_calibration_error {found['expected_calibration_error']:.4f}")
    for label, counts in zip(found["classes"], found["confusion_matrix"], strict=True):
        print(
            f"  {label}: "
            + ", ".join(f"{n:,} as {to}" for n, to in zip(counts, found["classes"], strict=True))
        )


if __name__ == "__main__":
    main()
