"""One regression, several ways, beside what the arithmetic alone takes.

Rows are written to an HDF5 file once.  Every measurement is a process of its own, and repeats go
round all contenders, so that what else the machine does meets them alike.  Seconds are those of
reading, features, products and solve, without the start of Python or of a cluster; memory is the
peak of all processes together; ratios are of medians, to a roofline that is measured in the same
run on as many cores.  Everybody has as many cores: streamkern and Dask as processes, scikit-learn
as BLAS threads, whose features and targets are in the precision that is asked for.

    python benchmarks/regression.py --components 2048,4096 --contenders roofline,streamkern,dask
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from streamkern.runtime.memory import available_bytes, in_words, usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCK_ROWS, CHUNK_ROWS, TEST_ROWS = 8192, 1024, 10_000
# Features of a few rows that stay in cache, and features that are multiplied with all after them.
CACHED_VALUES, PANEL = 1 << 18, 512


@dataclass(frozen=True)
class Case:
    """One problem: n rows of p inputs, D features, a precision, and cores for every contender."""

    rows: int = 400_000
    inputs: int = 90
    components: int = 2048
    precision: str = "single"
    workers: int = usable_cores()

    @property
    def length_scale(self) -> float:
        """That of the Gaussian kernel, for inputs of unit variance."""
        return float(np.sqrt(self.inputs))

    @property
    def alpha(self) -> float:
        """The penalty, in the units of the sum of squares."""
        return 1e-6 * self.rows

    @property
    def dtype(self) -> Any:
        """That of features and products of scikit-learn and Dask; rows are stored in single."""
        return np.float64 if self.precision == "double" else np.float32


def write_rows(path: Path, case: Case) -> None:
    """Write inputs that vary along eight directions, to three digits, and a smooth function."""
    p, rng = case.inputs, np.random.default_rng(0)
    mixing = rng.standard_normal((8, p))
    mixing *= np.sqrt(0.75 / np.sum(mixing**2, axis=0))
    covariance = mixing.T @ mixing + 0.25 * np.eye(p)
    projection = mixing.T / np.sqrt(np.einsum("kp,pq,kq->k", mixing, covariance, mixing))

    def drawn(n: int, random: Any) -> tuple[Any, Any]:
        X = random.standard_normal((n, 8), dtype="f4") @ mixing.astype("f4")
        X = np.round(256 * (X + 0.5 * random.standard_normal(X.shape, dtype="f4"))) / 256
        z = (X @ projection).T
        y = np.sin(z[0] + z[1]) + 0.5 * (z[2] * z[3] + z[4]) + np.cos(z[5])
        return X, y + 0.1 * random.standard_normal(n)

    random, part = np.random.default_rng(1), path.with_suffix(".part")
    with h5py.File(part, "w") as file:
        X = file.create_dataset("X", (case.rows, p), "f4", chunks=(min(CHUNK_ROWS, case.rows), p))
        y = file.create_dataset("y", (case.rows,), "f4", chunks=(min(64 * CHUNK_ROWS, case.rows),))
        for start in range(0, case.rows, 64 * CHUNK_ROWS):
            stop = min(start + 64 * CHUNK_ROWS, case.rows)
            X[start:stop], y[start:stop] = drawn(stop - start, random)
        file["X_test"], file["y_test"] = drawn(TEST_ROWS, np.random.default_rng(2))
    part.replace(path)


@contextmanager
def worker_processes(case: Case) -> Iterator[None]:
    """Start worker processes that have imported what their tasks will."""
    import streamkern

    def imported() -> None:
        from importlib import import_module

        for name in ("streamkern.fit", "streamkern.models.prediction", "dask.array", "numba"):
            import_module(name)

    with streamkern.connect(n_workers=case.workers) as client:
        client.run(imported)
        yield


def ours(**options: Any) -> Callable[[Case, Path], dict[str, Any]]:
    """Return a fit of streamkern with options beside those of the case."""

    def fitted(case: Case, path: Path) -> dict[str, Any]:
        import streamkern

        model = streamkern.RandomFeatureRidge(
            streamkern.Gaussian(case.length_scale),
            n_components=case.components,
            **{"alpha": case.alpha, "precision": case.precision} | options,
        )
        with worker_processes(case):
            begun = time.perf_counter()
            model.fit(streamkern.open_hdf5(path))
            seconds = time.perf_counter() - begun
        accumulating = model.report_["seconds"]["pass"]
        return {"seconds": seconds, "accumulating": accumulating, "predict": model.predict}

    return fitted


def dask_array(case: Case, path: Path) -> dict[str, Any]:
    """Form `Phi.T @ Phi` of a Dask array, a block of rows a chunk."""
    import dask.array as da

    n, p, D, dtype = case.rows, case.inputs, case.components, case.dtype
    rng = np.random.default_rng(0)
    W = (rng.standard_normal((p, D)) / case.length_scale).astype(dtype)
    u = (2 * np.pi * rng.random(D)).astype(dtype)
    rows = tuple(min(BLOCK_ROWS, n - start) for start in range(0, n, BLOCK_ROWS))

    def read(name: str, block_info: Any = None) -> Any:
        start, stop = block_info[None]["array-location"][0]
        with h5py.File(path) as file:
            return file[name].astype(dtype)[start:stop]

    def cosines(X: Any, W: Any, u: Any) -> Any:
        Phi = X @ W
        Phi += u
        return np.cos(Phi, out=Phi)

    with worker_processes(case):
        begun = time.perf_counter()
        X = da.map_blocks(read, "X", chunks=(rows, (p,)), dtype=dtype)
        y = da.map_blocks(read, "y", chunks=(rows,), dtype=dtype)
        Phi = X.map_blocks(cosines, W, u, chunks=(rows, (D,)), dtype=dtype)
        sums = da.compute(Phi.T @ Phi, Phi.T @ y, Phi.sum(axis=0), y.mean())
        G, C, total, target = (np.asarray(part, dtype=float) for part in sums)
        mean, scale = total / n, np.sqrt(2 / D)
        G = scale**2 * (G - n * np.outer(mean, mean))
        C = scale * (C - n * mean * target)
        w = scale * np.linalg.solve(G + case.alpha * np.eye(D), C)
        seconds = time.perf_counter() - begun
    return {"seconds": seconds, "predict": lambda X: target + (cosines(X, W, u) - mean) @ w}


def scikit_learn(features: str, copies: int) -> Callable[[Case, Path], dict[str, Any]]:
    """Return a Ridge of features that are held in memory, so many times."""

    def fitted(case: Case, path: Path) -> dict[str, Any]:
        import threadpoolctl
        from sklearn import kernel_approximation
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline

        held = case.rows * (copies * case.components + case.inputs) * case.dtype().itemsize
        if held > (free := available_bytes()):
            return {"refused": f"needs {in_words(held)}, {in_words(free)} is free"}
        how = {"gamma": 0.5 / case.length_scale**2, "n_components": case.components}
        approximation = getattr(kernel_approximation, features)(**how, random_state=0)
        ridge = Ridge(alpha=case.alpha, solver="cholesky", copy_X=False)
        model = make_pipeline(approximation, ridge)
        with threadpoolctl.threadpool_limits(case.workers), h5py.File(path) as file:
            begun = time.perf_counter()
            model.fit(file["X"].astype(case.dtype)[:], file["y"].astype(case.dtype)[:])
            return {"seconds": time.perf_counter() - begun, "predict": model.predict}

    return fitted


def descent(case: Case, path: Path) -> dict[str, Any]:
    """Averaged stochastic gradient descent, once over the file in the order of its rows."""
    import threadpoolctl
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import SGDRegressor

    gamma = 0.5 / case.length_scale**2
    sampler = RBFSampler(gamma=gamma, n_components=case.components, random_state=0)
    # Rows have |phi|^2 near 1, for which a constant step of this size is stable.
    step = {"learning_rate": "constant", "eta0": 0.5, "average": True, "random_state": 0}
    regressor = SGDRegressor(alpha=case.alpha / case.rows, **step)
    with threadpoolctl.threadpool_limits(case.workers), h5py.File(path) as file:
        begun = time.perf_counter()
        X, y = file["X"].astype(case.dtype), file["y"].astype(case.dtype)
        for start in range(0, case.rows, BLOCK_ROWS):
            rows = X[start : start + BLOCK_ROWS]
            if not start:
                sampler.fit(rows)
            regressor.partial_fit(sampler.transform(rows), y[start : start + BLOCK_ROWS])
        seconds = time.perf_counter() - begun
    return {"seconds": seconds, "predict": lambda X: regressor.predict(sampler.transform(X))}


def roofline(share: Callable[[Case], Callable[[], None]]) -> Callable[[Case, Path], dict[str, Any]]:
    """Return what times the arithmetic alone: no file, no sums in double, no scheduler.

    Every process goes through its share of the rows, a block in memory again and again.
    """

    def measured(case: Case, _: Path) -> dict[str, Any]:
        context = multiprocessing.get_context("spawn")
        barrier, times = context.Barrier(case.workers), context.Queue()
        blocks = max(case.rows // case.workers // BLOCK_ROWS, 1)
        processes = [
            context.Process(target=_worked, args=(share, case, blocks, barrier, times))
            for _ in range(case.workers)
        ]
        for process in processes:
            process.start()
        seconds = max(times.get() for _ in processes)
        for process in processes:
            process.join()
        return {"seconds": seconds * case.rows / (blocks * BLOCK_ROWS * case.workers)}

    return measured


def _worked(share: Any, case: Case, blocks: int, barrier: Any, times: Any) -> None:
    import threadpoolctl

    with threadpoolctl.threadpool_limits(1):
        block = share(case)
        block()  # pages and threads are there
        barrier.wait(60)
        begun = time.perf_counter()
        for _ in range(blocks):
            block()
        times.put(time.perf_counter() - begun)


def floats(case: Case) -> Callable[[], None]:
    """Make angles, cosines and sines a few rows at a time, and products of a block of these."""
    from streamkern.features.cosines import cosines_and_sines

    rng, D, dtype = np.random.default_rng(0), case.components, case.dtype
    X = rng.standard_normal((BLOCK_ROWS, case.inputs)).astype(dtype)
    W = (rng.standard_normal((case.inputs, D // 2)) / case.length_scale).astype(dtype)
    features, product = np.empty((BLOCK_ROWS, D), dtype), np.empty((D, D), dtype)
    angles = np.empty((max(CACHED_VALUES // D, 1), D // 2), dtype)

    def numpy_waves(angles: Any, cosine: Any, sine: Any) -> None:
        np.cos(angles, out=cosine)
        np.sin(angles, out=sine)

    # NumPy has no vector code for cosines in double; streamkern goes another way there.
    waves = cosines_and_sines if case.precision == "double" else numpy_waves

    def block() -> None:
        for start in range(0, BLOCK_ROWS, len(angles)):
            part = features[start : start + len(angles)]
            inside = np.matmul(X[start : start + len(part)], W, out=angles[: len(part)])
            waves(inside, part[:, : D // 2], part[:, D // 2 :])
        np.matmul(features.T, features, out=product)

    return block


def integers(case: Case) -> Callable[[], None]:
    """Make angles in double, and products of bytes by panels of the triangle, without cosines."""
    from streamkern.extensions.integers.integer_products import integer_products

    rng, D, p = np.random.default_rng(0), case.components, case.inputs
    X, W = rng.standard_normal((BLOCK_ROWS, p)), rng.standard_normal((D // 2, p))
    features = rng.integers(-127, 128, (D, BLOCK_ROWS), dtype=np.int8)
    products = integer_products()
    left, right = products.prepared(features.view(np.uint8) ^ 128), products.prepared(features)
    angles = np.empty((D // 2, max(CACHED_VALUES // D, 1)))

    def block() -> None:
        for start in range(0, BLOCK_ROWS, angles.shape[1]):
            rows = X[start : start + angles.shape[1]]
            np.matmul(W, rows.T, out=angles[:, : len(rows)])
        for start in range(0, D, PANEL):
            products(left[start:], right[start : start + PANEL])

    return block


CONTENDERS: dict[str, Callable[[Case, Path], dict[str, Any]]] = {
    "roofline": roofline(floats),
    "streamkern": ours(),
    "alpha by 5-fold CV": ours(alpha="cv"),
    "landmarks": ours(feature_map="nystroem"),
    "learnt metric": ours(metric="learn"),
    "int8 roofline": roofline(integers),
    "int8": ours(precision="int8"),
    "dask": dask_array,
    "ridge": scikit_learn("RBFSampler", 1),
    "nystroem": scikit_learn("Nystroem", 2),
    "sgd": descent,
}


def measured(name: str, case: Case, path: Path) -> dict[str, Any]:
    """Run one contender in a process of its own, and watch the memory of all its processes."""
    words = ["--only", name, "--folder", str(path), "--case", json.dumps(asdict(case))]
    command = [sys.executable, __file__, *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, _resident_bytes(process.pid))
            time.sleep(0.25)

    watcher = threading.Thread(target=watch)
    watcher.start()
    output, _ = process.communicate()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{name} ended with status {process.returncode}; its words are above.")
    return json.loads(output.splitlines()[-1]) | {"peak": peak}


def _resident_bytes(pid: int) -> int:
    """Return the bytes of a process and its children together, what they share counted once."""
    import psutil

    total = 0
    try:
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            held = process.memory_full_info()
            total += getattr(held, "pss", held.rss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        pass
    return total


def run_one(name: str, case: Case, path: Path) -> dict[str, Any]:
    """Run a contender in this process, and add its error on the test rows."""
    found = CONTENDERS[name](case, path)
    if predict := found.pop("predict", None):
        with h5py.File(path) as file:
            X, y = file["X_test"][:], file["y_test"][:]
        found["error"] = float(np.sqrt(np.mean((predict(X) - y) ** 2)))
    return found


def told(name: str, runs: list[dict[str, Any]], base: float) -> Iterator[str]:
    """Yield lines of the table: medians, with the fastest and the slowest."""
    if "refused" in runs[0]:
        yield f"| {name} | refused: {runs[0]['refused']} | | | |"
        return
    peak = statistics.median(run["peak"] for run in runs)
    error = f"{runs[0]['error']:.4f}" if "error" in runs[0] else ""
    for label, key in ((name, "seconds"), ("of these, accumulating", "accumulating")):
        seconds = [run[key] for run in runs if key in run]
        if seconds:
            middle = statistics.median(seconds)
            spread = f"{middle:.3g} ({min(seconds):.3g} to {max(seconds):.3g})"
            ratio = f"{middle / base:.2f}" if base else ""
            more = f"{in_words(int(peak))} | {error}" if key == "seconds" else "|"
            yield f"| {label} | {spread} | {ratio} | {more} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="commas between")
    parser.add_argument("--rows", type=int, default=Case.rows, help="n")
    parser.add_argument("--inputs", type=int, default=Case.inputs, help="p")
    parser.add_argument("--components", default="2048", help="D, several with commas between")
    parser.add_argument("--precision", choices=["single", "double"], default="single")
    parser.add_argument("--workers", type=int, default=usable_cores(), help="cores for everyone")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("benchmark"), help="for the rows")
    for hidden in ("--only", "--case"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        print(json.dumps(run_one(given.only, Case(**json.loads(given.case)), given.folder)))
        return
    names = given.contenders.split(",")
    if unknown := set(names) - {*CONTENDERS}:
        raise SystemExit(f"contenders are {', '.join(CONTENDERS)}, not {', '.join(unknown)}")
    case = Case(given.rows, given.inputs, 0, given.precision, given.workers)
    path = given.folder / f"{case.rows}x{case.inputs}.h5"
    given.folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_rows(path, case)
    sizes = {D: replace(case, components=int(D)) for D in given.components.split(",")}
    runs: dict[Any, list[Any]] = {(D, name): [] for D in sizes for name in names}
    for repeat in range(given.repeats):
        for (D, name), done in runs.items():
            done.append(measured(name, sizes[D], path))
            said = {key: value for key, value in done[-1].items() if key != "peak"}
            print(f"{repeat + 1}/{given.repeats} D = {D} {name}: {said}", file=sys.stderr)
    print(f"n = {case.rows:,}, p = {case.inputs}, {case.precision}, {case.workers} cores\n")
    print("| | seconds | ratio to roofline | peak memory | test error |\n|---|---:|---:|---:|---:|")
    for (D, name), done in runs.items():
        own = "int8 roofline" if name.startswith("int8") else "roofline"
        base = [run["seconds"] for run in runs.get((D, own), [])]
        label = f"D = {int(D):,}, {name}" if len(sizes) > 1 else name
        print("\n".join(told(label, done, statistics.median(base) if base else 0.0)))


if __name__ == "__main__":
    main()
