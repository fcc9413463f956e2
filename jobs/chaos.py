"""A fit whose workers die all the time: python jobs/chaos.py --life 3.

First quietly, then with workers that are asked to leave, killed, or made to read where there is no
memory, each of them after a random time; with a checkpoint and without.  Says how many died, what
that cost, and whether the coefficients are the same to the last bit.  Fails if they are not, or if
fewer died than asked for, or if a fit with a checkpoint did not end.  With --metric a metric is
learnt first; with --gradients the quiet run's model is fitted once, and what workers die in is the
pass of its gradients over all rows, which has no checkpoint.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import re
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

import streamkern
from streamkern.errors import StreamkernError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client

SHARD_ROWS = 32_768
# What a fit without a checkpoint may stop with.
SENTENCE = re.compile(
    r"the workers that ran .* died|begun .* workers died|has had no workers|lost its workers"
)


def leave(dask_worker: Any) -> None:
    dask_worker.loop.add_callback(dask_worker.close_gracefully, restart=True)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def segfault() -> None:
    ctypes.string_at(0)


WAYS = {"asked to leave": leave, "killed": killed, "segmentation fault": segfault}


class Chaos:
    """Ends workers at random while it is entered.

    Parameters
    ----------
    client : Client
    life : float
        Mean seconds that a worker lives.
    seed : int
    """

    def __init__(self, client: Client, life: float, seed: int = 0) -> None:
        self.client = client
        self.life = life
        self.random = random.Random(seed)  # noqa: S311  not for secrets
        self.tried: Counter[str] = Counter()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Chaos:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the workers alone."""
        self._over.set()
        self._thread.join()

    def n_deaths(self) -> int:
        """Return how many workers the scheduler has seen go."""

        # Counted there, because not all of these events can be sent.
        def counted(dask_scheduler: Any) -> int:
            events = dask_scheduler.get_events("all")
            return sum(event.get("action") == "remove-worker" for _, event in events)

        return int(self.client.run_on_scheduler(counted))

    def _run(self) -> None:
        wait = self.life / 8  # the first dies soon, so that short runs see a death as well
        while not self._over.wait(wait):
            workers = list(self.client.scheduler_info(n_workers=-1)["workers"])
            wait = self.random.expovariate(max(len(workers), 1) / self.life)
            if not workers:
                continue
            way = self.random.choice(list(WAYS))
            victim = self.random.choice(workers)
            threading.Thread(target=self._end, args=(WAYS[way], victim), daemon=True).start()
            self.tried[way] += 1

    def _end(self, function: Any, victim: str) -> None:
        with suppress(OSError, KeyError, ValueError):  # it may have died already
            self.client.run(function, workers=[victim], on_error="ignore")


def write_rows(path: Path, n_rows: int, n_inputs: int) -> None:
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        X = file.create_dataset("X", (n_rows, n_inputs), "f4", chunks=(4096, n_inputs))
        y = file.create_dataset("y", (n_rows,), "f8", chunks=(4096,))
        for start in range(0, n_rows, SHARD_ROWS):
            rows = rng.standard_normal((min(SHARD_ROWS, n_rows - start), n_inputs), dtype="f4")
            X[start : start + len(rows)] = rows
            y[start : start + len(rows)] = np.sin(rows[:, 0]) * rows[:, 1]


def runs(given: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what came of the quiet run, and of those with deaths."""
    path = folder / "rows.h5"
    write_rows(path, given.shards * SHARD_ROWS, given.inputs)
    first = None
    for name, life, checkpoint in (
        ("quiet", 0.0, None),
        ("quiet, checkpoint", 0.0, folder / "quiet"),
        ("deaths, checkpoint", given.life, folder / "saved"),
        ("deaths", given.life, None),
    ):
        model = streamkern.RandomFeatureRidge(
            n_components=given.components, alpha="cv", metric=given.metric, solver=given.solver
        )
        found: dict[str, Any] = {
            "run": name,
            "deaths": 0,
            "tried": Counter(),
            "coef": None,
            "error": None,
        }
        found |= {"life": life, "checkpoint": bool(checkpoint) and not given.gradients}
        with streamkern.connect(n_workers=2) as client:
            chaos = Chaos(client, life) if life else None
            begun = time.perf_counter()
            try:
                if chaos:
                    chaos.__enter__()
                rows = streamkern.open_hdf5(path)
                if given.gradients and first:
                    model = first
                else:
                    model.fit(rows, checkpoint=checkpoint)
                first = first or model
                coef = model.gradient_outer_product(rows) if given.gradients else model.coef_
                found |= {"coef": coef, "report": model.report_}
            except StreamkernError as error:
                found["error"] = str(error)
            finally:
                found["seconds"] = time.perf_counter() - begun
                if chaos:
                    chaos.__exit__()
                    found |= {"deaths": chaos.n_deaths(), "tried": chaos.tried}
        yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=200)
    parser.add_argument("--inputs", type=int, default=16)
    parser.add_argument("--components", type=int, default=512)
    parser.add_argument("--life", type=float, default=3.0, help="mean seconds a worker lives")
    parser.add_argument("--deaths", type=int, default=15, help="fewer than these are a failure")
    parser.add_argument("--metric", help="learnt before the fit, as --metric of `fit`")
    parser.add_argument("--solver", default="auto", help="as --solver of `fit`")
    parser.add_argument("--gradients", action="store_true", help="of a model over all rows instead")
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        quiet = None
        for found in runs(given, Path(folder)):
            quiet = quiet or found
            tried = ", ".join(f"{count} {way}" for way, count in found["tried"].items())
            print(f"{found['run']}: {found['seconds']:.1f} s, {found['deaths']} deaths ({tried})")
            failed |= found["life"] > 0 and found["deaths"] < given.deaths
            if found["error"]:
                failed |= found["checkpoint"] or not SENTENCE.search(found["error"])
                print(f"  stopped: {found['error']}", flush=True)
                continue
            report = found["report"]
            same = np.array_equal(found["coef"], quiet["coef"])
            failed |= not same or report["rows"] != given.shards * SHARD_ROWS
            print(
                f"  {report['rows']:,} rows, {report['retried_shards']} shards retried; the same "
                f"bits: {same}; {found['seconds'] / quiet['seconds']:.2f} x the quiet run",
                flush=True,
            )
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
