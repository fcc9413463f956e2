"""Connections to Dask clusters: of a cluster file, an address, a scheduler file, or our own."""

import inspect
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dask
from dask.utils import parse_bytes, parse_timedelta
from distributed import Client, LocalCluster

from streamkern.engine.cluster_file import ClusterFile, read_cluster_file
from streamkern.engine.cluster_start import configuration, local_options, start_cluster
from streamkern.engine.futures import NO_WORKERS
from streamkern.engine.heartbeat import heartbeat_of
from streamkern.engine.running_scheduler import client_at, read_scheduler_file, seconds_left
from streamkern.engine.worker_lifetime import restart_missing_workers
from streamkern.errors import ClusterError, ParameterError, first_line
from streamkern.monitor.scheduler_plugin import Watch
from streamkern.runtime.memory import usable_cores
from streamkern.runtime.resources import LOST
from streamkern.storage.outputs import local_path

_LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"
_LINK = "distributed.dashboard.link"


@contextmanager
def connect(
    *,
    cluster: str | Path | None = None,
    scheduler: str | None = None,
    scheduler_file: str | Path | None = None,
    n_workers: int | None = None,
    blas_threads: int = 1,
    timeout: float = 20,
) -> Iterator[Client]:
    """Connect to a Dask cluster, and leave nothing running that was started for it.

    The first place that is given counts: `cluster`, `scheduler`, `scheduler_file`, `n_workers`,
    the environment variable DASK_SCHEDULER_ADDRESS; else a LocalCluster with a worker a core.
    A script connects under `if __name__ == "__main__":`, since local workers import the script.

    Parameters
    ----------
    cluster : path, optional
        A YAML file with `version: 1`, `module`, `class`, and optionally `kwargs`, `scale` (workers
        or jobs to ask for), `adapt` (`minimum`, `maximum`) and `config` (merged into the Dask
        configuration while connected).  It may choose among five classes, and sizes, resources,
        names and times; all else your own Dask configuration may hold, as
        `streamkern.cluster-options.CLASS`.
    scheduler : str, optional
        The address of a running scheduler, such as tcp://10.0.0.1:8786.  Whoever answers there can
        run code in your account.
    scheduler_file : path, optional
        What `dask scheduler --scheduler-file` wrote: an address, of which the same is true.
    n_workers : int, optional
        Worker processes of a LocalCluster, which listens on this machine's loopback only.
    blas_threads : int
        BLAS threads of a process of clusters that are started here.
    timeout : float
        Seconds within which a scheduler must answer and a first worker be there.  Where jobs
        queue, `distributed.scheduler.no-workers-timeout` in `config` is the time to wait.

    Yields
    ------
    distributed.Client
        The current client until the context ends.

    Raises
    ------
    ParameterError, ClusterError
        If an option or a file is not what it must be; if a cluster cannot be started, nobody
        answers, or there are no workers.

    Examples
    --------
    >>> with connect(n_workers=2) as client:  # doctest: +SKIP
    ...     model.fit(source)
    >>> with connect(cluster="cluster.yaml") as client:  # doctest: +SKIP
    ...     model.fit(source)
    """
    for name, value in (("n_workers", n_workers), ("blas_threads", blas_threads)):
        if value is not None and value < 1:
            raise ParameterError(f"{name} must be 1 or more, not {value}; give another number.")
    if not timeout > 0:
        raise ParameterError(f"timeout must be positive, not {timeout}; give seconds.")
    deadline = time.monotonic() + timeout
    address = scheduler
    if cluster is None and scheduler is None:
        if scheduler_file is not None:
            address = read_scheduler_file(local_path(scheduler_file))
        elif n_workers is None:
            address = os.environ.get("DASK_SCHEDULER_ADDRESS") or None
    with ExitStack() as stack:
        # The frequencies travel in the graph, once.
        threshold = max(parse_bytes(dask.config.get(_LARGE_GRAPH, 0)), 256 << 20)
        stack.enter_context(dask.config.set({_LARGE_GRAPH: threshold, **_page_link()}))
        if cluster is None and address is not None:
            client = stack.enter_context(client_at(address, deadline, timeout))
            _wait_for_worker(client, seconds_left(deadline), f"the scheduler at {address}")
            _watch(client)
            yield client
            return
        stack.enter_context(dask.config.set(configuration(blas_threads)))
        if cluster is not None:
            file = read_cluster_file(local_path(cluster))
            yield _from_file(stack, file, timeout)
            return
        n_workers = n_workers or max(usable_cores() // blas_threads, 1)
        options = {"n_workers": n_workers, "threads_per_worker": 1, "processes": True}
        client = _started(stack, partial(LocalCluster, **local_options(options)), "a LocalCluster")
        _wait_for_worker(client, timeout, "the LocalCluster")
        yield client


def _page_link() -> dict[str, str]:
    """Return the configuration that links of dashboards are made by: to the page of jobs itself."""
    root, status, rest = dask.config.get(_LINK).rpartition("/status")
    monitored = dask.config.get("streamkern.monitoring", True) and find_spec("bokeh") is not None
    return {_LINK: f"{root}/{Watch.name}"} if monitored and status and not rest else {}


def _watch(client: Client) -> None:
    """Look after the scheduler, and have it show jobs, which it needs streamkern for."""
    heartbeat_of(client).n_waiting += 1  # until it is closed
    if dask.config.get("streamkern.monitoring", True):
        with suppress(Exception):
            client.register_plugin(Watch())


def _wait_for_worker(client: Client, seconds: float, where: str, remedy: str = "") -> None:
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        raise ClusterError(
            f"no worker joined {where} within {seconds:.3g} s, but at least one is needed; start "
            f"workers{remedy}."
        ) from error
    except OSError as error:
        raise ClusterError(LOST) from error


def _started(stack: ExitStack, start: partial[Any], what: str, *, adaptive: bool = False) -> Client:
    try:
        client = start_cluster(stack, start)
    except Exception as error:
        raise ClusterError(
            f"{what} could not be started ({first_line(error)}); correct its options, or start it "
            f"yourself and give its address."
        ) from error
    _watch(client)
    if isinstance(client.cluster, LocalCluster) and not adaptive:
        restart_missing_workers(client.cluster)
    return client


def _from_file(stack: ExitStack, file: ClusterFile, timeout: float) -> Client:
    try:
        patience = parse_timedelta(file.config.get(NO_WORKERS) or timeout)
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f"{file.path}: {NO_WORKERS} must be a time such as 60s, but is not; correct it."
        ) from error
    stack.enter_context(dask.config.set(file.config))
    start = file.cluster_class()
    try:
        call = inspect.signature(start).bind(**file.options(start))
        if start is LocalCluster:
            call.arguments = local_options(call.arguments)
    except TypeError as error:
        raise ParameterError(
            f"{file.path}: {file.name} does not take these kwargs ({error}); correct them."
        ) from error
    what = f"the {file.name} of {file.path}"
    adaptive = file.adapt is not None
    client = _started(stack, partial(start, *call.args, **call.kwargs), what, adaptive=adaptive)
    if file.scale is not None:
        client.cluster.scale(file.scale)
    if file.adapt is not None:
        client.cluster.adapt(**file.adapt)
    # An adaptive cluster may have no worker before there is work.
    if file.adapt is None or file.adapt["minimum"]:
        remedy = f" with scale or n_workers, or, where jobs queue, set {NO_WORKERS} in its config"
        _wait_for_worker(client, patience, what, remedy)
    return client
