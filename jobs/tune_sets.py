"""Tune against fit on real sets, side by side: python jobs/tune_sets.py ../shared/data/uci_*.

Every set is a folder with `data.npz`: X, y and, where a split is published, test_mask, whose first
column is used; otherwise a random tenth is held out.  Errors are root mean squares on the rows held
out, over the standard deviation of the target.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from accuracies.sets import read_as_stored

import streamkern


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--components", type=int, default=4096)
    options = parser.parse_args()
    print(
        f"{'set':16}{'rows':>8}{'fit':>8}{'tune':>8}{'length scale':>14}{'seconds':>16}{'ratio':>7}"
    )
    for folder in options.sets:
        X, y, held_out = read_as_stored(folder)
        seconds, errors = [], []
        for method in ("fit", "tune"):
            model = streamkern.RandomFeatureRidge(n_components=options.components)
            begun = time.perf_counter()
            getattr(model, method)(X[~held_out], y[~held_out])
            seconds.append(time.perf_counter() - begun)
            error = np.sqrt(np.mean((model.predict(X[held_out]) - y[held_out]) ** 2))
            errors.append(error / y[~held_out].std())
        print(
            f"{folder.name:16}{np.sum(~held_out):>8,}{errors[0]:>8.3f}{errors[1]:>8.3f}"
            f"{model.report_['length_scale']:>14.4g}"
            f"{seconds[0]:>8.1f}{seconds[1]:>8.1f}{seconds[1] / seconds[0]:>7.2f}"
        )


if __name__ == "__main__":
    main()
