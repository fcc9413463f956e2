"""Feature maps beside each other: python benchmarks/maps.py errors|seconds [FOLDER...].

`errors ../shared/data/uci_kin40k ...` compares kernels of features with the exact Gaussian at the
median length scale on standardised rows of `data.npz`: the root mean squared error, and in
brackets how many independent features have the same.  `seconds` takes the time of features a row
on one thread, by the number of inputs.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from streamkern.features import FAMILIES
from streamkern.kernels import Gaussian
from streamkern.runtime.scratch import Scratch
from streamkern.runtime.threads import blas_threads

COMPARED = ("iid", "orthogonal", "sorf", "qmc")
ROWS, SEEDS, BLOCK = 500, 20, 2048


def squared_error(name: str, D: int, X: Any, kernel: Any, exact: Any) -> float:
    """Return the mean squared error over pairs of rows and seeds."""
    pairs = np.triu_indices(len(X), 1)
    errors = []
    for seed in range(SEEDS):
        feature_map = FAMILIES[name].map_of(kernel, D, random_state=seed)
        features = feature_map.draw(X.shape[1], X).transform(X)
        errors.append(np.mean((features @ features.T - exact)[pairs] ** 2))
    return float(np.mean(errors))


def errors(folders: list[Path], components: list[int]) -> None:
    for folder in folders:
        X = np.load(folder / "data.npz", allow_pickle=False)["X"].astype(float)
        X = X[np.random.default_rng(0).permutation(len(X))[:ROWS]]
        X = X[:, np.ptp(X, axis=0) > 0]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        kernel = Gaussian("median").resolved(X)
        exact = kernel(X, X)
        print(f"\n{folder.name}, p = {X.shape[1]}")
        print(f"{'D':>6}" + "".join(f"{name:>20}" for name in COMPARED))
        for D in components:
            found = {name: squared_error(name, D, X, kernel, exact) for name in COMPARED}
            like = {name: found["iid"] / error for name, error in found.items()}
            shown = [f"{np.sqrt(found[name]):>11.5f} ({like[name]:>5.2f}x)" for name in COMPARED]
            print(f"{D:>6}" + "".join(f"{text:>20}" for text in shown))


def seconds(D: int) -> None:
    print(f"\nmicroseconds a row, D = {D}, single precision, processor time, least of 9 in turns")
    print(f"{'p':>6}{'one by one':>12}{'sorf':>12}{'ratio':>8}")
    for p in (32, 64, 128, 192, 256, 384, 512, 784, 1024, 1536, 3072):
        X = np.random.default_rng(0).standard_normal((BLOCK, p), dtype=np.float32)
        out, scratch = np.empty((BLOCK, D), dtype=np.float32), Scratch()
        # Drawing orthogonal frequencies of many inputs takes long, and has no part in this.
        least = {"iid": np.inf, "sorf": np.inf}
        maps = {name: FAMILIES[name].map_of(Gaussian(float(p) ** 0.5), D).draw(p) for name in least}
        with blas_threads(1):
            for _ in range(9):
                for name, feature_map in maps.items():
                    begun = time.thread_time()
                    for _ in feature_map.evaluated(X, out, 0.0, scratch):
                        pass
                    least[name] = min(least[name], time.thread_time() - begun)
        dense, fast = (1e6 * least[name] / BLOCK for name in ("iid", "sorf"))
        print(f"{p:>6}{dense:>12.1f}{fast:>12.1f}{dense / fast:>8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["errors", "seconds"])
    parser.add_argument("folders", nargs="*", type=Path, help="with data.npz, for errors")
    parser.add_argument("--components", type=int, nargs="+", default=[64, 256, 1024, 4096])
    options = parser.parse_args()
    if options.what == "errors":
        errors(options.folders, options.components)
    else:
        seconds(options.components[-1])


if __name__ == "__main__":
    main()
