"""Start of a cluster: with defaults of ours in the place of Dask's, and interrupted by signals.

After Ctrl-C or SIGTERM what there is of the cluster closes.
"""

import asyncio
import importlib.util
import inspect
import logging
import os
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

import dask
import psutil
from distributed import Client, SpecCluster, Status
from distributed.deploy.utils import nprocesses_nthreads

from streamkern.engine.futures import NO_WORKERS
from streamkern.runtime.memory import worker_bytes
from streamkern.runtime.private_names import begun_parts, closed, instances_of, stop_loop
from streamkern.runtime.stopping import held, is_asked_to_stop

# Seconds between two looks; in which a start may still end by itself, a job be submitted, and all
# be closed.
_LOOK, _SOON, _SUBMITTED, _END = 0.1, 1.0, 5.0, 10.0
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
    settings |= {key: ours for key, (usual, ours) in _OURS.items() if dask.config.get(key) == usual}
    environment = dict(dask.config.get(_SPAWN) or {})
    if environment.get(_TRIM) == 65536:
        # What one task frees the next one takes: to give it back at once costs 5% of all cores.
        # In one heap, because what threads of a worker free in heaps of their own adds up.
        del environment[_TRIM]
        environment[_HEAPS] = os.environ.get(_HEAPS, "1")
    if blas_threads > 1:
        environment |= dict.fromkeys(_BLAS, blas_threads)
    return settings | {_SPAWN: environment}


def local_options(options: dict[str, Any]) -> dict[str, Any]:
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


def start_cluster(stack: ExitStack, start: partial[Any]) -> Client:
    """Start a cluster and return a client of it; what they change or run ends with the stack."""
    # Nannies change this process's environment, which moreover outranks what they are told.
    names = {*_BLAS, *(dask.config.get(_SPAWN) or {}), "PYTHONHASHSEED"}
    before = {name: os.environ.pop(name, None) for name in names}
    stack.callback(_restore, before)
    # A terminal sends Ctrl-C to all; what starts meanwhile leaves it to this thread for ever.
    with held(), ExitStack() as blocked:
        usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        blocked.callback(signal.pthread_sigmask, signal.SIG_SETMASK, usual)
        cluster = _started(start)
        stack.enter_context(_closing_uninterrupted(closing(cluster)))
        stack.callback(_end_submissions, cluster)
    client = stack.enter_context(_closing_uninterrupted(Client(cluster)))
    _restore(before)
    return client


def _restore(environment: dict[str, str | None]) -> None:
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@contextmanager
def _closing_uninterrupted(running: Any) -> Iterator[Any]:
    """Enter a context whose end no signal interrupts."""
    with ExitStack() as stack:
        entered = stack.enter_context(running)
        try:
            yield entered
        finally:
            with held():
                stack.close()


def _started(start: partial[Any]) -> Any:
    """Return what starts in a thread beside this one; raise KeyboardInterrupt if a signal waits."""
    before, over = set(instances_of(SpecCluster)), threading.Event()
    begun: list[Any] = []
    errors: list[BaseException] = []
    kind, args, kwargs = start.func, start.args, start.keywords

    def run() -> None:
        try:
            if inspect.isclass(kind):  # to have it before it is ready
                begun.append(kind.__new__(kind, *args, **kwargs))
                kind.__init__(begun[0], *args, **kwargs)
            else:
                begun.append(start())
            begun[0].__enter__()  # which waits for more than the start
        except BaseException as error:  # noqa: BLE001  it is raised below
            errors.append(error)
        over.set()

    threading.Thread(target=copy_context().run, args=(run,), name="start", daemon=True).start()
    try:
        while not over.wait(_LOOK):
            if is_asked_to_stop() and not over.wait(_SOON):
                raise KeyboardInterrupt  # noqa: TRY301  a thread may raise it in this one too
    except KeyboardInterrupt:
        for cluster in {*begun, *instances_of(SpecCluster)} - before:
            _end_submissions(cluster)
            with suppress(Exception):  # of what was hardly begun
                loop = cluster.loop.asyncio_loop
                asyncio.run_coroutine_threadsafe(_close(cluster), loop).result(2 * _END)
                stop_loop(cluster)
        raise
    if errors:
        raise errors[0]
    return begun[0]


async def _close(cluster: Any) -> None:
    """Close what there is of a cluster, which its own way to close does not know of yet."""
    parts = begun_parts(cluster)
    if isinstance(cluster, SpecCluster):
        closings = [part.close() for part in (*parts, cluster.scheduler) if part is not None]
    else:
        closings = [closed(cluster)]
    done, deadline = asyncio.gather(*closings, return_exceptions=True), time.monotonic() + _END
    while not done.done() and time.monotonic() < deadline:
        for part in parts:  # a nanny would wait until its worker is ready
            if pid := getattr(getattr(part, "process", None), "pid", None):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(_LOOK)
    cluster.status = Status.closed


def _end_submissions(cluster: Any) -> None:
    """Wait for jobs to be submitted, which have no number before by which to cancel them.

    What takes longer is killed: a cluster would wait for it before it closes.
    """
    jobs = [each for each in begun_parts(cluster) if hasattr(each, "submit_command")]
    commands = {Path(shlex.split(job.submit_command)[0]).name for job in jobs}
    deadline = time.monotonic() + _SUBMITTED
    while commands and (running := _processes_named(commands)):
        if time.monotonic() > deadline:
            for each in running:
                with suppress(psutil.Error):
                    each.kill()
        time.sleep(_LOOK)


def _processes_named(commands: set[str]) -> list[psutil.Process]:
    """Return the processes that this one has started by such names, and what those started."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if commands & {Path(word).name for word in child.cmdline()[:2]}:  # one may be a shell
                found += [child, *child.children(recursive=True)]
    return found
