"""Where the time of the pass goes: python jobs/profile_pass.py DATA.h5 --components 1024,2048,4096.

First on one thread of this process, every step by the clock, as a part of the whole; then on worker
processes, what every kind of thread computed, as a part of all cores' time.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import numpy as np

import streamkern
from streamkern.engine import shard_task
from streamkern.features import projection, spectral, standardized
from streamkern.runtime.memory import usable_cores
from streamkern.statistics import feature_moments, triangle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

spent: Counter[str] = Counter()


def timed(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function, whose time counts as that of a step."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            spent[step] += time.perf_counter() - begun

    return call


class Numpy:
    """NumPy, as one module sees it, with some functions timed."""

    def __init__(self, **steps: str) -> None:
        for name, step in steps.items():
            setattr(self, name, timed(step, getattr(np, name)))

    def __getattr__(self, name: str) -> Any:
        """Return all the rest as it is."""
        return getattr(np, name)


def watch_steps() -> None:
    """Put clocks around the steps of the pass."""
    for module, watched in (
        (projection, Numpy(matmul="projections")),
        (feature_moments, Numpy(matmul="products with the targets")),
        (triangle, Numpy(matmul="products of features", add="sums in double")),
    ):
        module.np = watched  # type: ignore[attr-defined]
    for owner, name, step in (
        (spectral.SpectralFeatures, "waves", "cosines and sines"),
        (standardized.Standardizer, "write", "standardising"),
    ):
        setattr(owner, name, timed(step, getattr(owner, name)))
    reading_ahead = shard_task.reading_ahead

    @contextmanager
    def watched_reading(blocks: Any) -> Iterator[Any]:
        with reading_ahead(blocks) as handed_over:
            yield iter(timed("waiting for rows", lambda: next(handed_over, None)), None)

    shard_task.reading_ahead = watched_reading


def model(components: int, precision: str) -> streamkern.RandomFeatureRidge:
    return streamkern.RandomFeatureRidge(n_components=components, alpha=1.0, precision=precision)


def on_one_thread(source: Any, components: int, precision: str) -> None:
    """Print what part of the pass on one thread every step takes."""
    with dask.config.set(scheduler="synchronous"):
        model(components, precision).fit(source)  # memory and libraries are there
        spent.clear()
        seconds = model(components, precision).fit(source).report_["seconds"]["pass"]
    spent["shift, loops, merges and the rest"] = seconds - sum(spent.values())
    print(f"D = {components:,}, {precision}, one thread:")
    for step, part in spent.most_common():
        print(f"  {step:34}{100 * part / seconds:6.1f}%")


def on_workers(source: Any, components: int, precision: str, n_workers: int) -> None:
    """Print what part of the cores' time every kind of thread computes, in a fit on workers."""
    with streamkern.connect(n_workers=n_workers) as client:
        client.run(import_module, "streamkern.fit")
        model(components, precision).fit(source)
        workers = client.run(os.getpid).values()
        before = [_seconds_of_threads(pid) for pid in (os.getpid(), *workers)]
        begun = time.perf_counter()
        model(components, precision).fit(source)
        whole = n_workers * (time.perf_counter() - begun)
        after = [_seconds_of_threads(pid) for pid in (os.getpid(), *workers)]
    used = [sum(b.values()) - sum(a.values()) for a, b in zip(before, after, strict=True)]
    # The event loop of a worker is its first thread; tasks' threads come and go.
    loops = sum(b[0] - a[0] for a, b in zip(before[1:], after[1:], strict=True))
    parts = {
        "tasks of workers, reading ahead": sum(used[1:]) - loops,
        "event loops of workers": loops,
        "client and scheduler": used[0],
        "idle, or other programs": whole - sum(used),
    }
    print(f"D = {components:,}, {precision}, {n_workers} workers, the whole fit:")
    for name, part in parts.items():
        print(f"  {name:34}{100 * part / whole:6.1f}%")


def _seconds_of_threads(pid: int) -> dict[int, float]:
    """Return what the first thread of a process has computed, and under 1 all others."""
    ticks = os.sysconf("SC_CLK_TCK")
    found = {}
    for key, path in ((0, f"/proc/{pid}/task/{pid}/stat"), (1, f"/proc/{pid}/stat")):
        fields = Path(path).read_text().rpartition(")")[2].split()
        found[key] = (int(fields[11]) + int(fields[12])) / ticks
    found[1] -= found[0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--components", default="1024,2048,4096")
    parser.add_argument("--precision", choices=("single", "double"), default="single")
    parser.add_argument("--workers", type=int, default=usable_cores())
    given = parser.parse_args()
    source = streamkern.open_hdf5(given.data)
    sizes = [int(size) for size in given.components.split(",")]
    for components in sizes:
        on_workers(source, components, given.precision, given.workers)
    watch_steps()
    for components in sizes:
        on_one_thread(source, components, given.precision)


if __name__ == "__main__":
    main()
