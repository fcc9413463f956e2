"""The contenders: each fits the rows of a file, or predicts them, in the process that calls it.

Seconds are those of reading, features, products and solve, without the start of Python, its imports
or a cluster.  All have as many cores as the case has workers: streamkern and Dask as processes,
scikit-learn as BLAS threads.  scikit-learn's features and targets are in the precision of the case,
and its Ridge may overwrite what it is given.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarking import roofline
from benchmarking.rows import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from benchmarking.cases import Case

_BLOCK_ROWS = 8192
# Rows that the model which predicts was fitted on; it does not matter which.
_FITTED_ROWS = 16_384
# The penalty of one row where conjugate gradients are to take few iterations.
_FOR_GRADIENTS = 4e-3
# What tasks import.
_IMPORTED = (*("streamkern.fit", "streamkern.models.prediction"), *("numba", "onnxruntime"))


class MetricSettings(NamedTuple):
    """How a contender is called, and what it is compared with.

    Parameters
    ----------
    label : str
    run : callable
        Takes a case and the path of its rows; returns `seconds`, the function `predict` or None,
        and what else there is to tell.
    roofline : str
        The name of the contender that does the arithmetic alone.
    needed_bytes : callable, optional
        What it holds in memory, where that grows with the rows.
    """

    label: str
    run: Callable[[Case, Path], dict[str, Any]]
    roofline: str = "roofline"
    needed_bytes: Callable[[Case], int] | None = None


def with_rooflines(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of contenders after those of the rooflines that they are compared with."""
    listed = list(names)
    return tuple(dict.fromkeys([*(CONTENDERS[name].roofline for name in listed), *listed]))


def run_one(name: str, case: Case, path: Path) -> dict[str, Any]:
    """Run a contender, and add its error on the test rows."""
    from streamkern.errors import InsufficientMemoryError

    try:
        found = CONTENDERS[name].run(case, path)
    except InsufficientMemoryError as error:
        return {"refused": str(error)}
    predict = found.pop("predict", None)
    if predict is not None:
        with opened(path) as file:
            X, y = file["X_test"][:], file["y_test"][:]
        found["test_rmse"] = float(np.sqrt(np.mean((predict(X) - y) ** 2)))
    return found


@contextmanager
def _place(case: Case) -> Iterator[None]:
    """Run Dask's tasks where the case says."""
    import dask

    if case.place == "threads":
        with dask.config.set(scheduler="threads", num_workers=case.workers):
            yield
    else:
        with _workers(case, *_IMPORTED):
            yield


@contextmanager
def _workers(case: Case, *modules: str) -> Iterator[None]:
    """Start worker processes that have imported what their tasks will."""
    import streamkern

    with streamkern.connect(n_workers=case.workers) as client:
        client.run(_import, "hdf5plugin", *modules)
        yield


def _import(*modules: str) -> None:
    for name in modules:
        import_module(name)


@contextmanager
def _blas(case: Case) -> Iterator[None]:
    """Give BLAS in this process as many threads as the case has workers."""
    import scipy.linalg  # noqa: F401  its BLAS must be there to be told
    import threadpoolctl

    with threadpoolctl.threadpool_limits(case.workers):
        yield


def _dtype(case: Case) -> Any:
    return np.float32 if case.precision == "single" else np.float64


def _streamkern_model(case: Case, alpha: Any, **options: Any) -> Any:
    import streamkern

    return streamkern.RandomFeatureRidge(
        streamkern.Gaussian(case.length_scale),
        n_components=case.components,
        alpha=alpha,
        precision=case.precision,
        **options,
    )


def _streamkern_source(case: Case, path: Path, y: str | None = "y") -> Any:
    import streamkern
    from benchmarking.latency import LateSource

    source = streamkern.open_hdf5(path, y=y)
    return LateSource(source, case.latency) if case.latency else source


def _streamkern_fit(case: Case, path: Path, alpha: Any = None, **options: Any) -> dict[str, Any]:
    model = _streamkern_model(case, case.alpha if alpha is None else alpha, **options)
    with _place(case):
        begun = time.perf_counter()
        model.fit(_streamkern_source(case, path))
        seconds = time.perf_counter() - begun
    report = model.report_
    return {
        "seconds": seconds,
        "predict": model.predict,
        "parts": {
            "survey": report["seconds"]["columns"],
            **({"metric": report["seconds"]["metric"]} if "metric" in options else {}),
            "accumulate": report["seconds"]["pass"],
            "solve": report["seconds"]["solve"],
        },
        "peak_worker_bytes": report["peak_worker_bytes"],
        "projected_worker_bytes": report["projected_worker_bytes"],
        "solver": report["solver"],
        "note": report["note"],
    }


def _streamkern_choice(case: Case, path: Path) -> dict[str, Any]:
    return _streamkern_fit(case, path, "cv")


def _streamkern_int8(case: Case, path: Path) -> dict[str, Any]:
    return _streamkern_fit(replace(case, precision="int8"), path)


def _streamkern_learnt(case: Case, path: Path) -> dict[str, Any]:
    return _streamkern_fit(case, path, metric="learn")


def _streamkern_landmarks(case: Case, path: Path) -> dict[str, Any]:
    return _streamkern_fit(case, path, feature_map="nystroem")


def _streamkern_gradients(case: Case, path: Path) -> dict[str, Any]:
    """Solve without a D x D matrix; a pass multiplies the rows by a vector, and by that again."""
    model = _streamkern_model(case, _FOR_GRADIENTS * case.rows).set_params(solver="cg")
    with _place(case):
        model.fit(_streamkern_source(case, path))
    seconds = model.report_["gradients"]["seconds_a_pass"]
    return {"seconds": seconds, "predict": model.predict}


def _streamkern_prediction(case: Case, path: Path) -> dict[str, Any]:
    """Predict every row of the file into another one."""
    model = _streamkern_model(case, case.alpha)
    with opened(path) as file:
        model.fit(file["X"][:_FITTED_ROWS], file["y"][:_FITTED_ROWS])
    with _place(case), tempfile.TemporaryDirectory(dir=path.parent) as folder:
        begun = time.perf_counter()
        model.predict_to_hdf5(_streamkern_source(case, path, y=None), Path(folder) / "y.h5")
        seconds = time.perf_counter() - begun
    return {"seconds": seconds, "predict": model.predict}


def _dask_array(case: Case, path: Path) -> dict[str, Any]:
    """Form `Phi.T @ Phi` of a Dask array, a block of rows a chunk."""
    import dask.array as da

    n, p, D, dtype = case.rows, case.inputs, case.components, _dtype(case)
    rng = np.random.default_rng(0)
    W = (rng.standard_normal((p, D)) / case.length_scale).astype(dtype)
    u = (2 * np.pi * rng.random(D)).astype(dtype)
    rows = tuple(min(_BLOCK_ROWS, n - start) for start in range(0, n, _BLOCK_ROWS))

    def read(name: str, block_info: Any = None) -> Any:
        start, stop = block_info[None]["array-location"][0]
        with opened(path) as file:
            return file[name].astype(dtype)[start:stop]

    def cosines(X: Any, W: Any, u: Any) -> Any:
        Phi = X @ W
        Phi += u
        return np.cos(Phi, out=Phi)

    with _workers(case, "dask.array"):
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


def _sampler(case: Case) -> Any:
    from sklearn.kernel_approximation import RBFSampler

    gamma = 0.5 / case.length_scale**2
    return RBFSampler(gamma=gamma, n_components=case.components, random_state=0)


def _in_memory(case: Case, path: Path, features: Any) -> dict[str, Any]:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    ridge = Ridge(alpha=case.alpha, solver="cholesky", copy_X=False)
    model, dtype = make_pipeline(features, ridge), _dtype(case)
    with _blas(case):
        begun = time.perf_counter()
        with opened(path) as file:
            X, y = file["X"].astype(dtype)[:], file["y"].astype(dtype)[:]
        model.fit(X, y)
        seconds = time.perf_counter() - begun
    return {"seconds": seconds, "predict": model.predict}


def _fourier_ridge(case: Case, path: Path) -> dict[str, Any]:
    return _in_memory(case, path, _sampler(case))


def _nystroem_ridge(case: Case, path: Path) -> dict[str, Any]:
    from sklearn.kernel_approximation import Nystroem

    gamma = 0.5 / case.length_scale**2
    features = Nystroem(kernel="rbf", gamma=gamma, n_components=case.components, random_state=0)
    return _in_memory(case, path, features)


def _fourier_descent(case: Case, path: Path) -> dict[str, Any]:
    """Averaged stochastic gradient descent, once over the file in the order of its rows."""
    from sklearn.linear_model import SGDRegressor

    sampler, dtype = _sampler(case), _dtype(case)
    # Rows have |phi|^2 near 1, for which a constant step of this size is stable.
    regressor = SGDRegressor(
        alpha=case.alpha / case.rows,
        learning_rate="constant",
        eta0=0.5,
        average=True,
        random_state=0,
    )
    with _blas(case):
        begun = time.perf_counter()
        with opened(path) as file:
            X, y = file["X"].astype(dtype), file["y"].astype(dtype)
            for start in range(0, case.rows, _BLOCK_ROWS):
                rows = X[start : start + _BLOCK_ROWS]
                if not start:
                    sampler.fit(rows)
                regressor.partial_fit(sampler.transform(rows), y[start : start + _BLOCK_ROWS])
        seconds = time.perf_counter() - begun
    return {"seconds": seconds, "predict": lambda X: regressor.predict(sampler.transform(X))}


def _features_bytes(case: Case, copies: int) -> int:
    return case.rows * (copies * case.components + case.inputs) * case.itemsize


CONTENDERS = {
    "roofline": MetricSettings("roofline", lambda case, _: roofline.measure(case, "fit")),
    "streamkern": MetricSettings("streamkern", _streamkern_fit),
    "int8": MetricSettings("streamkern, int8", _streamkern_int8, "roofline int8"),
    "roofline int8": MetricSettings(
        "roofline, int8", lambda case, _: roofline.measure(case, "fit int8"), "roofline int8"
    ),
    "choice": MetricSettings("streamkern, alpha by 5-fold CV", _streamkern_choice),
    "landmarks": MetricSettings("streamkern, landmarks", _streamkern_landmarks),
    "learn": MetricSettings("streamkern, learnt metric", _streamkern_learnt),
    "dask": MetricSettings("Dask array, Phi.T @ Phi", _dask_array),
    "ridge": MetricSettings(
        "RBFSampler + Ridge, in memory",
        _fourier_ridge,
        needed_bytes=lambda case: _features_bytes(case, 1),
    ),
    "nystroem": MetricSettings(
        "Nystroem + Ridge, in memory",
        _nystroem_ridge,
        needed_bytes=lambda case: _features_bytes(case, 2),
    ),
    "sgd": MetricSettings("RBFSampler + SGD, streaming", _fourier_descent),
    "gradients roofline": MetricSettings(
        "roofline of a pass of conjugate gradients",
        lambda case, _: roofline.measure(case, "gradients"),
        "gradients roofline",
    ),
    "gradients": MetricSettings(
        "streamkern, a pass of conjugate gradients", _streamkern_gradients, "gradients roofline"
    ),
    "prediction roofline": MetricSettings(
        "roofline of predictions",
        lambda case, _: roofline.measure(case, "predict"),
        "prediction roofline",
    ),
    "prediction": MetricSettings(
        "streamkern, predictions", _streamkern_prediction, "prediction roofline"
    ),
}
