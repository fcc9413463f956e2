"""RidgeCV on a file ten times larger than the memory it may take: python jobs/ridge_cv.py.

Writes features that are there already, and fits them by the identity map: every row is left out in
turn, exactly, to choose the penalty.  The fit is a process of its own, one task at a time, and the
job fails if that ever was larger than a tenth of the file, as the system counts it.  A slice that
fits into memory is then fitted by scikit-learn's RidgeCV as well, and the greatest difference of
the coefficients is told, over the largest of them.  The job fails above 1e-9, too, or if the
penalties differ.
"""

import argparse
import multiprocessing
import os
import tempfile
from pathlib import Path

import dask
import h5py
import numpy as np

import streamkern
from streamkern.runtime.memory import in_words, peak_bytes

CHUNK_ROWS = 4096
ALPHAS = np.geomspace(1e-1, 1e8, 28)


def write(path: Path, n_rows: int, n_features: int, n_targets: int) -> int:
    """Write correlated features in single precision with targets of several noises."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((32, n_features), dtype=np.float32)
    coef = rng.standard_normal((n_features, n_targets), dtype=np.float32)
    noise = np.geomspace(1.0, 1e3, n_targets)
    with h5py.File(path, "w") as file:
        chunks = CHUNK_ROWS, n_features
        X = file.create_dataset("X", (n_rows, n_features), "f4", chunks=chunks)
        y = file.create_dataset("y", (n_rows, n_targets), "f8")
        for start in range(0, n_rows, CHUNK_ROWS):
            n = min(CHUNK_ROWS, n_rows - start)
            rows = rng.standard_normal((n, n_features), dtype=np.float32)
            rows += 3.0 * rng.standard_normal((n, 32), dtype=np.float32) @ shared
            X[start : start + n] = rows
            y[start : start + n] = rows @ coef + noise * rng.standard_normal((n, n_targets))
    return path.stat().st_size


def model_for(*, per_target: bool = True) -> streamkern.RandomFeatureRidge:
    """Return RidgeCV's model: inputs as they are, in double precision."""
    return streamkern.RandomFeatureRidge(
        feature_map="identity",
        standardize=False,
        precision="double",
        alpha="loo",
        alphas=ALPHAS,
        per_target=per_target,
    )


def fit(path: Path, most_bytes: int) -> None:
    """Fit the file within a limit, and say what it took; runs in a process of its own."""
    with dask.config.set(num_workers=1):
        report = model_for().fit(streamkern.open_hdf5(path)).report_
    seconds = ", ".join(f"{name} {value:.1f}" for name, value in report["seconds"].items())
    print(f"rows            {report['rows']:,} x {report['n_features']:,}")
    print(f"alpha           {', '.join(f'{alpha:.4g}' for alpha in report['alpha'])}")
    print(f"seconds         {seconds}")
    peak = max(report["peak_worker_bytes"], peak_bytes())
    print(f"peak            {in_words(peak)} resident, of {in_words(most_bytes)} allowed")
    print(f"projected       {in_words(report['projected_worker_bytes'])}")
    raise SystemExit(peak > most_bytes)


def difference(path: Path, n_rows: int) -> float:
    """Fit a slice by both, and return the difference of their coefficients."""
    from sklearn.linear_model import RidgeCV

    with h5py.File(path) as file:
        X, y = file["X"][:n_rows].astype(float), file["y"][:n_rows]
    model, theirs = model_for().fit(X, y), RidgeCV(ALPHAS, alpha_per_target=True).fit(X, y)
    if not np.array_equal(model.alpha_, theirs.alpha_):
        raise SystemExit(f"penalties differ: {model.alpha_} and {theirs.alpha_}")
    apart = np.abs(model.coef_.T - theirs.coef_).max()
    found = float(apart / np.abs(theirs.coef_).max())
    print(f"slice           {n_rows:,} rows, alphas {', '.join(f'{a:.4g}' for a in theirs.alpha_)}")
    print(f"difference      {found:.1e} from RidgeCV, relative to the largest coefficient")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=float, default=4e9, help="of the file")
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--targets", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.1, help="of the file, as memory")
    parser.add_argument("--slice-rows", type=int, default=20_000)
    given = parser.parse_args()
    n_rows = int(given.bytes / (4 * given.features + 8 * given.targets))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "features.h5"
        size = write(path, n_rows, given.features, given.targets)
        print(f"file            {in_words(size)}", flush=True)
        # Memory that threads would reserve, each for itself, and hardly use.
        os.environ |= {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
        arguments = path, int(given.share * size)
        process = multiprocessing.get_context("spawn").Process(target=fit, args=arguments)
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit("the fit failed, or took more memory than it may.")
        raise SystemExit(difference(path, min(given.slice_rows, n_rows)) > 1e-9)


if __name__ == "__main__":
    main()
