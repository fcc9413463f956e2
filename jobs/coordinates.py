"""Fields on a sphere, along a slope and with seasons: errors by the coordinates that rows have.

python jobs/coordinates.py --components 2048
"""

import argparse
import warnings
from typing import Any

import numpy as np
from maps import sum_of_waves

import streamkern
from streamkern.errors import StreamkernWarning

WAVES, NOISE = 4000, 0.1


def on_sphere(longitudes: Any, latitudes: Any) -> Any:
    """Return three coordinates (n, 3) of places in degrees."""
    a, b = np.radians(longitudes), np.radians(latitudes)
    return np.column_stack([np.cos(b) * np.cos(a), np.cos(b) * np.sin(a), np.sin(b)])


def seasonal(times: Any) -> Any:
    """Return the place in the year (n, 2), and times in years."""
    angles = 2 * np.pi * times
    return np.column_stack([np.cos(angles), np.sin(angles), times])


def sphere(D: int, n: int = 30_000) -> None:
    rng = np.random.default_rng(0)
    longitudes = rng.uniform(-180, 180, n)
    latitudes = np.degrees(np.arcsin(rng.uniform(-1, 1, n)))
    places, kernel = on_sphere(longitudes, latitudes), streamkern.Matern(0.3, nu=1.5)
    uniforms = 1.0 - rng.random((WAVES, 1))
    w = kernel.spectral(rng.standard_normal((WAVES, 3)), uniforms)
    f = sum_of_waves(places, w, 2 * np.pi * rng.random(WAVES))
    y, held = f + NOISE * rng.standard_normal(n), rng.random(n) < 1 / 6
    for name, X in (
        ("degrees", np.column_stack([longitudes, latitudes])),
        ("three coordinates", places),
    ):
        model = streamkern.RandomFeatureRidge(feature_map="grid", n_components=D)
        model.fit(X[~held], y[~held])
        parts = {
            "all": held,
            "within 5 degrees of the seam": held & (np.abs(longitudes) > 175),
            "within 10 degrees of a pole": held & (np.abs(latitudes) > 80),
        }
        told = [f"{part} {rmse(model, X[each], f[each]):.3f}" for part, each in parts.items()]
        print(f"{name:>18}: errors about the field {', '.join(told)}", flush=True)


def seasons(n: int = 4000) -> None:
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0, 10, n))
    angles = 2 * np.pi * times
    f = (1 + 0.03 * times) * np.sin(angles) + 0.5 * np.cos(2 * angles + 0.3) + 0.05 * times
    y, gap = f + 0.3 * rng.standard_normal(n), (times > 6) & (times < 6.7)
    for name, X in (("times", times[:, None]), ("place in the year", seasonal(times))):
        model = streamkern.RandomFeatureRidge(feature_map="grid", n_components=1024)
        model.fit(X[~gap], y[~gap])
        predicted, deviations = model.predict(X[gap], return_std=True)
        held = np.mean(np.abs(y[gap] - predicted) < 1.96 * deviations)
        print(
            f"{name:>18}: errors in a gap of 0.7 years {rmse(model, X[gap], f[gap]):.3f}, else "
            f"{rmse(model, X[~gap], f[~gap]):.3f}; 95% intervals hold {held:.0%} in the gap"
        )


def slope(D: int, n: int = 30_000) -> None:
    """Fit a field with a length scale of 0.1 along a direction, and 0.8 across."""
    rng = np.random.default_rng(0)
    X, angle, kernel = rng.uniform(size=(n, 2)), np.radians(30), streamkern.Matern(1.0, nu=1.5)
    turned = X @ [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]] / [0.1, 0.8]
    w = kernel.spectral(rng.standard_normal((WAVES, 2)), 1.0 - rng.random((WAVES, 1)))
    f = sum_of_waves(turned, w, 2 * np.pi * rng.random(WAVES))
    y, held = f + NOISE * rng.standard_normal(n), rng.random(n) < 1 / 6
    lengths = 0.1 * 2.0 ** np.arange(4)
    along = [kernel.with_length_scale((a, b)) for a in lengths for b in lengths]
    for name, rows, kernels, standardize in (
        ("as they are", X, ["auto"], True),
        ("turned by hand", turned, ["auto"], True),
        ("along the inputs", X, along, False),
    ):
        how: Any = {"feature_map": "grid", "n_components": D, "standardize": standardize}
        tried = [streamkern.RandomFeatureRidge(kernel, **how) for kernel in kernels]
        for each in tried:
            each.fit(rows[~held], y[~held])
        best = min(tried, key=lambda each: each.report_["cv_rmse"])
        error = rmse(best, rows[held], f[held])
        print(f"{name:>18}: errors about the field {error:.3f}", flush=True)


def rmse(model: Any, X: Any, f: Any) -> float:
    return float(np.sqrt(np.mean((model.predict(X) - f) ** 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--components", type=int, default=2048)
    parser.add_argument("--rows", type=int, default=30_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore", StreamkernWarning)
    sphere(options.components, options.rows)
    slope(options.components, options.rows)
    seasons()


if __name__ == "__main__":
    main()
