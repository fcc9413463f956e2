"""A pass over points in the plane, beside the transforms alone: python jobs/fields.py --rows 1e6.

Rows in single precision are written to an HDF5 file, in a temporary folder, and a grid of
frequencies is fitted to them with one penalty.  Beside it finufft makes the same sums of arrays in
memory, on as many threads.  With --products features are multiplied, as for every other map.
"""

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import finufft
import h5py
import numpy as np

import streamkern
from streamkern.features import lattice_of
from streamkern.features.abilities import innermost
from streamkern.solvers import toeplitz

_CHUNK = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1e6", help="numbers of rows, with commas between")
    parser.add_argument("--components", type=int, default=2048)
    parser.add_argument("--length-scale", type=float, default=0.1, help="in units of the extent")
    parser.add_argument("--alpha", type=float, default=1e-6, help="the penalty of one row")
    parser.add_argument("--products", action="store_true", help="of features, in place of waves")
    parser.add_argument("--files", type=int, default=1, help="links to these rows, that are read")
    parser.add_argument("--folder", type=Path, help="for the file of the rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.products:
        toeplitz.is_summed_by_waves = lambda *_: False
    print(
        f"{'rows':>12}{'columns':>9}{'sums':>9}{'solve':>9}{'rows/s':>12}{'alone':>9}{'ratio':>7}"
        f"{'iterations':>11}{'peak GB':>9}{'predicted/s':>13}{'error':>8}"
    )
    for n in (int(float(text)) for text in options.rows.split(",")):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            path = Path(folder, "field.h5")
            write(path, n)
            paths = [path, *(path.with_stem(f"field-{i}") for i in range(1, options.files))]
            for link in paths[1:]:
                link.hardlink_to(path)
            model = streamkern.RandomFeatureRidge(
                # Of a standardised input of a unit square, the extent is the root of 12.
                streamkern.Matern(options.length_scale * 12**0.5, nu=1.5),
                feature_map="grid",
                n_components=options.components,
                alpha=options.alpha * n * len(paths),
            ).fit(paths)
            report = model.report_
            seconds, alone = report["seconds"], len(paths) * transforms(path, model)
            rate, error = predicted(model)
        sums = seconds["pass"]
        solve = seconds["total"] - seconds["columns"] - sums
        print(
            f"{report['rows']:>12,}{seconds['columns']:>9.2f}{sums:>9.2f}{solve:>9.2f}"
            f"{report['rows'] / sums:>12,.0f}{alone:>9.2f}{alone / sums:>7.2f}"
            f"{report['iterations']:>11}{report['peak_worker_bytes'] / 1e9:>9.2f}"
            f"{rate:>13,.0f}{error:>8.4f}",
            flush=True,
        )


def field(X: Any) -> Any:
    return np.sin(9.0 * X[:, 0]) * np.cos(14.0 * X[:, 0] * X[:, 1])


def write(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        X = file.create_dataset("X", (n, 2), "f4", chunks=(min(n, 1 << 16), 2))
        y = file.create_dataset("y", (n,), "f4", chunks=(min(n, 1 << 16),))
        for start in range(0, n, _CHUNK):
            rows = slice(start, min(start + _CHUNK, n))
            some = rng.random((rows.stop - start, 2))
            X[rows], y[rows] = some, field(some) + 0.2 * rng.standard_normal(len(some))


def transforms(path: Path, model: Any) -> float:
    """Return the seconds of the transforms alone, on all cores, of rows that are in memory."""
    feature_map = model.feature_map_
    lattice: Any = lattice_of(innermost(feature_map))
    modes = lattice.modes
    taken = 0.0
    with h5py.File(path) as file:
        for start in range(0, len(file["y"]), 8 * _CHUNK):
            rows = slice(start, start + 8 * _CHUNK)
            angles = feature_map.standardizer(file["X"][rows]) * lattice.cell
            x, y = (np.ascontiguousarray(each) for each in angles.T)
            factors = np.ones((2, len(x)), complex)
            options = {"eps": 1e-9, "isign": 1, "nthreads": os.cpu_count()}
            begun = time.perf_counter()
            finufft.nufft2d1(x, y, factors[0], tuple((2 * modes).tolist()), **options)
            finufft.nufft2d1(x, y, factors, tuple(modes.tolist()), **options)
            taken += time.perf_counter() - begun
    return taken


def predicted(model: Any) -> tuple[float, float]:
    """Return rows that are predicted a second, and their errors about the field itself."""
    X = np.random.default_rng(1).random((_CHUNK, 2))
    begun = time.perf_counter()
    made = model.predict(X)
    seconds = time.perf_counter() - begun
    return len(X) / seconds, float(np.sqrt(np.mean((made - field(X)) ** 2)))


if __name__ == "__main__":
    main()
