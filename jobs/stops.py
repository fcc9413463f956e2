"""A fit that is stopped at random moments, and goes on: python jobs/stops.py --times 20.

The program is killed, with its workers or without, or its scheduler is, or it gets SIGTERM or
Ctrl-C, each so many times at a random moment of a fit on two workers with a checkpoint.  Then the
same command is run again to its end.  Says how many shards it computed that had been computed
before, against the group of every worker that may be lost, and whether the coefficients are the
same to the last bit.  Fails where that, the exit status or the sentence is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np
import psutil
from chaos import SHARD_ROWS, write_rows

from streamkern.cli import main as commands
from streamkern.runtime.events import observed

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = 2
_LOST = "lost its workers or its scheduler|no Dask scheduler answers"
INTERRUPTED = r"Error: interrupted; the output was not written; run the same command again"


class Kind(NamedTuple):
    """A way to stop a fit: by which signal, and with which status and sentence it must end."""

    number: signal.Signals
    status: int
    sentence: str
    outside: bool = False


KINDS = {
    "client killed": Kind(signal.SIGKILL, -9, ""),
    "client killed, its workers go on": Kind(signal.SIGKILL, -9, "", outside=True),
    "scheduler killed": Kind(signal.SIGKILL, 1, _LOST, outside=True),
    "SIGTERM": Kind(signal.SIGTERM, 143, INTERRUPTED),
    "Ctrl-C": Kind(signal.SIGINT, 130, INTERRUPTED),
}


class Log:
    """Writes down the shards that it hears of, a line when one is done first.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.labels: dict[str, str] = {}
        self.done: set[tuple[str, int]] = set()

    def __call__(self, event: dict[str, Any]) -> None:
        """Note a pass, or write down a shard that is done."""
        if event["kind"] == "pass begun":
            self.labels[event["pass"]] = event["label"]
        elif event["kind"] == "shard done":
            shard = self.labels[event["pass"]], event["shard"]
            if shard not in self.done:
                self.done.add(shard)
                os.write(self.file, f"{' '.join(map(str, shard))}\n".encode())


def shards_in(log: Path) -> int:
    """Return how many shards a log of a run that resumed nothing has."""
    return len(log.read_text().splitlines()) if log.exists() else 0


class Fit:
    """The command that is stopped, and what it is compared with.

    Parameters
    ----------
    folder : Path
    n_shards, n_components : int
    """

    def __init__(self, folder: Path, n_shards: int, n_components: int) -> None:
        self.folder = folder
        self.log, self.model = folder / "log", folder / "model.h5"
        write_rows(folder / "rows.h5", n_shards * SHARD_ROWS, 16)
        self.options = ("--components", str(n_components), "--alpha", "cv", "--quiet", "--json")
        begun = time.monotonic()
        self.finished(self.started("--workers", str(WORKERS)))
        self.seconds = time.monotonic() - begun
        self.n_shards = self.log.read_text().count("moments")
        self.coef = self.coefficients()
        self.model.unlink()

    def started(self, *options: str) -> subprocess.Popen[str]:
        """Start the command."""
        arguments = ["fit", self.folder / "rows.h5", "--out", self.model, *self.options, *options]
        return subprocess.Popen(
            [sys.executable, __file__, "--child", self.log, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @staticmethod
    def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
        """Return what a command that must succeed reports."""
        output, errors = process.communicate(timeout=600)
        if process.returncode:
            raise SystemExit(f"the fit failed: {errors}")
        report: dict[str, Any] = json.loads(output.splitlines()[-1])
        return report

    def coefficients(self) -> Any:
        """Return those of the model."""
        with h5py.File(self.model) as file:
            return file["coef"][()]


class Scheduler:
    """A scheduler and workers as processes of their own, while it is entered.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.log = folder / "cluster.log"

    def __enter__(self) -> Scheduler:
        """Start them."""
        host = ("--host", "127.0.0.1", "--no-dashboard")
        at = ("--scheduler-file", str(self.file))
        self.processes = [self._started("scheduler", *at, "--port", "0", *host)]
        while not self.file.exists():
            time.sleep(0.05)
        self.processes += [
            self._started("worker", *at, *host, "--nthreads", "1", "--memory-limit", "3GB")
            for _ in range(WORKERS)
        ]
        return self

    def _started(self, *arguments: str) -> psutil.Popen:
        with self.log.open("a") as log:
            return psutil.Popen(
                [sys.executable, "-m", "dask", *arguments],
                stdout=log,
                stderr=log,
                cwd=self.file.parent,
            )

    def __exit__(self, *_: object) -> None:
        """End them."""
        for process in self.processes:
            if process.is_running():
                for each in [*process.children(recursive=True), process]:
                    each.kill()
            process.wait()
        self.file.unlink()


def stopped_and_finished(fit: Fit, kind: Kind, seconds: float) -> Iterator[Any]:
    """Yield how a fit ended that was stopped after some seconds, and then its report.

    The report is that of the same command, on the same cluster where that still is.
    """
    checkpoint = ("--checkpoint", str(fit.folder / "saved"))
    with ExitStack() as stack:
        place = own = ("--workers", str(WORKERS))
        if kind.outside:
            cluster = stack.enter_context(Scheduler(fit.folder))
            place = ("--scheduler-file", str(cluster.file))
        process: Any = fit.started(*checkpoint, *place)
        victim = cluster.processes[0] if kind.outside and kind.status > 0 else process
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            victim.send_signal(kind.number)
        _, errors = process.communicate(timeout=120)
        yield process.returncode, errors
        again = place if victim is process else own
        yield fit.finished(fit.started(*checkpoint, *again))


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with observed(Log(Path(sys.argv[2]))):
            commands(sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--shards", type=int, default=60)
    parser.add_argument("--components", type=int, default=512)
    parser.add_argument("--kinds", default=";".join(KINDS), help="with ; between them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--until", type=float, default=1.0, help="of a quiet run, the last moment")
    given = parser.parse_args()
    chance = random.Random(given.seed)  # noqa: S311  not for secrets
    failed = False
    with tempfile.TemporaryDirectory() as name:
        fit = Fit(Path(name), given.shards, given.components)
        group = math.isqrt(fit.n_shards - 1) + 1
        print(
            f"quiet: {fit.seconds:.1f} s, {fit.n_shards} shards in groups of {group}, "
            f"{WORKERS} workers",
            flush=True,
        )
        for kind in given.kinds.split(";"):
            way, again, same, early, spoilt = KINDS[kind], [], 0, 0, []
            for _ in range(given.times):
                steps = stopped_and_finished(
                    fit, way, chance.uniform(0.2, given.until) * fit.seconds
                )
                status, errors = next(steps)
                done = shards_in(fit.log)
                if fit.model.exists():  # before it could be stopped
                    fit.model.unlink()
                    early += 1
                    done = 0
                elif status != way.status or not re.search(way.sentence, errors):
                    spoilt.append(f"{status}: {errors}")
                if "Traceback" in errors:
                    spoilt.append(errors)
                report = next(steps)
                steps.close()
                again.append(max(done - report["resumed_shards"], 0))
                same += np.array_equal(fit.coefficients(), fit.coef)
                fit.model.unlink()
                fit.log.unlink()
                left = [path.name for path in Path(name).rglob(".*.partial")]
                left += [path.name for path in Path(name).glob("saved")]
                if left:
                    spoilt.append(f"left behind: {left}")
            most = max(again)
            print(
                f"{kind}: {given.times} times ({early} after its end); the same bits {same} times; "
                f"shards computed again: {np.mean(again):.1f} in the mean, {most} at most, "
                f"of {WORKERS * group} allowed; {len(spoilt)} with something wrong",
                flush=True,
            )
            for each in spoilt:
                print(f"  {each}")
            failed |= bool(spoilt) or same < given.times or most > WORKERS * group
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
