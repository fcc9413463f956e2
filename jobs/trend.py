"""A field with a trend in its elevation: errors with the trend, without, and of exact kriging.

python jobs/trend.py --rows 20000 --components 4096
"""

import argparse
import warnings
from typing import Any

import numpy as np

from streamkern import Matern, RandomFeatureRidge
from streamkern.errors import StreamkernWarning

WAVES, NOISE, SLOPE, BLOCK = 8000, 0.3, 3.0, 2000
FIELD, ELEVATION = Matern(0.15, nu=1.5), Matern(0.1, nu=0.5)
HELD, EXACT = 4000, 2000


def drawn(kernel: Matern, X: Any, rng: np.random.Generator) -> Any:
    """Return a sum of many waves of the spectral distribution, which is nearly a Gaussian field."""
    uniforms = 1.0 - rng.random((WAVES, 1))
    w = kernel.spectral(rng.standard_normal((WAVES, X.shape[1])), uniforms)
    phases, sizes = 2 * np.pi * rng.random(WAVES), rng.standard_normal(WAVES)
    parts = [X[start : start + BLOCK] for start in range(0, len(X), BLOCK)]
    waves = np.concatenate([np.cos(part @ w.T + phases) @ sizes for part in parts])
    return waves * np.sqrt(2 / WAVES)


def exact(X: Any, y: Any, Z: Any) -> tuple[Any, Any, float, float]:
    """Return predictions, deviations of new targets, and the slope with its standard error."""
    inverse = np.linalg.inv(FIELD(X[:, :2], X[:, :2]) + NOISE**2 * np.eye(len(X)))
    lines, at = (np.column_stack([np.ones(len(A)), A[:, 2], A[:, :2]]) for A in (X, Z))
    covariance = np.linalg.inv(lines.T @ inverse @ lines)
    slopes = covariance @ (lines.T @ inverse @ y)
    between = FIELD(Z[:, :2], X[:, :2])
    rest = at - between @ inverse @ lines
    variances = 1 + NOISE**2 - ((between @ inverse) * between).sum(axis=1)
    variances += ((rest @ covariance) * rest).sum(axis=1)
    mean = at @ slopes + between @ inverse @ (y - lines @ slopes)
    return mean, np.sqrt(variances), float(slopes[1]), float(np.sqrt(covariance[1, 1]))


def slope_of(model: RandomFeatureRidge) -> str:
    found = model.report_.get("trend")
    return "{coefficient:.3f} ± {deviation:.3f}".format(**found[0]) if found else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--components", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore", StreamkernWarning)
    rng, n = np.random.default_rng(0), options.rows
    places = rng.random((n + HELD, 2))
    X = np.column_stack([places, drawn(ELEVATION, places, rng)])
    truth = drawn(FIELD, places, rng) + SLOPE * X[:, 2] - 2 * X[:, 0]
    y = truth + NOISE * rng.standard_normal(len(X))

    def told(name: str, mean: Any, deviation: Any, slope: str) -> None:
        error = np.sqrt(np.mean((mean - truth[n:]) ** 2))
        held = np.mean(np.abs(y[n:] - mean) < 1.96 * deviation)
        print(f"| {name} | {error:.3f} | {held:.1%} | {slope} |", flush=True)

    print("| model | error | 95% intervals hold | slope |\n|---|---:|---:|---:|")
    grid: dict[str, Any] = {"feature_map": "grid", "n_components": options.components}
    for name, p, more in (
        ("trend of elevation and coordinates", 3, grid | {"trend": [2, "linear"]}),
        ("coordinates alone", 2, grid),
        ("elevation as a third coordinate", 3, grid),
    ):
        model = RandomFeatureRidge(**more).fit(X[:n, :p], y[:n])
        told(name, *model.predict(X[n:, :p], return_std=True), slope_of(model))
    few = min(n, EXACT)
    mean, deviation, at, error = exact(X[:few], y[:few], X[n:])
    told(f"universal kriging of {few:,} rows", mean, deviation, f"{at:.3f} ± {error:.3f}")
    scale = tuple(0.15 / X[:few, :2].std(axis=0))
    known = {"alpha": NOISE**2, "trend": [2, "linear"]}
    model = RandomFeatureRidge(Matern(scale, nu=1.5), **grid, **known).fit(X[:few], y[:few])
    told("the same, by waves", *model.predict(X[n:], return_std=True), slope_of(model))


if __name__ == "__main__":
    main()
