"""What watching a fit costs: python jobs/monitoring_cost.py --rows 1000000 --components 2048.

Fits on two workers with everything that watches it (lines on standard error, measurements and
validation in tasks, the dashboard's page kept up to date for one browser) and with none of it, in
turns.  Says what that costs of the time that passes, in which the browser runs too, on the same
cores; and of the processor time of the fit, its scheduler and its workers, which other load on the
machine disturbs least.  Fails where the latter is above 1%.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import dask
import psutil
from chaos import write_rows

import streamkern

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 0.01
# What a browser is to the scheduler: a session that is sent every change of the page.
_SESSION = """
import sys, time
from bokeh.client import pull_session
session = pull_session(url=sys.argv[1])
print("open", flush=True)
while True:
    session.force_roundtrip()
    time.sleep(1.0)
"""


@contextmanager
def watched(page: str) -> Iterator[None]:
    """Keep a session of the page open, in a process of its own."""
    with ExitStack() as stack:
        command = [sys.executable, "-c", _SESSION, page]
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
        stack.callback(process.kill)
        if process.stdout.readline() != b"open\n":
            raise SystemExit("the page does not open")
        stack.enter_context(streamkern.progress())
        yield


def processor_seconds(pids: list[int]) -> float:
    """Return the processor time that processes have taken so far."""
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def cost(alone: list[float], watched: list[float]) -> float:
    """Return what more is taken when watched, as a part: the median of pairs."""
    return statistics.median(b / a - 1 for a, b in zip(alone, watched, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--inputs", type=int, default=90)
    parser.add_argument("--components", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_rows(Path(name) / "rows.h5", given.rows, given.inputs)
        source = streamkern.open_hdf5(Path(name) / "rows.h5")
        seconds: dict[bool, list[float]] = {False: [], True: []}
        processor: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(given.repeats):
            for is_watched in (False, True):
                with (
                    dask.config.set({"streamkern.monitoring": is_watched}),
                    streamkern.connect(n_workers=2) as client,
                    ExitStack() as stack,
                ):
                    if is_watched:
                        stack.enter_context(watched(client.dashboard_link))
                    model = streamkern.RandomFeatureRidge(n_components=given.components)
                    pids = [os.getpid(), *client.run(os.getpid).values()]
                    begun, before = time.perf_counter(), processor_seconds(pids)
                    model.fit(source)
                    seconds[is_watched].append(time.perf_counter() - begun)
                    processor[is_watched].append(processor_seconds(pids) - before)
                print(
                    f"{'watched' if is_watched else 'alone'}: {seconds[is_watched][-1]:.2f} s, "
                    f"{processor[is_watched][-1]:.2f} s of processors",
                    flush=True,
                )
    found = cost(processor[False], processor[True])
    print(
        f"watched, medians of {given.repeats} pairs: {cost(*seconds.values()):+.2%} of the time, "
        f"{found:+.2%} of processor time"
    )
    raise SystemExit(found > _MOST)


if __name__ == "__main__":
    main()
