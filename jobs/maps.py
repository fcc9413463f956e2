"""Feature maps beside each other: python jobs/maps.py errors|seconds|field [FOLDER...].

`errors ../shared/data/uci_kin40k ...` compares kernels of features with the exact Gaussian at the
median length scale on standardised rows of `data.npz`: the root mean squared error, and in
brackets how many independent features have the same.  `seconds` takes the time of features a row
on one thread, by the number of inputs.  `field` fits a random field of two inputs with a short
length scale, of known smoothness, and compares errors about it, of rows here and there and of those
under forty discs as clouds make, with exact kriging by the nearest rows.
"""

import argparse
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

import streamkern
from streamkern.features import FAMILIES
from streamkern.kernels import Gaussian, Matern
from streamkern.runtime.threads import blas_threads

COMPARED = ("iid", "orthogonal", "sorf", "qmc")
ROWS, SEEDS = 500, 20
WAVES, BLOCK, NOISE = 16_384, 2048, 0.3
# Whose intervals are looked at: by the D x D system, and by its leading block.
HAVE_DEVIATIONS = {"grid", "finer grid", "by gradients"}


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


def seconds(D: int = 4096) -> None:
    print(f"\nmicroseconds a row, D = {D}, single precision, processor time, least of 9 in turns")
    print(f"{'p':>6}{'one by one':>12}{'sorf':>12}{'ratio':>8}")
    for p in (32, 64, 128, 192, 256, 384, 512, 784, 1024, 1536, 3072):
        X = np.random.default_rng(0).standard_normal((BLOCK, p), dtype=np.float32)
        out = np.empty((BLOCK, D), dtype=np.float32)
        scratch = streamkern.runtime.scratch.Scratch()
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


def field(n: int, D: int, length_scale: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 2)).astype(np.float32)
    for nu in (0.5, 1.5):
        kernel = Matern(length_scale, nu=nu)
        w = kernel.spectral(
            rng.standard_normal((WAVES, 2)), 1.0 - rng.random((WAVES, kernel.n_uniforms))
        )
        f = sum_of_waves(X, w, 2 * np.pi * rng.random(WAVES))
        y = f + NOISE * rng.standard_normal(n)
        clouded = (cdist(X, rng.random((40, 2))) < 0.05).any(axis=1)
        scattered = ~clouded & (rng.random(n) < 0.1)
        seen = ~clouded & ~scattered
        print(f"\nMatern {nu}, length scale {length_scale} of the side, {n:,} rows, D = {D:,}")
        contenders = {
            **{
                name: partial(features, kernel, name, D)
                for name in ("orthogonal", "qmc", "nystroem")
            },
            "grid": partial(features, kernel, "grid", D),
            "finer grid": partial(features, kernel, "grid", 16 * D),
            "cv grid": partial(chosen, D, kernel),
            "any penalty": partial(chosen, D, kernel, alphas=np.geomspace(1e-7, 1, 29)),
            "chosen grid": partial(chosen, D, "auto"),
            "by gradients": partial(chosen, D, kernel, alpha=NOISE**2, solver="cg"),
            "nearest 30": partial(nearest, kernel),
        }
        for name, fitted in contenders.items():
            begun = time.perf_counter()
            model, parts = fitted(X[seen], y[seen]), (scattered, clouded)
            made = [np.sqrt(np.mean((model.predict(X[each]) - f[each]) ** 2)) for each in parts]
            taken = time.perf_counter() - begun
            told = f"{name:>12}: errors {made[0]:.4f} and {made[1]:.4f}, {taken:.0f} s"
            if name in HAVE_DEVIATIONS:
                held = [intervals_hold(model, X[each][:5000], y[each][:5000]) for each in parts]
                told += f"; 95% intervals hold {held[0]:.1%} and {held[1]:.1%}"
            print(told, flush=True)


def sum_of_waves(X: Any, w: Any, phases: Any) -> Any:
    """Return what is nearly a Gaussian field at places X, of many waves of its spectral density."""
    w, phases, f = w.astype(X.dtype), phases.astype(X.dtype), np.empty(len(X))
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        f[rows] = np.cos(X[rows] @ w.T + phases).sum(axis=1) * np.sqrt(2 / len(w))
    return f


def intervals_hold(model: Any, X: Any, y: Any) -> float:
    predicted, deviations = model.predict(X, return_std=True)
    return float(np.mean(np.abs(y - predicted) < 1.96 * deviations))


def features(kernel: Any, name: str, D: int, X: Any, y: Any) -> Any:
    options = {"n_components": D, "alpha": NOISE**2, "feature_map": name, "standardize": False}
    return streamkern.RandomFeatureRidge(kernel, **options).fit(X, y)


def chosen(D: int, kernel: Any, X: Any, y: Any, **options: Any) -> Any:
    """Return a model of a grid that chooses its penalty, and the kernel if it is open."""
    options |= {"n_components": D, "feature_map": "grid", "standardize": False}
    return streamkern.RandomFeatureRidge(kernel, **options).fit(X, y)


def nearest(kernel: Any, X: Any, y: Any, n: int = 30) -> Any:
    """Return what predicts by the Gaussian process of the nearest rows alone."""
    tree, mean = KDTree(X), y.mean()

    def predict(rows: Any) -> Any:
        made = np.empty(len(rows))
        for i, places in enumerate(tree.query(rows, n)[1]):
            gram = kernel(X[places], X[places]) + NOISE**2 * np.eye(n)
            along = kernel(rows[i : i + 1], X[places])
            made[i] = mean + (along @ np.linalg.solve(gram, y[places] - mean))[0]
        return made

    return SimpleNamespace(predict=predict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["errors", "seconds", "field"])
    parser.add_argument("folders", nargs="*", type=Path, help="with data.npz, for errors")
    parser.add_argument("--components", type=int, nargs="+", default=[64, 256, 1024, 4096])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--length-scale", type=float, default=0.03)
    options = parser.parse_args()
    if options.what == "errors":
        errors(options.folders, options.components)
    elif options.what == "seconds":
        seconds(options.components[-1])
    else:
        field(options.rows, options.components[-1], options.length_scale)


if __name__ == "__main__":
    main()
