"""Tune against fit on real sets, side by side: python jobs/tune_sets.py ../shared/data/uci_*.

Every set is a folder with `data.npz`: X, y and, where a split is published, test_mask, whose first
column is used; otherwise a random tenth is held out.  Errors are root mean squares over the
standard deviation of the target: those of cross-validation, and those on the rows held out.
"""

import argparse
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from accuracies.sets import read_as_stored

import streamkern


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--components", type=int, default=4096)
    parser.add_argument("--budget", help="of every search, as 3m")
    parser.add_argument("--seeds", type=int, default=1, help="of maps and samples")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'set':16}{'seed':>5}{'rows':>8}{'by folds':>16}{'held out':>16}{'seconds':>16}")
    for folder, seed in product(options.sets, range(options.seeds)):
        X, y, held_out = read_as_stored(folder)
        sd, found = y[~held_out].std(), []
        for method, how in (("fit", {}), ("tune", {"budget": options.budget})):
            model = streamkern.RandomFeatureRidge(
                n_components=options.components, random_state=seed
            )
            begun = time.perf_counter()
            getattr(model, method)(X[~held_out], y[~held_out], **how)
            seconds = time.perf_counter() - begun
            errors = model.predict(X[held_out]) - y[held_out]
            rmse = np.sqrt(np.mean(errors**2))
            found.append((float(model.report_["cv_rmse"]) / sd, float(rmse / sd), seconds))
        by_folds, held, seconds = zip(*found, strict=True)
        print(
            f"{folder.name:16}{seed:>5}{np.sum(~held_out):>8,}{by_folds[0]:>8.3f}{by_folds[1]:>8.3f}"
            f"{held[0]:>8.3f}{held[1]:>8.3f}{seconds[0]:>8.1f}{seconds[1]:>8.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
