"""Errors of few features and of many: python jobs/many_features.py ../shared/data/*.

Every set is a folder with `data.npz`: X and y.  Up to 4,096 features the D x D system is solved, of
more by conjugate gradients, both with the penalty by cross-validation; no more are tried than twice
the rows.  Prints errors on held-out rows over the standard deviation of the target, and seconds; a
question mark where the report says that the systems were not solved to the end.
"""

import argparse
import time
import warnings
from pathlib import Path

from accuracies.sets import read

import streamkern

_DIRECT = 1024, 2048, 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--components", default="16384,65536", help="numbers beyond 4,096")
    parser.add_argument("--kernel", default="matern52")
    parser.add_argument("--map", default="orthogonal")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    by_passes = [int(D) for D in options.components.split(",")]
    sizes = ["best of direct", *(f"{D:,}" for D in by_passes)]
    print(f"{'set':18}{'rows':>9}" + "".join(f"{name:>26}" for name in sizes))
    for folder in options.sets:
        if not (folder / "data.npz").exists():
            continue
        rows = read(folder)
        print(f"{rows.name:18}{len(rows.X):>9,}", end="", flush=True)

        def fitted(D: int, solver: str, rows=rows) -> tuple[float, float, int, str]:
            begun = time.perf_counter()
            model = streamkern.RandomFeatureRidge(
                options.kernel, n_components=D, feature_map=options.map, solver=solver
            ).fit(rows.X, rows.y)
            seconds = time.perf_counter() - begun
            error = rows.error(model.predict(rows.X_test))
            report = model.report_
            unsolved = "?" if solver == "cg" and report["gradients"]["note"] else ""
            return error, seconds, D, f"{report['passes']} passes{unsolved}"

        best = min(fitted(D, "direct") for D in _DIRECT)
        print(f"{best[0]:.4f} {best[1]:.1f} s, {best[2]:,}".rjust(26), end="", flush=True)
        for D in by_passes:
            if 2 * len(rows.X) < D:
                print("-".rjust(26), end="", flush=True)
                continue
            error, seconds, _, passes = fitted(D, "cg")
            print(f"{error:.4f} {seconds:.0f} s, {passes}".rjust(26), end="", flush=True)
        print()


if __name__ == "__main__":
    main()
