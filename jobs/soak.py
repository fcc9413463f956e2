"""An hour on one cluster: python jobs/soak.py --minutes 60.

Fits with checkpoints, predictions and deaths of a worker, over and over on the same two workers;
one of them is never killed.  Says every minute what the processes hold, and fails if memory, open
files, threads or temporary files in the last quarter are more than in the second one.

What counts is memory that is in use: before it is measured, heaps give back what they hold free.
"""

import argparse
import ctypes
import gc
import os
import random
import signal
import statistics
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
from chaos import SHARD_ROWS, write_rows

import streamkern

# By how much the last quarter may be above the second one.
ALLOWED = {"client MB": 1.05, "worker MB": 1.05, "open files": 1.0, "threads": 1.0, "files": 1.0}


def trim_heap() -> None:
    """Give back to the system what was freed; glibc keeps pages that it could give back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def held(survivor: int, folder: Path) -> dict[str, float]:
    """Return what this process, the worker that is never killed, and the folder hold."""
    client, worker = psutil.Process(), psutil.Process(survivor)
    return {
        "client MB": client.memory_info().rss / 1e6,
        "worker MB": worker.memory_info().rss / 1e6,
        "open files": client.num_fds() + worker.num_fds(),
        "threads": client.num_threads() + worker.num_threads(),
        "files": sum(len(names) for _, _, names in os.walk(folder)),
    }


def forget_groups(dask_scheduler: Any) -> None:
    """Drop what Dask's scheduler keeps of tasks that are long over.

    It keeps their groups for ever, which is Dask's own and known there (dask/distributed issue
    7977); without them, what grows is ours.
    """
    for span in dask_scheduler.extensions["spans"].spans.values():
        span.groups = {group for group in span.groups if not group.done}


class Deaths(threading.Thread):
    """Kills the workers of this process at random moments, but one.

    Parameters
    ----------
    survivor : int
        The process that is left alone.
    life : float
        Mean seconds between two kills.
    """

    def __init__(self, survivor: int, life: float) -> None:
        super().__init__(daemon=True)
        self.survivor = survivor
        self.life = life
        self.count = 0
        self.over = threading.Event()

    def run(self) -> None:
        """Kill until it is over."""
        chance = random.Random(0)  # noqa: S311  not for secrets
        while not self.over.wait(chance.expovariate(1.0 / self.life)):
            for each in psutil.Process().children():
                with suppress(psutil.Error):  # it has died already
                    if each.pid != self.survivor and "spawn_main" in " ".join(each.cmdline()):
                        each.send_signal(signal.SIGKILL)
                        self.count += 1


def one_round(folder: Path, expected: Any) -> Any:
    """Fit, save, predict and check that nothing differs."""
    model = streamkern.RandomFeatureRidge(n_components=256, alpha="cv")
    source = streamkern.open_hdf5(folder / "rows.h5")
    model.fit(source, checkpoint=folder / "saved")
    model.save(folder / "model.h5", force=True)
    found = streamkern.load(folder / "model.h5")
    found.predict_to_hdf5(source, folder / "predictions.h5", force=True)
    for path in (folder / "saved").iterdir():
        path.unlink()
    if expected is not None and not np.array_equal(model.coef_, expected):
        raise SystemExit("the coefficients differ")
    return model.coef_


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--life", type=float, default=20.0, help="mean seconds between two kills")
    given = parser.parse_args()
    seen: list[dict[str, float]] = []
    rounds = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Dask keeps for an hour, by default, what happened to a worker that died.
        dask.config.set(
            {"temporary-directory": name, "distributed.scheduler.events-cleanup-delay": "1 minute"}
        )
        tempfile.tempdir = name
        write_rows(folder / "rows.h5", given.shards * SHARD_ROWS, 16)
        with streamkern.connect(n_workers=2) as client:
            client.wait_for_workers(2, timeout=60)
            address, survivor = min(client.run(os.getpid).items(), key=lambda each: each[1])
            deaths = Deaths(survivor, given.life)
            deaths.start()
            expected, begun, minute = None, time.monotonic(), -1
            while (passed := time.monotonic() - begun) < 60.0 * given.minutes:
                expected = one_round(folder, expected)
                client.run_on_scheduler(forget_groups)
                trim_heap()
                client.run(trim_heap, workers=[address])
                rounds += 1
                seen.append({"seconds": passed, **held(survivor, folder)})
                if passed // 60 > minute:
                    minute = passed // 60
                    numbers = ", ".join(f"{key} {seen[-1][key]:,.0f}" for key in ALLOWED)
                    print(
                        f"{passed / 60:5.1f} min, {rounds} rounds, {deaths.count} kills: {numbers}",
                        flush=True,
                    )
            deaths.over.set()
    quarter = len(seen) // 4
    failed = quarter < 1
    for key, allowed in ALLOWED.items():
        # Counts are less while a worker is away, so the largest tell; of memory, the usual one.
        usual = statistics.median if key.endswith("MB") else max
        before, after = (
            usual([each[key] for each in seen[part * quarter : (part + 1) * quarter]])
            for part in (1, 3)
        )
        grew = after > allowed * before
        failed |= grew
        print(
            f"{key}: {before:,.1f} in the second quarter, {after:,.1f} in the last{' GREW' * grew}"
        )
    print(f"{rounds} rounds of a fit and a prediction, {deaths.count} workers killed")
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
