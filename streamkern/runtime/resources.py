"""Workers, threads and memory that tasks run on: of a Dask client, else of this process."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NamedTuple

from streamkern._version import __version__
from streamkern.errors import ClusterError, ParameterError, StreamkernError, first_line
from streamkern.runtime.memory import available_bytes, thread_bytes

# What a thread holds of a block of rows, at least.
_BLOCK_BYTES = 256 << 20
LOST = "the cluster lost its workers or its scheduler; check that they run, and start again."


class LazyModule:
    """A module that is imported when something of it is needed, because that is slow."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        vars(self)[name] = found = getattr(import_module(self._name), name)
        return found


dask: Any = LazyModule("dask")


class Resources(NamedTuple):
    """Worker processes, 0 where tasks run in this one; tasks at a time, and memory, of one."""

    n_workers: int
    n_threads: int
    allowed_bytes: int

    @property
    def n_slots(self) -> int:
        """Tasks that run at the same time."""
        return max(self.n_workers, 1) * self.n_threads


def configured_seconds(key: str, default: str) -> float:
    """Return a time of the Dask configuration in seconds, or raise ParameterError."""
    value: Any = dask.config.get(key, None) or default
    try:
        return float(dask.utils.parse_timedelta(value))
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f"{key} in the Dask configuration must be a time such as 60s or 10m, not {value!r}; "
            f"correct it."
        ) from error


def current_resources() -> Resources:
    """Return what the current scheduler offers, as a plan needs to know it."""
    client = current_client()
    if client is None:
        # The task of a worker has its share of what that may take.
        worker, free = current_worker(), available_bytes()
        limit = getattr(worker, "memory_manager", None) and worker.memory_manager.memory_limit
        mine = min(free, limit // worker.state.nthreads) if limit else free
        return Resources(0, local_threads(), mine)
    with reaching(client):
        info = client.scheduler_info(n_workers=-1)
    if "workers" not in info:  # the client has lost its scheduler
        raise ClusterError(LOST)
    workers = info["workers"].values()
    if not workers:
        return Resources(1, 1, available_bytes())
    limits = [worker["memory_limit"] or available_bytes() for worker in workers]
    return Resources(len(workers), max(worker["nthreads"] for worker in workers), min(limits))


def current_client() -> Any:
    """Return the distributed client that `dask.compute` would use now, or None.

    There is none in the task of a worker, unless it has left its thread to others: tasks that wait
    for others would hold all threads that these need.
    """
    if "distributed" not in sys.modules or _holds_thread():
        return None  # Dask would import it to find out, which takes longer than a small fit
    owner = getattr(dask.base.get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


def current_worker() -> Any:
    """Return the Dask worker that runs the present task, or None where none does."""
    if "distributed.worker" in sys.modules:
        from distributed import get_worker  # noqa: PLC0415  only where it is imported already

        with suppress(ValueError):
            return get_worker()
    return None


def _holds_thread() -> bool:
    """Say whether this is the task of a worker, on one of the threads that those are run by."""
    if current_worker() is None:
        return False
    from distributed.threadpoolexecutor import thread_state  # noqa: PLC0415  where a worker is

    return bool(getattr(thread_state, "proceed", True))


def metered(seconds: dict[str, float]) -> None:
    """Count parts of the seconds of a task in Dask's fine performance metrics, by activity."""
    if current_worker() is not None:
        from distributed.metrics import context_meter  # noqa: PLC0415  where a worker is

        for activity, each in seconds.items():
            context_meter.digest_metric(activity, each, "seconds")


def local_scheduler() -> Any:
    """Return what Dask runs tasks of this process with: in the task of a worker its thread."""
    if _holds_thread():
        return dask.local.get_sync
    chosen = dask.config.get("scheduler", None) or "threads"
    return dask.base.named_schedulers.get(chosen, chosen) if isinstance(chosen, str) else chosen


def local_threads() -> int:
    """Return how many tasks run at a time where there is no client."""
    if local_scheduler() is dask.local.get_sync:
        return 1
    threads = int(dask.config.get("num_workers", None) or dask.system.CPU_COUNT)
    if a_thread := thread_bytes():
        threads = min(threads, available_bytes() // (a_thread + _BLOCK_BYTES))
    return max(threads, 1)


@contextmanager
def reaching(client: Any) -> Iterator[None]:
    """Say in one sentence that a client is closed, or that its scheduler does not answer."""
    try:
        yield
    except StreamkernError:
        raise
    except Exception as error:
        check_installed(error)
        if client.status != "running" or isinstance(error, (OSError, RuntimeError)):
            raise ClusterError(LOST) from error
        raise


def check_installed(error: BaseException) -> None:
    """Raise ClusterError if an error of a scheduler or worker says that it lacks this package."""
    if isinstance(error, ImportError) and "streamkern" in str(error):
        raise ClusterError(
            f"the scheduler or a worker has no streamkern {__version__} ({first_line(error)}); "
            f"install it there: pip install streamkern=={__version__}."
        ) from error
