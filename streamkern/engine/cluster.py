"""Connections to Dask clusters: of a cluster file, an address, a scheduler file, or our own."""

import asyncio
import importlib.util
import json
import logging
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import dask
from dask.utils import parse_bytes
from distributed import Client, LocalCluster, Security, rpc

from streamkern.engine.scheduler import NO_WORKERS
from streamkern.errors import ClusterError, ParameterError, first_line
from streamkern.errors.urls import shown
from streamkern.registry import extension, installed
from streamkern.runtime.memory import usable_cores, worker_bytes
from streamkern.runtime.resources import LOST, configured_seconds
from streamkern.runtime.stopping import held
from streamkern.storage.outputs import local_path

_LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"
# Seconds within which something must listen at an address.
_CONNECTING = 3.0
# Of a scheduler file, which may list its workers.
_MOST_BYTES = 32 << 10
_LINK = "distributed.dashboard.link"
_SPAWN = "distributed.nanny.pre-spawn-environ"
_ADDRESS = re.compile(r"(?:(tcp|tls|ws|wss)://)?(\[[^]]+\]|[^:/\s@]+):(\d{1,5})")
# Of the Dask configuration of clusters of our own: Dask's default, and ours in its place.
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
    # Without a limit, tasks would wait for ever for workers that are all gone.
    NO_WORKERS: (None, "60s"),
    # A plan counts all that a worker holds; one that is paused would wait for what its job needs.
    "distributed.worker.memory.pause": (0.8, 0.9),
    # What one task frees the next one takes: to give it back at once costs 5% of all cores.  In one
    # heap, because what threads of a worker free in heaps of their own adds up.
    f"{_SPAWN}.MALLOC_TRIM_THRESHOLD_": (65536, None),
    f"{_SPAWN}.MALLOC_ARENA_MAX": (None, 1),
}


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
        or jobs to ask for) and `adapt` (`minimum`, `maximum`).  It may choose among five classes,
        and sizes and resources; all else your own Dask configuration may hold, as
        `streamkern.cluster-options.CLASS`.
    scheduler : str, optional
        The address of a running scheduler, such as tcp://10.0.0.1:8786.  Whoever answers there can
        run code in your account.
    scheduler_file : path, optional
        What `dask scheduler --scheduler-file` wrote: an address, of which the same is true.
    n_workers : int, optional
        Worker processes of a LocalCluster, which listens on this machine's loopback only.
    blas_threads : int
        BLAS threads of a task, where there is to be a worker for so many cores.
    timeout : float
        Seconds within which a scheduler must answer and a first worker be there.  Where jobs
        queue, `distributed.scheduler.no-workers-timeout` of the Dask configuration is the time to
        wait.

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
    # Where jobs queue, users say how long that may be.
    is_set = dask.config.get(NO_WORKERS, None)
    patience = configured_seconds(NO_WORKERS, "") if is_set else timeout
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(_configuration(is_own=cluster or not address)))
        if cluster is not None:
            described = extension("clusters", "cluster_file")
            client = described.started_by_file(stack, local_path(cluster), patience)
            _let_results_come_directly(client)
            yield client
            return
        if address is not None:
            client, what = _client_at(address, timeout), f"the scheduler at {address}"
            stack.enter_context(client)
            _watch(client)
            timeout = max(deadline - time.monotonic(), 0.5)
        else:
            n_workers = n_workers or max(usable_cores() // blas_threads, 1)
            options = local_options({"n_workers": n_workers, "threads_per_worker": 1})
            what = "a LocalCluster"
            client = started(stack, partial(LocalCluster, **options), what)
        wait_for_worker(client, timeout, what)
        _let_results_come_directly(client)
        yield client


def _let_results_come_directly(client: Client) -> None:
    """Have large results pass the scheduler by, where a worker can be reached from here.

    What the Dask configuration says, at `distributed.client.direct-to-workers`, counts.
    """
    if client.direct_to_workers is None:
        with suppress(Exception):
            worker = next(iter(client.nthreads()))
            security = client.security.get_connection_args("client")
            client.direct_to_workers = _kind_at(worker, security, _CONNECTING) == "Worker"


def _configuration(*, is_own: object) -> dict[str, Any]:
    """Return the Dask configuration while connected; what the user has set counts."""
    # The frequencies travel in the graph, once.
    settings = {_LARGE_GRAPH: max(parse_bytes(dask.config.get(_LARGE_GRAPH, 0)), 256 << 20)}
    # Links of dashboards lead to the page of jobs itself.
    root, status, rest = dask.config.get(_LINK).rpartition("/status")
    if _is_watched() and _has_bokeh() and status and not rest:
        settings[_LINK] = f"{root}/streamkern"
    for key, (usual, ours) in _OURS.items() if is_own else ():
        if dask.config.get(key, None) == usual:
            settings[key] = ours
    return settings


def _has_bokeh() -> bool:
    return importlib.util.find_spec("bokeh") is not None


def _is_watched() -> bool:
    return dask.config.get("streamkern.monitoring", True) and "watching" in installed()


def local_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of a LocalCluster, with defaults of ours."""
    return {
        "memory_limit": worker_bytes(options.get("n_workers") or usable_cores()),
        "dashboard_address": "127.0.0.1:0" if _has_bokeh() else None,
        # What goes wrong in a task comes back as an exception; and that its client has gone is
        # critical to a scheduler, even where both end.
        "silence_logs": logging.CRITICAL + 1,
    } | options


def _watch(client: Client) -> None:
    """Have a scheduler show jobs, which it needs streamkern for."""
    if _is_watched():
        with suppress(Exception):
            client.register_plugin(extension("watching", "scheduler_plugin").Watch())


def wait_for_worker(client: Client, seconds: float, where: str, remedy: str = "") -> None:
    """Wait for a first worker, or raise ClusterError."""
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        raise ClusterError(
            f"no worker joined {where} within {seconds:.3g} s, but at least one is needed; start "
            f"workers{remedy}."
        ) from error
    except OSError as error:
        raise ClusterError(LOST) from error


def started(stack: ExitStack, start: partial[Any], what: str) -> Client:
    """Return a client of a cluster that is started here, and closed with the stack."""
    try:
        with _undisturbed() if start.func is LocalCluster else ExitStack():
            cluster = start()
            stack.callback(_close, cluster)
            client = Client(cluster)
            stack.callback(_close, client)
    except Exception as error:
        raise ClusterError(
            f"{what} could not be started ({first_line(error)}); correct its options, or start it "
            f"yourself and give its address."
        ) from error
    _watch(client)
    return client


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let signals wait while local workers start, which leave Ctrl-C to this process for ever.

    A terminal sends it to all, and what a thread starts has the mask of that thread.
    """
    resource_tracker.ensure_running()  # at its start it lets signals in
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with held():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)


def _close(running: Any) -> None:
    with held():
        running.close()


def text_of(path: Path, most_bytes: int) -> str:
    """Return what a small file holds; nobody may ever write to a pipe, or end what is in it."""
    if not path.is_file():
        path.stat()
        raise OSError("it is no plain file")
    if path.stat().st_size > most_bytes:
        raise OSError(f"it has more than {most_bytes >> 10} KiB")
    return path.read_text(encoding="utf-8")


def read_scheduler_file(path: Path) -> str:
    """Return the address in a file that `dask scheduler --scheduler-file` wrote."""
    try:
        return str(json.loads(text_of(path, _MOST_BYTES))["address"])
    except FileNotFoundError as error:
        raise ParameterError(
            f"{path} does not exist; start the scheduler with --scheduler-file first."
        ) from error
    except (OSError, RecursionError, ValueError, TypeError, KeyError) as error:
        raise ParameterError(
            f"{path} must be the JSON that `dask scheduler --scheduler-file` writes, with an "
            f"address, but is not; name another file."
        ) from error


def _client_at(address: str, timeout: float) -> Client:
    """Return a client of the scheduler at an address, or raise ClusterError."""
    match = _ADDRESS.fullmatch(address)
    if not match or not 0 < int(match[3]) < 1 << 16:
        raise ParameterError(
            f"a scheduler address looks like tcp://host:8786, but {shown(address)!r} was given; "
            f"correct it."
        )
    security = Security().get_connection_args("client")
    if match[1] in ("tls", "wss") and not security["ssl_context"]:
        raise ClusterError(
            f"{address} needs TLS certificates, but none is configured; set distributed.comm.tls "
            f"in the Dask configuration."
        )
    waited = min(timeout, _CONNECTING)
    try:
        _check_listener(match[2].strip("[]"), int(match[3]), waited)
        waited = timeout
        kind = _kind_at(address, security, timeout)
        if kind == "Scheduler":
            return Client(address, timeout=timeout)
    except Exception as error:
        why = (
            "" if isinstance(error, (TimeoutError, ConnectionError)) else f" ({first_line(error)})"
        )
        raise ClusterError(
            f"no Dask scheduler answers at {address} within {waited:g} s{why}; check that it runs "
            f"and can be reached from here."
        ) from error
    raise ClusterError(f"{address} is a Dask {kind}; give the address of its scheduler.")


def _check_listener(host: str, port: int, seconds: float) -> None:
    """Raise OSError where nothing listens; Dask's client would try for all of its time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host, port), max(deadline - time.monotonic(), 0.1)).close()
        except OSError:
            if time.monotonic() > deadline - 0.1:
                raise
            time.sleep(0.1)  # it may just be starting
        else:
            return


def _kind_at(address: str, security: dict[str, Any], seconds: float) -> str:
    """Return what serves at an address; a client would wait without end for a silent one."""

    async def identity() -> str:
        async with asyncio.timeout(seconds), rpc(address, connection_args=security) as server:
            return str((await server.identity())["type"])

    answer: Future[str] = Future()

    def ask() -> None:
        try:
            answer.set_result(asyncio.run(identity()))
        except BaseException as error:  # noqa: BLE001  it is raised where it is waited for
            answer.set_exception(error)

    # In a thread, since this one may have a loop, and nobody waits for the thread's end.
    threading.Thread(target=ask, name="ask", daemon=True).start()
    return answer.result()
