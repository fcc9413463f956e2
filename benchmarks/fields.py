"""Fields on a grid of frequencies: python benchmarks/fields.py seconds|errors|coordinates|trend.

`seconds`: rows in an HDF5 file are fitted with one penalty, beside the transforms alone of arrays
in memory.  `errors`: a random field with a short length scale, about which errors are said of rows
here and there and of those under forty discs as clouds make, beside other maps and kriging by the
nearest rows.  `coordinates`: a sphere in degrees and in three coordinates, a slope along and across
the inputs, a season by time and by its place in the year.  `trend`: a field beside a line in its
elevation, with universal kriging of 2,000 rows.
"""

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from streamkern import Matern, RandomFeatureRidge

WAVES, BLOCK, CHUNK = 8000, 2048, 1 << 20


def drawn(kernel: Matern, X: Any, rng: np.random.Generator) -> Any:
    """Return what is nearly a Gaussian field at places X, of many waves of its density."""
    uniforms = 1.0 - rng.random((WAVES, 1))
    w = kernel.spectral(rng.standard_normal((WAVES, X.shape[1])), uniforms)
    phases, sizes = 2 * np.pi * rng.random(WAVES), rng.standard_normal(WAVES)
    parts = [X[start : start + BLOCK] for start in range(0, len(X), BLOCK)]
    waves = np.concatenate([np.cos(part @ w.T + phases) @ sizes for part in parts])
    return waves * np.sqrt(2 / WAVES)


def rmse(model: Any, X: Any, f: Any) -> float:
    return float(np.sqrt(np.mean((model.predict(X) - f) ** 2)))


def held(model: Any, X: Any, y: Any) -> float:
    """Return the share of targets that 95% intervals hold."""
    mean, deviations = model.predict(X, return_std=True)
    return float(np.mean(np.abs(y - mean) < 1.96 * deviations))


def seconds(given: argparse.Namespace) -> None:
    head = ("rows", "columns", "sums", "solve", "alone", "iterations", "peak GB", "error")
    print("".join(f"{name:>12}" for name in head))

    def truth(X: Any) -> Any:
        return np.sin(9.0 * X[:, 0]) * np.cos(14.0 * X[:, 0] * X[:, 1])

    def write(path: Path, n: int) -> None:
        rng = np.random.default_rng(0)
        with h5py.File(path, "w") as file:
            X = file.create_dataset("X", (n, 2), "f4", chunks=(min(n, 1 << 16), 2))
            y = file.create_dataset("y", (n,), "f4", chunks=(min(n, 1 << 16),))
            for start in range(0, n, CHUNK):
                rows = slice(start, min(start + CHUNK, n))
                some = rng.random((rows.stop - start, 2))
                X[rows], y[rows] = some, truth(some) + 0.2 * rng.standard_normal(len(some))

    for n in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "field.h5")
            write(path, n)
            # Of a standardised input of a unit square, the extent is the root of 12.
            kernel = Matern((given.length_scale or 0.1) * 12**0.5, nu=1.5)
            how = {"feature_map": "grid", "n_components": given.components}
            model = RandomFeatureRidge(kernel, alpha=1e-6 * n, **how).fit(path)
            alone = transforms(path, model)
        report, X = model.report_, np.random.default_rng(1).random((CHUNK, 2))
        taken = report["seconds"]
        solve = taken["total"] - taken["columns"] - taken["pass"]
        shown = (
            *(f"{s:.2f}" for s in (taken["columns"], taken["pass"], solve, alone)),
            (f"{report['iterations']}"),
        )
        more = f"{report['peak_worker_bytes'] / 1e9:.2f}", f"{rmse(model, X, truth(X)):.4f}"
        print("".join(f"{each:>12}" for each in (f"{n:,}", *shown, *more)), flush=True)


def transforms(path: Path, model: Any) -> float:
    """Return the seconds of the transforms alone, on all cores, of rows that are in memory."""
    import finufft

    from streamkern.extensions.fields.waves import lattice_of
    from streamkern.features.abilities import innermost

    lattice: Any = lattice_of(innermost(model.feature_map_))
    options, taken = {"eps": 1e-9, "isign": 1, "nthreads": os.cpu_count()}, 0.0
    with h5py.File(path) as file:
        for start in range(0, len(file["y"]), 8 * CHUNK):
            rows = file["X"][start : start + 8 * CHUNK]
            angles = model.feature_map_.standardizer(rows) * lattice.cell
            x, y = (np.ascontiguousarray(each) for each in angles.T)
            factors = np.ones((2, len(x)), complex)
            begun = time.perf_counter()
            finufft.nufft2d1(x, y, factors[0], tuple((2 * lattice.modes).tolist()), **options)
            finufft.nufft2d1(x, y, factors, tuple(lattice.modes.tolist()), **options)
            taken += time.perf_counter() - begun
    return taken


def errors(given: argparse.Namespace) -> None:
    rng, n, D, noise = np.random.default_rng(0), given.rows[0], given.components, 0.3
    X = rng.uniform(size=(n, 2)).astype(np.float32)
    for nu in (0.5, 1.5):
        kernel = Matern(given.length_scale or 0.03, nu=nu)
        f = drawn(kernel, X, rng)
        y = f + noise * rng.standard_normal(n)
        clouded = (cdist(X, rng.random((40, 2))) < 0.05).any(axis=1)
        scattered = ~clouded & (rng.random(n) < 0.1)
        seen = ~clouded & ~scattered
        print(f"\nMatern {nu}, {n:,} rows, D = {D:,}")
        known: dict[str, Any] = {"alpha": noise**2}
        contenders: dict[str, dict[str, Any]] = {
            **{name: {"feature_map": name} | known for name in ("orthogonal", "qmc", "nystroem")},
            "grid": known,
            "grid, 16 times D": known | {"n_components": 16 * D},
            "grid, penalty by CV": {},
            "grid, smaller penalties": {"alphas": np.geomspace(1e-7, 1, 29)},
            "grid, kernel chosen": {"kernel": "auto"},
            "grid, by gradients": known | {"solver": "cg"},
            "nearest 30": {},
        }
        for name, how in contenders.items():
            begun, usual = time.perf_counter(), {"n_components": D, "feature_map": "grid"}
            if name == "nearest 30":
                model = nearest(kernel, noise, X[seen], y[seen])
            else:
                model = RandomFeatureRidge(**{"kernel": kernel, "standardize": False} | usual | how)
                model.fit(X[seen], y[seen])
            made = [rmse(model, X[each], f[each]) for each in (scattered, clouded)]
            taken = time.perf_counter() - begun
            told = f"{name:>24}: errors {made[0]:.4f} and {made[1]:.4f}, {taken:.0f} s"
            if name.startswith("grid") and "alpha" in how:
                parts = [
                    held(model, X[each][:5000], y[each][:5000]) for each in (scattered, clouded)
                ]
                told += f"; 95% intervals hold {parts[0]:.1%} and {parts[1]:.1%}"
            print(told, flush=True)


def nearest(kernel: Any, noise: float, X: Any, y: Any, n: int = 30) -> Any:
    """Return what predicts by the Gaussian process of the nearest rows alone."""
    tree, mean = KDTree(X), y.mean()

    def predict(rows: Any) -> Any:
        made = np.empty(len(rows))
        for i, places in enumerate(tree.query(rows, n)[1]):
            gram = kernel(X[places], X[places]) + noise**2 * np.eye(n)
            along = kernel(rows[i : i + 1], X[places])
            made[i] = mean + (along @ np.linalg.solve(gram, y[places] - mean))[0]
        return made

    return SimpleNamespace(predict=predict)


def coordinates(given: argparse.Namespace) -> None:
    rng, n, noise = np.random.default_rng(0), given.rows[0], 0.1
    how: dict[str, Any] = {"feature_map": "grid", "n_components": given.components}
    degrees = np.column_stack(
        [rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))]
    )
    a, b = np.radians(degrees).T
    places = np.column_stack([np.cos(b) * np.cos(a), np.cos(b) * np.sin(a), np.sin(b)])
    f, test = drawn(Matern(0.3, nu=1.5), places, rng), rng.random(n) < 1 / 6
    y, poles = f + noise * rng.standard_normal(n), test & (np.abs(degrees[:, 1]) > 80)
    for name, X in (("degrees", degrees), ("three coordinates", places)):
        model = RandomFeatureRidge(**how).fit(X[~test], y[~test])
        at_poles = rmse(model, X[poles], f[poles])
        print(f"{name}: error {rmse(model, X[test], f[test]):.3f}, at the poles {at_poles:.3f}")

    X, angle = rng.uniform(size=(n, 2)), np.radians(30)
    turned = X @ [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]] / [0.1, 0.8]
    f = drawn(Matern(1.0, nu=1.5), turned, rng)
    y, lengths = f + noise * rng.standard_normal(n), 0.1 * 2.0 ** np.arange(4)
    along = [Matern((a, b), nu=1.5) for a in lengths for b in lengths]
    for name, X_of, kernels, standardize in (
        ("as they are", X, ["auto"], True),
        ("turned by hand", turned, ["auto"], True),
        ("along the inputs", X, along, False),
    ):
        tried = [RandomFeatureRidge(kernel, standardize=standardize, **how) for kernel in kernels]
        best = min(
            (model.fit(X_of[~test], y[~test]) for model in tried),
            key=lambda model: model.report_["cv_rmse"],
        )
        print(f"{name}: error {rmse(best, X_of[test], f[test]):.3f}", flush=True)

    times = np.sort(rng.uniform(0, 10, 4000))
    angles = 2 * np.pi * times
    f = (1 + 0.03 * times) * np.sin(angles) + 0.5 * np.cos(2 * angles + 0.3) + 0.05 * times
    y, gap = f + 0.3 * rng.standard_normal(len(f)), (times > 6) & (times < 6.7)
    season = np.column_stack([np.cos(angles), np.sin(angles), times])
    for name, X in (("times", times[:, None]), ("place in the year", season)):
        model = RandomFeatureRidge(feature_map="grid", n_components=1024).fit(X[~gap], y[~gap])
        inside, else_ = rmse(model, X[gap], f[gap]), rmse(model, X[~gap], f[~gap])
        print(f"{name}: error in a gap {inside:.3f}, else {else_:.3f}")


def trend(given: argparse.Namespace) -> None:
    rng, n, noise, field = np.random.default_rng(0), given.rows[0], 0.3, Matern(0.15, nu=1.5)
    places = rng.random((n + 4000, 2))
    X = np.column_stack([places, drawn(Matern(0.1, nu=0.5), places, rng)])
    truth = drawn(field, places, rng) + 3.0 * X[:, 2] - 2 * X[:, 0]
    y = truth + noise * rng.standard_normal(len(X))
    grid: dict[str, Any] = {"feature_map": "grid", "n_components": given.components}
    lines: dict[str, Any] = grid | {"trend": [2, "linear"]}

    def tell(name: str, model: Any, m: int, p: int) -> None:
        model.fit(X[:m, :p], y[:m])
        error, inside = rmse(model, X[n:, :p], truth[n:]), held(model, X[n:, :p], y[n:])
        found = model.report_.get("trend")
        slope = "{coefficient:.3f} ± {deviation:.3f}".format(**found[0]) if found else ""
        print(f"| {name} | {error:.3f} | {inside:.1%} | {slope} |", flush=True)

    print("| model | error | 95% intervals hold | slope |\n|---|---:|---:|---:|")
    tell("trend of elevation and coordinates", RandomFeatureRidge(**lines), n, 3)
    tell("coordinates alone", RandomFeatureRidge(**grid), n, 2)
    tell("elevation as a third coordinate", RandomFeatureRidge(**grid), n, 3)
    m = min(n, 2000)
    mean, deviation, slope, error = kriging(field, noise, X[:m], y[:m], X[n:])
    inside = np.mean(np.abs(y[n:] - mean) < 1.96 * deviation)
    apart = np.sqrt(np.mean((mean - truth[n:]) ** 2))
    print(f"| universal kriging | {apart:.3f} | {inside:.1%} | {slope:.3f} ± {error:.3f} |")
    kernel = Matern(tuple(0.15 / X[:m, :2].std(axis=0)), nu=1.5)
    tell("the same, by waves", RandomFeatureRidge(kernel, alpha=noise**2, **lines), m, 3)


def kriging(kernel: Any, noise: float, X: Any, y: Any, Z: Any) -> tuple[Any, Any, float, float]:
    """Return predictions, deviations of new targets, and the slope with its standard error."""
    inverse = np.linalg.inv(kernel(X[:, :2], X[:, :2]) + noise**2 * np.eye(len(X)))
    lines, at = (np.column_stack([np.ones(len(A)), A[:, 2], A[:, :2]]) for A in (X, Z))
    covariance = np.linalg.inv(lines.T @ inverse @ lines)
    slopes = covariance @ (lines.T @ inverse @ y)
    between = kernel(Z[:, :2], X[:, :2])
    rest = at - between @ inverse @ lines
    variances = 1 + noise**2 - ((between @ inverse) * between).sum(axis=1)
    variances += ((rest @ covariance) * rest).sum(axis=1)
    mean = at @ slopes + between @ inverse @ (y - lines @ slopes)
    return mean, np.sqrt(variances), float(slopes[1]), float(np.sqrt(covariance[1, 1]))


# Numbers of rows and of features that each has by itself.
PARTS = {
    "seconds": (seconds, "1e6", 2048),
    "errors": (errors, "1e5", 4096),
    "coordinates": (coordinates, "3e4", 2048),
    "trend": (trend, "2e4", 4096),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=PARTS)
    parser.add_argument("--rows", help="of seconds several, with commas between")
    parser.add_argument("--components", type=int)
    parser.add_argument("--length-scale", type=float, help="of seconds and errors")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    part, rows, components = PARTS[given.what]
    given.rows = [int(float(text)) for text in (given.rows or rows).split(",")]
    given.components = given.components or components
    part(given)


if __name__ == "__main__":
    main()
