"""A grid of frequencies beside the exact Gaussian process: python jobs/exact_fields.py.

Fields are drawn from the prior of every kernel at random places of the unit line, square and cube,
and noise is added.  scikit-learn's GaussianProcessRegressor, and fits of more and more features,
are given the kernel and the noise.  Printed are the largest differences of the means, and of the
deviations of new targets, in deviations of the targets, and how many new targets are within 95%
intervals.  Fits estimate the noise, which intervals have; deviations are compared at the one given.
"""

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn import gaussian_process as gp

import streamkern

_SCALES = {1: 0.1, 2: 0.2, 3: 0.4}
_COMPONENTS = {1: (256, 1024, 4096), 2: (1024, 4096, 16384), 3: (1024, 4096, 16384)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--noise", type=float, default=0.2)
    parser.add_argument("--most-components", type=int, default=4096)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| kernel | inputs | features | mean | deviation | within | within, exact |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for p, scale in _SCALES.items():
        for name, ours, theirs in kernels(scale):
            compare(name, p, ours, theirs, options)


def kernels(scale: float) -> Any:
    matern = {"1/2": 0.5, "3/2": 1.5, "5/2": 2.5}
    yield "Gaussian", streamkern.Gaussian(scale), gp.kernels.RBF(scale)
    for name, nu in matern.items():
        yield f"Matern {name}", streamkern.Matern(scale, nu=nu), gp.kernels.Matern(scale, nu=nu)
    quadratic = streamkern.RationalQuadratic(scale, shape=1.0)
    yield "rational quadratic", quadratic, gp.kernels.RationalQuadratic(scale, alpha=1.0)


def compare(name: str, p: int, ours: Any, theirs: Any, options: Any) -> None:
    n, noise, rng = options.rows, options.noise, np.random.default_rng(0)
    X = rng.random((n + 1000, p))
    factor = np.linalg.cholesky(theirs(X) + 1e-8 * np.eye(len(X)))
    y = factor @ rng.standard_normal(len(X)) + noise * rng.standard_normal(len(X))
    exact = gp.GaussianProcessRegressor(theirs, alpha=noise**2, optimizer=None).fit(X[:n], y[:n])
    mean, deviation = exact.predict(X[n:], return_std=True)
    deviation, unit = np.hypot(deviation, noise), y[:n].std()
    for D in _COMPONENTS[p]:
        if options.most_components < D:
            continue
        model = streamkern.RandomFeatureRidge(
            ours,
            feature_map="grid",
            n_components=D,
            alpha=noise**2,
            standardize=False,
            fit_intercept=False,
            precision="double",
        ).fit(X[:n], y[:n])
        found, sure = model.predict(X[n:], return_std=True)
        given = sure * (noise / model.report_["noise"])
        differences = np.abs(found - mean).max() / unit, np.abs(given - deviation).max() / unit
        within = (
            np.mean(np.abs(y[n:] - centre) < 1.96 * each)
            for centre, each in ((found, sure), (mean, deviation))
        )
        shown = *(f"{each:.1e}" for each in differences), *(f"{each:.1%}" for each in within)
        print(f"| {name} | {p} | {D:,} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
