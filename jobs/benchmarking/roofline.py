"""What the arithmetic alone takes: no file, no sums in double, no scheduler.

Every process, or thread, has its share of the rows in memory.  It makes angles, cosines and sines a
few rows at a time, so that they stay in cache, and multiplies a block of features with its own
transpose; or, for predictions, the rows in cache with coefficients, and for a pass of conjugate
gradients what that makes with the rows again.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import threadpoolctl

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarking.cases import Case

_BLOCK_ROWS = 8192
_CACHED_VALUES = 1 << 18
# Features that are multiplied with all after them at once.
_PANEL = 512
# Seconds that workers wait for each other to be ready.
_PATIENCE = 60.0
# Rows that are gone through again and again, so that memory does not grow with n.
_MOST_ROWS = 16 * _BLOCK_ROWS


def measure(case: Case, work: str) -> dict[str, Any]:
    """Return the seconds of the slowest worker, with its choice of cosines, and operations.

    Parameters
    ----------
    case : Case
    work : {'fit', 'fit int8', 'predict', 'gradients'}
    """
    shares = np.diff(np.linspace(0, case.rows, case.workers + 1).astype(int)).tolist()
    if case.place == "threads":
        barrier: Any = threading.Barrier(case.workers)
        with ThreadPoolExecutor(case.workers) as pool, threadpoolctl.threadpool_limits(1):
            found = list(pool.map(lambda n: _share(case, work, n, barrier), shares))
    else:
        found = _in_processes(case, work, shares)
    seconds, waves = max(found)
    D, p = case.components, case.inputs
    # As in KNOWHOW: a rank-k update counts as n D^2, at half of which a product could be made.
    operations = float(case.rows) * D * (p + {"predict": 2, "gradients": 4}.get(work, D))
    return {"seconds": seconds, "waves": waves, "operations_per_second": operations / seconds}


def _in_processes(case: Case, work: str, shares: list[int]) -> list[tuple[float, str]]:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(shares))
    answers = []
    for n in shares:
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(target=_answer, args=(case, work, n, barrier, sending))
        process.start()
        sending.close()  # so that the end of the process is the end of its answers
        answers.append((process, receiving))
    found = [receiving.recv() for _, receiving in answers]
    for process, _ in answers:
        process.join()
    return found


def _answer(case: Case, work: str, n_rows: int, barrier: Any, sending: Any) -> None:
    with threadpoolctl.threadpool_limits(1):
        sending.send(_share(case, work, n_rows, barrier))


def _share(case: Case, work: str, n_rows: int, barrier: Any) -> tuple[float, str]:
    """Work on a share of the rows, when everybody is ready; return seconds and what they chose."""
    if work == "fit int8":
        return _integer_share(case, n_rows, barrier)
    dtype = np.float32 if case.precision == "single" else np.float64
    rng, D, p = np.random.default_rng(0), case.components, case.inputs
    held = min(n_rows, _MOST_ROWS)
    X = rng.standard_normal((held, p), dtype=dtype)
    W = (rng.standard_normal((p, D // 2)) / case.length_scale).astype(dtype)
    block = np.empty((min(held, _BLOCK_ROWS), D), dtype=dtype)
    product = np.empty((D, D) if work == "fit" else (len(block),), dtype=dtype)
    coef, total = rng.standard_normal(D).astype(dtype), np.zeros(D)
    slice_rows = max(_CACHED_VALUES // D, 1)
    angles = np.empty((slice_rows, D // 2), dtype=dtype)

    def run(rows: int, waves: Callable[[Any, Any, Any], None]) -> float:
        begun = time.perf_counter()
        for first in range(0, rows, _BLOCK_ROWS):
            place = first % held
            features = block[: min(_BLOCK_ROWS, rows - first, held - place)]
            for start in range(0, len(features), slice_rows):
                part = features[start : start + slice_rows]
                inside = angles[: len(part)]
                np.matmul(X[place + start : place + start + len(part)], W, out=inside)
                waves(inside, part[:, : D // 2], part[:, D // 2 :])
                if work != "fit":
                    made = np.matmul(part, coef, out=product[start : start + len(part)])
                if work == "gradients":
                    total[:] += made @ part
            if work == "fit":
                np.matmul(features.T, features, out=product)
        return time.perf_counter() - begun

    run(len(block), _numpy_waves)  # pages and threads are there
    choice = {name: _seconds_of(waves, angles, block) for name, waves in _WAVES.items()}
    fastest = min(choice, key=choice.__getitem__)
    barrier.wait(_PATIENCE)
    return run(n_rows, _WAVES[fastest]), fastest


def _integer_share(case: Case, n_rows: int, barrier: Any) -> tuple[float, str]:
    """Make angles in double, and products of bytes by panels of the triangle, without cosines."""
    from streamkern.runtime.integer_products import integer_products

    rng, D, p = np.random.default_rng(0), case.components, case.inputs
    X, W = rng.standard_normal((_BLOCK_ROWS, p)), rng.standard_normal((D // 2, p))
    features = rng.integers(-127, 128, (D, _BLOCK_ROWS), dtype=np.int8)
    products = integer_products()
    left, right = products.prepared(features.view(np.uint8) ^ 128), products.prepared(features)
    angles = np.empty((D // 2, max(_CACHED_VALUES // D, 1)))

    def block() -> None:
        for start in range(0, _BLOCK_ROWS, angles.shape[1]):
            rows = X[start : start + angles.shape[1]]
            np.matmul(W, rows.T, out=angles[:, : len(rows)])
        for start in range(0, D, _PANEL):
            products(left[start:], right[start : start + _PANEL])

    block()
    barrier.wait(_PATIENCE)
    begun = time.perf_counter()
    for _ in range(max(n_rows // _BLOCK_ROWS, 1)):
        block()
    spent = time.perf_counter() - begun
    return spent * n_rows / (max(n_rows // _BLOCK_ROWS, 1) * _BLOCK_ROWS), products.name


def _seconds_of(waves: Callable[[Any, Any, Any], None], angles: Any, block: Any) -> float:
    part, half = block[: len(angles)], angles.shape[1]
    spent = []
    for _ in range(10):
        again = angles[: len(part)].copy()
        begun = time.perf_counter()
        waves(again, part[:, :half], part[:, half:])
        spent.append(time.perf_counter() - begun)
    return min(spent)


def _numpy_waves(angles: Any, cosine: Any, sine: Any) -> None:
    np.cos(angles, out=cosine)
    np.sin(angles, out=sine)


def _streamkern_waves(angles: Any, cosine: Any, sine: Any) -> None:
    from streamkern.features.cosines import cosines_and_sines

    cosines_and_sines(angles, cosine, sine)


# NumPy has no vector code for cosines in double; streamkern goes another way there.
_WAVES = {"numpy": _numpy_waves, "streamkern": _streamkern_waves}
