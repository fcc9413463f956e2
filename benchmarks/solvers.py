"""Conjugate gradients beside the D x D system: python benchmarks/solvers.py agree|more FOLDER...

Every set is a folder with `data.npz`: X and y.  `agree`: maps, each with a kernel that it has, are
fitted in double precision by both solvers to 5,000 rows, and predict others.  It prints the
penalties, how far apart predictions are in deviations of the target, and cross-validated errors in
parts of themselves.  The map `grid` takes the first two inputs.  `more`: errors on held-out rows of
up to 4,096 features by the D x D system, and of more by conjugate gradients; a question mark where
the report says that the systems were not solved to the end.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from real_sets import read

from streamkern import RandomFeatureRidge

KERNELS = {
    "orthogonal": "gaussian",
    "iid": "matern32",
    "sorf": "gaussian",
    "qmc": "gaussian",
    "nystroem": "matern52",
    "grid": "matern32",
}
_DIRECT = 1024, 2048, 4096


def agree(folder: Path, n: int, components: int, maps: str) -> None:
    rows = np.load(folder / "data.npz", allow_pickle=False)
    order = np.random.default_rng(0).permutation(len(rows["X"]))
    fitted, others = order[:n], order[n : 2 * n]
    print("| map | penalty | the same | predictions | error | iterations | seconds |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for name in maps.split(","):
        X, y = rows["X"][:, :2] if name == "grid" else rows["X"], rows["y"].ravel()
        models, seconds = [], []
        for solver in ("cg", "direct"):
            how = {"n_components": components, "feature_map": name, "solver": solver}
            begun = time.perf_counter()
            model = RandomFeatureRidge(KERNELS[name], precision="double", **how)
            models.append(model.fit(X[fitted], y[fitted]))
            seconds.append(time.perf_counter() - begun)
        first, other = models
        apart = (first.predict(X[others]) - other.predict(X[others])) / y[fitted].std()
        errors = abs(first.report_["cv_rmse"] / other.report_["cv_rmse"] - 1.0)
        same = "yes" if abs(first.alpha_ / other.alpha_ - 1.0) < 1e-3 else "no"
        told = f"{other.alpha_:.2g} | {same} | {np.sqrt(np.mean(apart**2)):.1e} | {errors:.1e}"
        taken = f"{first.report_['iterations']} | {seconds[0]:.0f}, {seconds[1]:.0f}"
        print(f"| `{name}` | {told} | {taken} |", flush=True)


def more(folder: Path, sizes: list[int]) -> None:
    rows = read(folder)

    def fitted(D: int, solver: str) -> tuple[float, str]:
        begun = time.perf_counter()
        model = RandomFeatureRidge("matern52", n_components=D, solver=solver).fit(rows.X, rows.y)
        seconds, report = time.perf_counter() - begun, model.report_
        unsolved = "?" if solver == "cg" and report["gradients"]["note"] else ""
        told = f"D = {D:,}, {report['passes']} passes{unsolved}, {seconds:.0f} s"
        return rows.error(model.predict(rows.X_test)), told

    found = [min(fitted(D, "direct") for D in _DIRECT)]
    found += [fitted(D, "cg") for D in sizes if 2 * len(rows.X) >= D]
    print(
        f"| {rows.name} | " + " | ".join(f"{e:.4f}, {told}" for e, told in found) + " |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["agree", "more"])
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--rows", type=int, default=5000, help="of agree")
    parser.add_argument("--components", default="4096", help="of more: 16384,65536")
    parser.add_argument("--maps", default=",".join(KERNELS), help="of agree")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    sizes: Any = [int(D) for D in given.components.split(",")]
    for folder in given.sets:
        if given.what == "agree":
            agree(folder, given.rows, sizes[0], given.maps)
        else:
            more(folder, sizes)


if __name__ == "__main__":
    main()
