"""From a cluster file, an address, a scheduler file or a number of workers to a Dask client."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import logging
import os
import shutil
import signal
import socket
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import dask
from dask.utils import parse_bytes, parse_timedelta
from distributed import Client, LocalCluster, Security, SpecCluster, SSHCluster, rpc
from distributed.deploy import Cluster
from distributed.deploy.utils import nprocesses_nthreads

from streamkern.engine.cluster_file import (
    ClusterFile,
    checked_address,
    read_cluster_file,
    read_scheduler_file,
)
from streamkern.engine.cluster_start import end_submissions, started
from streamkern.engine.heartbeat import heartbeat_of
from streamkern.engine.worker_restart import Revival
from streamkern.errors import ClusterError, ParameterError, first_line
from streamkern.monitor.scheduler_plugin import Watch
from streamkern.runtime.memory import usable_cores, worker_bytes
from streamkern.runtime.resources import LOST
from streamkern.runtime.signals import handlers_kept, held
from streamkern.storage import local_path

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

T = TypeVar("T")

_LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"
_NO_WORKERS = "distributed.scheduler.no-workers-timeout"
_OPTIONS = "streamkern.cluster-options"
# What a file adds to, rather than replaces, of the configuration of a site.
_OF_SITE = (
    *("scheduler-options", "worker-extra-args", "job-extra-directives"),
    *("interface", "local-directory"),
)
_SPAWN = "distributed.nanny.pre-spawn-environ"
_BLAS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_TRIM, _HEAPS = "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX"

# Values of Dask's own, and those of our clusters in their place.
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


@contextmanager
def connect(
    *,
    cluster: str | Path | None = None,
    trust_cluster_file: bool = False,
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
        A YAML file with `version: 1`, `module`, `class`, and optionally `args`, `kwargs`, `scale`
        (workers or jobs to ask for), `adapt` (`minimum`, `maximum`) and `config` (merged into the
        Dask configuration while connected).  Classes outside Dask's own packages are refused, and
        so are options that are not about sizes, resources, names and times: your own Dask
        configuration may hold them, as `streamkern.cluster-options.CLASS`.
    trust_cluster_file : bool
        Take all options of `cluster`.  Whoever chose a host, image, address, folder or program in
        it can run code in your account.
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
    ParameterError
        If an option, or the content of a file, is not what it must be.
    ClusterError
        If a cluster cannot be started, nobody answers, or there are no workers.

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
    if trust_cluster_file and cluster is None:
        raise ParameterError(
            "to trust a cluster file one must be given, but none is; name it, or leave "
            "--trust-cluster-file (trust_cluster_file) out."
        )
    deadline = time.monotonic() + timeout
    address = scheduler
    if cluster is None and scheduler is None:
        if scheduler_file is not None:
            address = read_scheduler_file(local_path(scheduler_file))
        elif n_workers is None:
            address = os.environ.get("DASK_SCHEDULER_ADDRESS") or None
    with ExitStack() as stack:
        # What they log about a cluster that does not start or is lost, they also raise.
        for name in ("distributed.client", "distributed.deploy"):
            log = logging.getLogger(name)
            stack.callback(log.setLevel, log.level)
            log.setLevel(logging.CRITICAL)
        # The frequencies travel in the graph, once.
        threshold = max(parse_bytes(dask.config.get(_LARGE_GRAPH, 0)), 256 << 20)
        stack.enter_context(dask.config.set({_LARGE_GRAPH: threshold}))
        if cluster is None and address is not None:
            yield _reached(stack, address, deadline, timeout)
            return
        stack.enter_context(dask.config.set(_settings(blas_threads)))
        if cluster is not None:
            file = read_cluster_file(local_path(cluster), trusted=trust_cluster_file)
            yield _from_file(stack, file, timeout)
            return
        n_workers = n_workers or max(usable_cores() // blas_threads, 1)
        options = _local_defaults(n_workers) | {
            "n_workers": n_workers,
            "threads_per_worker": 1,
            "processes": True,
        }
        client = _started(stack, partial(LocalCluster, **options), "a LocalCluster")
        _wait_for_worker(client, timeout, "the LocalCluster")
        yield client


def _local_defaults(n_workers: int) -> dict[str, Any]:
    bokeh = importlib.util.find_spec("bokeh") is not None
    return {
        "memory_limit": worker_bytes(n_workers),
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0" if bokeh else None,
        # What goes wrong in a task comes back as an exception; and that its client has gone is
        # critical to a scheduler, even where both end.
        "silence_logs": logging.CRITICAL + 1,
    }


def _n_local_workers(options: dict[str, Any]) -> int:
    """Return how many workers a LocalCluster has, as it decides itself where it is not told."""
    given, threads = options.get("n_workers"), options.get("threads_per_worker")
    if not given and options.get("processes") is not False:
        given = dask.system.CPU_COUNT // threads if threads else nprocesses_nthreads()[0]
    return max(given or 1, 1)


def _reached(stack: ExitStack, address: str, deadline: float, timeout: float) -> Client:
    host, port, encrypted = checked_address(address)
    if encrypted and not Security().get_connection_args("client")["ssl_context"]:
        raise ClusterError(
            f"{address} needs TLS certificates, but none is configured; set distributed.comm.tls "
            f"in the Dask configuration."
        )
    try:
        socket.getaddrinfo(host, port)
        kind = _beside(_kind_at(address, _left(deadline)))
        client = Client(address, timeout=_left(deadline)) if kind == "Scheduler" else None
    except socket.gaierror as error:
        raise ClusterError(
            f"the host of {address} is unknown ({error.strerror}); check the address."
        ) from error
    except Exception as error:
        why = "" if isinstance(error, OSError) else f" ({first_line(error)})"
        raise ClusterError(
            f"no Dask scheduler answers at {address} within {timeout:g} s{why}; check that it runs "
            f"and can be reached from here."
        ) from error
    if client is None:
        raise ClusterError(f"{address} is a Dask {kind}; give the address of its scheduler.")
    stack.enter_context(client)
    _wait_for_worker(client, _left(deadline), f"the scheduler at {address}")
    _watch(client)
    return client


def _watch(client: Client) -> None:
    """Look after the scheduler, and have it show jobs, which it needs streamkern for."""
    heartbeat_of(client).n_waiting += 1  # until it is closed
    if dask.config.get("streamkern.monitoring", True):
        with suppress(Exception):
            client.register_plugin(Watch())


def _beside(asking: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread, since this one may have a loop, and nobody waits for its end."""
    answer: Future[T] = Future()

    def ask() -> None:
        try:
            answer.set_result(asyncio.run(asking))
        except BaseException as error:  # noqa: BLE001  it is raised where it is waited for
            answer.set_exception(error)

    threading.Thread(target=ask, name="ask", daemon=True).start()
    return answer.result()


async def _kind_at(address: str, seconds: float) -> str:
    """Return what serves at an address; a client would wait without end for a silent one."""
    arguments = Security().get_connection_args("client")
    async with asyncio.timeout(seconds), rpc(address, connection_args=arguments) as server:
        return str((await server.identity())["type"])


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.5)


def _settings(blas_threads: int) -> dict[str, Any]:
    """Return what clusters of our own have in the place of Dask's defaults, and only of those."""
    # Without a limit, tasks would wait for ever for workers that are all gone.
    settings = {_NO_WORKERS: dask.config.get(_NO_WORKERS, None) or "60s"}
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
        environment = environment | dict.fromkeys(_BLAS, blas_threads)
    return settings | {_SPAWN: environment}


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
    # Nannies change this process's environment, which moreover outranks what they are told.
    names = {*_BLAS, *(dask.config.get(_SPAWN) or {}), "PYTHONHASHSEED"}
    before = {name: os.environ.pop(name, None) for name in names}
    stack.callback(_restore, before)
    try:
        with held(), _not_interrupted():
            cluster = started(start.func, *start.args, **start.keywords)
            stack.enter_context(_never_half_closed(closing(cluster)))
            stack.callback(end_submissions, cluster)
        client = stack.enter_context(_never_half_closed(Client(cluster)))
    except Exception as error:
        raise ClusterError(
            f"{what} could not be started ({first_line(error)}); correct its options, or start it "
            f"yourself and give its address."
        ) from error
    _restore(before)
    _watch(client)
    if isinstance(cluster, LocalCluster) and not adaptive:
        Revival(cluster).begin()
    return client


@contextmanager
def _never_half_closed(running: Any) -> Iterator[Any]:
    """Enter a context whose end no signal interrupts."""
    with ExitStack() as stack:
        entered = stack.enter_context(running)
        try:
            yield entered
        finally:
            with held():
                stack.close()


def _restore(environment: dict[str, str | None]) -> None:
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Let Ctrl-C wait; processes and threads that start meanwhile leave it to this one for ever.

    A terminal sends it to all of them.
    """
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)


def _from_file(stack: ExitStack, file: ClusterFile, timeout: float) -> Client:
    try:
        patience = parse_timedelta(file.config.get(_NO_WORKERS) or timeout)
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f"{file.path}: {_NO_WORKERS} must be a time such as 60s, but is not; correct it."
        ) from error
    stack.enter_context(dask.config.set(file.config))
    start = _cluster_class(file)
    try:
        call = inspect.signature(start).bind(*file.args, **_options(file, start))
        if start is LocalCluster:
            call.arguments = _local_defaults(_n_local_workers(call.arguments)) | call.arguments
    except TypeError as error:
        raise ParameterError(
            f"{file.path}: {file.name} does not take these args and kwargs ({error}); correct them."
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
        _wait_for_worker(
            client,
            patience,
            what,
            f" with scale or n_workers, or, where jobs queue, set {_NO_WORKERS} in its config",
        )
    return client


def _options(file: ClusterFile, start: Any) -> dict[str, Any]:
    """Return what a file says, with what the user's own configuration says beside it."""
    own = {}
    if job := getattr(start, "job_cls", None):
        # A scheduler that waits for jobs listens on the network.
        if not shutil.which(job.submit_command):
            raise ClusterError(
                f"{file.path} needs {job.submit_command}, which is not on this machine; run the "
                f"command where jobs are submitted."
            )
        site = dask.config.get(f"jobqueue.{job.config_name}", {})
        own = {key: site[key] for key in _OF_SITE if site.get(key)}
    own |= dask.config.get(f"{_OPTIONS}.{file.name}", None) or {}
    own = {key.replace("-", "_"): value for key, value in own.items()}
    options = own | file.kwargs
    for key in own.keys() & file.kwargs.keys():
        if isinstance(own[key], dict):
            options[key] = own[key] | (file.kwargs[key] or {})
        elif not file.trusted and isinstance(own[key], list):
            options[key] = [*own[key], *file.kwargs[key]]
        elif not file.trusted and key in ("interface", "local_directory"):
            options[key] = own[key]
    return options


def _cluster_class(file: ClusterFile) -> Any:
    package = file.module.split(".")[0]
    try:
        with handlers_kept():  # which dask_jobqueue replaces by its own
            found = getattr(importlib.import_module(file.module), file.name, None)
    except ImportError as error:
        raise ClusterError(
            f"{file.path} needs {file.module}, which cannot be imported ({first_line(error)}); "
            f"install it with pip install {package.replace('_', '-')}."
        ) from error
    # SpecCluster takes classes by name; SSHCluster is a function, and GatewayCluster stands alone.
    is_cluster = inspect.isclass(found) and (
        (issubclass(found, Cluster) and found not in (Cluster, SpecCluster))
        or (package == "dask_gateway" and file.name == "GatewayCluster")
    )
    if not is_cluster and found is not SSHCluster:
        raise ParameterError(
            f"{file.path}: class must be a cluster class of {file.module}, such as LocalCluster "
            f"of dask.distributed, but {file.name} is not; correct it."
        )
    return found
