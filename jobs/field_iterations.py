"""Iterations with and without a preconditioner: python jobs/field_iterations.py --rows 3e6.

The settings are those of the largest example of Greengard, Rachh and Barnett (2022), "Equispaced
Fourier representations for efficient Gaussian process regression from a billion data points":
places in the unit square, y = cos(2 pi (4 x_1 + 3 x_2) + 1.3) with noise of deviation 0.1 sqrt(N /
3e6), Matern 3/2 of length scale 0.1.  Their boxes have 189 x 189 and 693 x 693 modes; here as many
features are the frequencies of largest density.  Solved is (G + alpha I) w = C, to a tolerance on
the residual over C.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from streamkern import Matern
from streamkern.features import GridFourierFeatures
from streamkern.solvers.gram_passes import leading_part
from streamkern.sources import Block
from streamkern.statistics import ToeplitzMoments

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS = 1 << 19


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="3e6", help="numbers of rows, with commas between")
    parser.add_argument("--modes", default="189,693", help="of a side of the square")
    parser.add_argument("--most", type=int, default=1000, help="iterations")
    options = parser.parse_args()
    print("| rows | features | sums | tolerance | preconditioner | iterations | seconds |")
    print("|---:|---:|---:|---:|---|---:|---:|")
    for n in (int(float(text)) for text in options.rows.split(",")):
        for side in map(int, options.modes.split(",")):
            solve(n, side * side, options.most)


def solve(n: int, n_components: int, most: int) -> None:
    kernel, noise = Matern(0.1, nu=1.5), 0.1 * np.sqrt(n / 3e6)
    corners = np.array([[0.0, 0.0], [1.0, 1.0]])
    feature_map = GridFourierFeatures(kernel, n_components).draw(
        2, np.repeat(corners, 1000, axis=0)
    )
    moments, begun = ToeplitzMoments(feature_map, 1, precision="double"), time.perf_counter()
    moments.update(rows(n, noise))
    summed = time.perf_counter() - begun
    gram, target, alpha = moments.gram_operator(os.cpu_count() or 1), moments.cross[:, 0], noise**2
    shape = (n_components, n_components)
    system = LinearOperator(
        shape, lambda v: gram.times(v.reshape(-1, 1))[:, 0] + alpha * v.ravel(), dtype=float
    )
    for tolerance in (1e-5, 1e-7):
        for name in ("none", "leading block"):
            begun, taken = time.perf_counter(), []
            inverse = None
            if name != "none":
                block = leading_part(moments, intercept=False).preconditioner
                inverse = LinearOperator(
                    shape,
                    lambda v, block=block: block.solve(v.reshape(-1, 1), np.array([alpha])),
                    dtype=float,
                )
            _, failed = cg(
                system, target, rtol=tolerance, maxiter=most, M=inverse, callback=taken.append
            )
            seconds, more = time.perf_counter() - begun, "more than " * bool(failed)
            print(
                f"| {n:,} | {n_components:,} | {summed:.1f} s | {tolerance:g} | {name} | "
                f"{more}{len(taken):,} | {seconds:.1f} |",
                flush=True,
            )


def rows(n: int, noise: Any) -> Iterator[Block]:
    rng = np.random.default_rng(0)
    for start in range(0, n, _ROWS):
        X = rng.random((min(_ROWS, n - start), 2))
        y = np.cos(2.0 * np.pi * (X @ [4.0, 3.0]) + 1.3) + noise * rng.standard_normal(len(X))
        yield Block(X, y[:, None], start)


if __name__ == "__main__":
    main()
