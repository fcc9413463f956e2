"""What watching a fit costs: python jobs/monitoring_cost.py --rows 1000000 --components 2048.

Fits on two workers with everything that watches it (lines on standard error, measurements and
validation in tasks, the dashboard's page kept up to date for one browser, metrics that are scraped
every five seconds) and with none of it, in turns.  Fails above 1% of the whole fit.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import dask
from chaos import write_rows

import streamkern

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCRAPE = 5.0
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
_SCRAPER = """
import sys, time, urllib.request
while True:
    urllib.request.urlopen(sys.argv[1]).read()
    time.sleep(float(sys.argv[2]))
"""


@contextmanager
def watched(root: str) -> Iterator[None]:
    """Keep a session of the page and a scraper of the metrics open, in processes of their own."""
    session = [sys.executable, "-c", _SESSION, f"{root}/streamkern"]
    scraper = [sys.executable, "-c", _SCRAPER, f"{root}/metrics", str(_SCRAPE)]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            for command in (session, scraper)
        ]
        for process in processes:
            stack.callback(process.kill)
        if processes[0].stdout.readline() != b"open\n":
            raise SystemExit("the page does not open")
        stack.enter_context(streamkern.progress())
        yield


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
        for _ in range(given.repeats):
            for is_watched, found in seconds.items():
                with (
                    dask.config.set({"streamkern.monitoring": is_watched}),
                    streamkern.connect(n_workers=2) as client,
                    ExitStack() as stack,
                ):
                    if is_watched:
                        stack.enter_context(watched(client.dashboard_link.removesuffix("/status")))
                    model = streamkern.RandomFeatureRidge(n_components=given.components)
                    begun = time.perf_counter()
                    model.fit(source)
                    found.append(time.perf_counter() - begun)
                print(f"{'watched' if is_watched else 'alone'}: {found[-1]:.2f} s", flush=True)
    alone, with_it = (statistics.median(seconds[kind]) for kind in (False, True))
    print(f"{alone:.2f} s alone, {with_it:.2f} s watched: {with_it / alone - 1:+.2%}")
    raise SystemExit(with_it > 1.01 * alone)


if __name__ == "__main__":
    main()
