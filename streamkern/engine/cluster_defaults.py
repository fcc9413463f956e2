"""Defaults of the clusters that are started here, in the place of Dask's own."""

from __future__ import annotations

import importlib.util
import logging
import os
from typing import Any

import dask
from distributed.deploy.utils import nprocesses_nthreads

from streamkern.runtime.memory import worker_bytes

NO_WORKERS = "distributed.scheduler.no-workers-timeout"
_SPAWN = "distributed.nanny.pre-spawn-environ"
_BLAS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_TRIM, _HEAPS = "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX"
# Values of Dask's own, and ours.
_OURS = {
    # Dask's takes 5% of a fit; ten samples a second profile it as well.
    "distributed.worker.profile.interval": ("10ms", "100ms"),
    # Workers and schedulers keep 1,000 cycles of profiles, of a second, and up to 10,000 entries of
    # every log: hours of small fits until they stop growing.
    "distributed.worker.profile.cycle": ("1000ms", "10s"),
    "distributed.admin.low-level-log-length": (1000, 100),
    "distributed.admin.log-length": (10_000, 1000),
    # Every process looks fifty times a second whether it lags; half of what idling takes.
    "distributed.admin.tick.interval": ("20ms", "200ms"),
    # So long does work wait on a worker that hangs, before it is started anew.
    "distributed.scheduler.worker-ttl": ("5 minutes", "60s"),
    # Work that was on a worker that died is begun again; a shard that kills workers shows soon.
    "distributed.scheduler.allowed-failures": (3, 10),
}


def configuration(blas_threads: int) -> dict[str, Any]:
    """Return the Dask configuration of clusters of our own, which changes Dask's defaults alone."""
    # Without a limit, tasks would wait for ever for workers that are all gone.
    settings = {NO_WORKERS: dask.config.get(NO_WORKERS, None) or "60s"}
    settings |= {
        key: ours for key, (default, ours) in _OURS.items() if dask.config.get(key) == default
    }
    environment = dict(dask.config.get(_SPAWN) or {})
    if environment.get(_TRIM) == 65536:
        # What one task frees the next one takes: to give it back at once costs 5% of all cores.
        # In one heap, because what threads of a worker free in heaps of their own adds up.
        del environment[_TRIM]
        environment[_HEAPS] = os.environ.get(_HEAPS, "1")
    if blas_threads > 1:
        environment |= dict.fromkeys(_BLAS, blas_threads)
    return settings | {_SPAWN: environment}


def nanny_variables() -> set[str]:
    """Return the environment variables that nannies set in the process that starts them."""
    return {*_BLAS, *(dask.config.get(_SPAWN) or {}), "PYTHONHASHSEED"}


def local_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a LocalCluster: those that are given, and ours for the others."""
    n_workers, threads = options.get("n_workers"), options.get("threads_per_worker")
    if not n_workers and options.get("processes") is not False:  # as LocalCluster decides it
        n_workers = dask.system.CPU_COUNT // threads if threads else nprocesses_nthreads()[0]
    bokeh = importlib.util.find_spec("bokeh") is not None
    return {
        "memory_limit": worker_bytes(max(n_workers or 1, 1)),
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0" if bokeh else None,
        # What goes wrong in a task comes back as an exception; and that its client has gone is
        # critical to a scheduler, even where both end.
        "silence_logs": logging.CRITICAL + 1,
    } | options
