"""Conjugate gradients beside the D x D system: python jobs/solvers.py ../shared/data/uci_kin40k.

Maps, each with a kernel that it has, are fitted in double precision by both solvers to the first
rows of `data.npz`, and predict other rows.  It prints the penalties that were chosen, how far
apart predictions are in deviations of the target, and cross-validated errors in parts of
themselves.  The map `grid` takes the first two inputs.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import streamkern
from streamkern.errors import StreamkernWarning

KERNELS = {
    "orthogonal": "gaussian",
    "iid": "matern32",
    "sorf": "gaussian",
    "qmc": "gaussian",
    "nystroem": "matern52",
    "grid": "matern32",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--components", type=int, default=4096)
    parser.add_argument("--maps", default=",".join(KERNELS))
    options = parser.parse_args()
    warnings.simplefilter("ignore", StreamkernWarning)
    data = np.load(options.folder / "data.npz", allow_pickle=False)
    order = np.random.default_rng(0).permutation(len(data["X"]))
    fitted, others = order[: options.rows], order[options.rows : 2 * options.rows]
    print(
        "| map | penalty | the same | predictions | cross-validated error | iterations | seconds |"
    )
    print("|---|---:|---|---:|---:|---:|---:|")
    for name in options.maps.split(","):
        X = data["X"][:, :2] if name == "grid" else data["X"]
        y = data["y"].ravel()
        models, seconds = dict[str, Any](), list[float]()
        for solver in ("cg", "direct"):
            begun = time.perf_counter()
            models[solver] = streamkern.RandomFeatureRidge(
                KERNELS[name],
                n_components=options.components,
                feature_map=name,
                precision="double",
                solver=solver,
            ).fit(X[fitted], y[fitted])
            seconds.append(time.perf_counter() - begun)
        first, other = models.values()
        apart = (first.predict(X[others]) - other.predict(X[others])) / y[fitted].std()
        errors = first.report_["cv_rmse"] / other.report_["cv_rmse"] - 1.0
        same = "yes" if abs(first.alpha_ / other.alpha_ - 1.0) < 1e-3 else "no"
        told = (
            f"| {other.alpha_:.2g} | {same} | {np.sqrt(np.mean(apart**2)):.1e} | {abs(errors):.1e}"
        )
        taken = f"{first.report_['iterations']} | {seconds[0]:.0f}, {seconds[1]:.0f}"
        print(f"| `{name}` {told} | {taken} |", flush=True)


if __name__ == "__main__":
    main()
