"""A cluster that is started while Ctrl-C and SIGTERM are heard; what there is of it closes then."""

from __future__ import annotations

import asyncio
import inspect
import os
import shlex
import signal
import threading
import time
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from distributed import SpecCluster, Status

from streamkern.runtime.signals import is_asked_to_stop

if TYPE_CHECKING:
    from collections.abc import Callable

# Seconds between two looks; in which a start may still end by itself, a job be submitted, and all
# be closed.
_LOOK, _SOON, _SUBMITTED, _END = 0.1, 1.0, 5.0, 10.0


def started(start: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the cluster that a class or function starts, in a thread beside this one.

    Raises
    ------
    KeyboardInterrupt
        If a signal waits; what has been started by then is closed.
    """
    before, over = set(_clusters()), threading.Event()
    made: list[Any] = []
    failed: list[BaseException] = []

    def make() -> None:
        try:
            if inspect.isclass(start):  # to have it before it is ready
                made.append(start.__new__(start, *args, **kwargs))
                start.__init__(made[0], *args, **kwargs)
            else:
                made.append(start(*args, **kwargs))
            made[0].__enter__()  # which waits for more than the start
        except BaseException as error:  # noqa: BLE001  it is raised below
            failed.append(error)
        over.set()

    threading.Thread(target=copy_context().run, args=(make,), name="start", daemon=True).start()
    try:
        while not over.wait(_LOOK):
            if is_asked_to_stop() and not over.wait(_SOON):
                raise KeyboardInterrupt  # noqa: TRY301  a thread may raise it in this one too
    except KeyboardInterrupt:
        for cluster in {*made, *_clusters()} - before:
            end_submissions(cluster)
            with suppress(Exception):  # of what was hardly begun
                loop = cluster.loop.asyncio_loop
                asyncio.run_coroutine_threadsafe(_close(cluster), loop).result(2 * _END)
                cluster._loop_runner.stop()  # noqa: SLF001
        raise
    if failed:
        raise failed[0]
    return made[0]


def _clusters() -> list[Any]:
    """Return the clusters of workers that this process has made, ready or not."""
    return list(SpecCluster._instances)  # noqa: SLF001


async def _close(cluster: Any) -> None:
    """Close what there is of a cluster, which its own way to close does not know of yet."""
    parts = list(getattr(cluster, "_created", ()))
    if isinstance(cluster, SpecCluster):
        closing = [part.close() for part in (*parts, cluster.scheduler) if part is not None]
    else:
        closing = [cluster._close()]  # noqa: SLF001
    closed, deadline = asyncio.gather(*closing, return_exceptions=True), time.monotonic() + _END
    while not closed.done() and time.monotonic() < deadline:
        for part in parts:  # a nanny would wait until its worker is ready
            if pid := getattr(getattr(part, "process", None), "pid", None):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(_LOOK)
    cluster.status = Status.closed


def end_submissions(cluster: Any) -> None:
    """Wait for jobs to be submitted, which have no number before by which to cancel them.

    What takes longer is killed: a cluster would wait for it before it closes.
    """
    jobs = [each for each in getattr(cluster, "_created", ()) if hasattr(each, "submit_command")]
    commands = {Path(shlex.split(job.submit_command)[0]).name for job in jobs}
    deadline = time.monotonic() + _SUBMITTED
    while commands and (found := _running(commands)):
        if time.monotonic() > deadline:
            for each in found:
                with suppress(psutil.Error):
                    each.kill()
        time.sleep(_LOOK)


def _running(commands: set[str]) -> list[psutil.Process]:
    """Return the processes that this one has started by such names, and what those started."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if commands & {Path(word).name for word in child.cmdline()[:2]}:  # one may be a shell
                found += [child, *child.children(recursive=True)]
    return found
