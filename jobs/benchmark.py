"""The same regression three ways, side by side: streamkern, a Dask array, and scikit-learn.

A fourth contender is streamkern choosing among 30 penalties by 5-fold cross-validation, where the
others are given one.

Every contender runs in a process of its own, which reads the same HDF5 file; repeats are
interleaved.  Each runs where it is fastest at this size: streamkern on the threads of its process,
which is also what its plan chooses; the Dask array on two worker processes; scikit-learn in its
process with BLAS on all cores.  Seconds are those of reading, features, products and solve, without
the start of Python or of a cluster; memory is the peak over all processes together.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import psutil

LENGTH_SCALE, ALPHA, WORKERS, BLOCK = 10.0, 0.1, 2, 8192


def streamkern_fit(path: str, n_components: int, alpha: object = ALPHA) -> tuple[float, object]:
    import streamkern

    model = streamkern.RandomFeatureRidge(
        streamkern.Gaussian(LENGTH_SCALE),
        n_components=n_components,
        alpha=alpha,
        feature_map="iid",
        standardize=False,
    )
    begun = time.perf_counter()
    model.fit(streamkern.open_hdf5(path))
    return time.perf_counter() - begun, model.predict


def dask_array_fit(path: str, n_components: int) -> tuple[float, object]:
    import dask.array as da

    import streamkern

    with h5py.File(path) as file:
        n, p = file["X"].shape
    rng = np.random.default_rng(0)
    W = (rng.standard_normal((p, n_components)) / LENGTH_SCALE).astype(np.float32)
    u = (2 * np.pi * rng.random(n_components)).astype(np.float32)
    scale = np.float32(np.sqrt(2 / n_components))
    rows = tuple(min(BLOCK, n - start) for start in range(0, n, BLOCK))

    def read(name, block_info=None):
        start, stop = block_info[None]["array-location"][0]
        with h5py.File(path) as file:
            return file[name][start:stop]

    with streamkern.connect(n_workers=WORKERS):
        begun = time.perf_counter()
        X = da.map_blocks(read, "X", chunks=(rows, (p,)), dtype=np.float32)
        y = da.map_blocks(read, "y", chunks=(rows,), dtype=np.float32)
        Phi = scale * da.cos(X @ W + u)
        G, C, mean, target = da.compute(Phi.T @ Phi, Phi.T @ y, Phi.mean(axis=0), y.mean())
        G = G.astype(float) - n * np.outer(mean, mean)
        C = C.astype(float) - n * mean * target
        w = np.linalg.solve(G + ALPHA * np.eye(n_components), C)
        seconds = time.perf_counter() - begun
    return seconds, lambda X: target + scale * np.cos(X @ W + u) @ w - mean @ w


def scikit_learn_fit(path: str, n_components: int) -> tuple[float, object]:
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    sampler = RBFSampler(gamma=0.5 / LENGTH_SCALE**2, n_components=n_components, random_state=0)
    model = make_pipeline(sampler, Ridge(alpha=ALPHA, solver="cholesky"))
    begun = time.perf_counter()
    with h5py.File(path) as file:
        X, y = file["X"][:], file["y"][:]
    model.fit(X, y)
    return time.perf_counter() - begun, model.predict


def streamkern_choice(path: str, n_components: int) -> tuple[float, object]:
    return streamkern_fit(path, n_components, "cv")


CONTENDERS = {
    "streamkern": streamkern_fit,
    "with choice": streamkern_choice,
    "Dask array": dask_array_fit,
    "scikit-learn": scikit_learn_fit,
}


def run_one(name: str, path: str, n_components: int) -> None:
    """Run one contender in this process, and print its seconds and test error."""
    seconds, predict = CONTENDERS[name](path, n_components)
    with h5py.File(path) as file:
        X, y = file["X_test"][:], file["y_test"][:]
    rmse = float(np.sqrt(np.mean((predict(X) - y) ** 2)))
    print(json.dumps({"seconds": seconds, "test_rmse": rmse}))


def measure(name: str, path: Path, n_components: int) -> dict[str, float]:
    """Run one contender in a process of its own, and watch the memory of all its processes."""
    command = [sys.executable, __file__, "--only", name, "--path", str(path)]
    process = subprocess.Popen(
        [*command, "--components", str(n_components)], stdout=subprocess.PIPE, text=True
    )
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, resident_bytes(process.pid))
            time.sleep(0.25)  # more often would cost the contenders time

    watcher = threading.Thread(target=watch)
    watcher.start()
    output, _ = process.communicate()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{name} failed")
    return {**json.loads(output.splitlines()[-1]), "peak_bytes": peak}


def resident_bytes(pid: int) -> int:
    """Return the resident bytes of a process and its children together."""
    total = 0
    try:
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
    except psutil.NoSuchProcess:
        pass
    return total


def write(path: Path, n: int, p: int) -> None:
    """Write a random regression problem in uncompressed chunks."""
    rng = np.random.default_rng(0)

    def target(X: np.ndarray) -> np.ndarray:
        noise = 0.1 * rng.standard_normal(len(X), dtype=np.float32)
        return np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + noise

    with h5py.File(path, "w") as file:
        X = file.create_dataset("X", (n, p), "f4", chunks=(min(4096, n), p))
        y = file.create_dataset("y", (n,), "f4", chunks=(min(4096, n),))
        for start in range(0, n, 40960):
            stop = min(start + 40960, n)
            rows = rng.standard_normal((stop - start, p), dtype=np.float32)
            X[start:stop], y[start:stop] = rows, target(rows)
        rows = rng.standard_normal((10_000, p), dtype=np.float32)
        file["X_test"], file["y_test"] = rows, target(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--inputs", type=int, default=90)
    parser.add_argument("--components", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write the results here as JSON")
    parser.add_argument("--only", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        run_one(options.only, options.path, options.components)
        return
    results: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.h5"
        write(path, options.rows, options.inputs)
        for _ in range(options.repeats):
            for name, found in results.items():
                found.append(measure(name, path, options.components))
    reference = statistics.median(run["seconds"] for run in results["streamkern"])
    print(
        f"{options.rows:,} x {options.inputs}, D = {options.components:,}, medians of "
        f"{options.repeats} (fastest to slowest)"
    )
    print(f"{'':14}{'seconds':>22}{'/ streamkern':>14}{'peak memory':>14}{'test rmse':>11}")
    for name, found in results.items():
        seconds = sorted(run["seconds"] for run in found)
        median = statistics.median(seconds)
        spread = f"{median:.1f} ({seconds[0]:.1f} to {seconds[-1]:.1f})"
        peak = statistics.median(run["peak_bytes"] for run in found) / 1e9
        rmse = statistics.median(run["test_rmse"] for run in found)
        print(f"{name:14}{spread:>22}{median / reference:>14.2f}{peak:>11.2f} GB{rmse:>11.4f}")
    if options.out:
        options.out.write_text(
            json.dumps({"options": vars(options), "results": results}, default=str)
        )


if __name__ == "__main__":
    main()
