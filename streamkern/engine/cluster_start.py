"""Start of a cluster that Ctrl-C and SIGTERM may interrupt; what there is of it closes then."""

from __future__ import annotations

import asyncio
import inspect
import os
import shlex
import signal
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from distributed import Client, SpecCluster, Status

from streamkern.engine.cluster_defaults import nanny_variables
from streamkern.runtime.signals import held, is_asked_to_stop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from functools import partial

# Seconds between two looks; in which a start may still end by itself, a job be submitted, and all
# be closed.
_LOOK, _SOON, _SUBMITTED, _END = 0.1, 1.0, 5.0, 10.0


def start_cluster(stack: ExitStack, start: partial[Any]) -> Client:
    """Start a cluster and return a client of it; what they change or run ends with the stack."""
    # Nannies change this process's environment, which moreover outranks what they are told.
    before = {name: os.environ.pop(name, None) for name in nanny_variables()}
    stack.callback(_restore, before)
    with held(), _ctrl_c_blocked():
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


@contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Let Ctrl-C wait; processes and threads that start meanwhile leave it to this one for ever.

    A terminal sends it to all of them.
    """
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)


def _started(start: partial[Any]) -> Any:
    """Return what starts in a thread beside this one; raise KeyboardInterrupt if a signal waits."""
    before, over = set(SpecCluster._instances), threading.Event()  # noqa: SLF001
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
        for cluster in {*begun, *SpecCluster._instances} - before:  # noqa: SLF001
            _end_submissions(cluster)
            with suppress(Exception):  # of what was hardly begun
                loop = cluster.loop.asyncio_loop
                asyncio.run_coroutine_threadsafe(_close(cluster), loop).result(2 * _END)
                cluster._loop_runner.stop()  # noqa: SLF001
        raise
    if errors:
        raise errors[0]
    return begun[0]


async def _close(cluster: Any) -> None:
    """Close what there is of a cluster, which its own way to close does not know of yet."""
    parts = list(getattr(cluster, "_created", ()))
    if isinstance(cluster, SpecCluster):
        closings = [part.close() for part in (*parts, cluster.scheduler) if part is not None]
    else:
        closings = [cluster._close()]  # noqa: SLF001
    closed, deadline = asyncio.gather(*closings, return_exceptions=True), time.monotonic() + _END
    while not closed.done() and time.monotonic() < deadline:
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
    jobs = [each for each in getattr(cluster, "_created", ()) if hasattr(each, "submit_command")]
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
