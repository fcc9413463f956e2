"""A pass on up to a thousand workers: what the scheduler, the merges and the end of it take.

    python benchmarks/scale.py pass --workers 1000 --shards 10000 --seconds 10
    python benchmarks/scale.py pass --workers 1000 --shards 10000 --deaths 50 --late 500 --slow 20
    python benchmarks/scale.py pass --workers 64 --shards 1000 --megabytes 1074 --bandwidth 1250
    python benchmarks/scale.py adapt --most 64

The scheduler, the workers and the client are Dask's own.  Workers share a few processes, so that a
thousand have room; those that are to die have one each, and are killed.  The features of a shard
are replaced by a sleep; its sums are real, of 32 features, and carry so many megabytes that are
only said to be there.  A merge sleeps for what these would take to come from another worker, and to
be added.  The same bits are expected whatever the workers, so a hash of the sums is told.
"""

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import click
import dask
import numpy as np
import psutil
from distributed import Client, LocalCluster, Worker, get_worker

import streamkern
from streamkern.engine.reduction import accumulate
from streamkern.monitor.job_text import duration
from streamkern.parameters.cost_estimate import ClusterTime, cluster_time
from streamkern.parameters.planning import plan_system
from streamkern.sources import Block, Reader, Segment, Shard, Source
from streamkern.statistics import Statistic
from streamkern.statistics.declared_sums import maximum, merged_by, minimum, total
from streamkern.storage.checkpoints import opened_checkpoint

FEATURES, BLOCKS = 32, 4
# Seconds in which the scheduler is looked at before the pass.
RESTING = 15
# Workers of one process, which is kept from measuring itself all the time.
HOSTED = 50
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "20s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "10s",
    "DASK_DISTRIBUTED__ADMIN__TICK__CYCLE": "10s",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10",  # as streamkern's own clusters have it
    "DASK_LOGGING__DISTRIBUTED": "critical",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONPATH": str(Path(__file__).parent),
}


def here() -> str:
    return str(get_worker().address)


class Stated:
    """Bytes that are only said to be somewhere."""

    def __init__(self, size: int, network: tuple[float, float, float], where: str = "") -> None:
        self.size, self.network, self.where = size, network, where

    def __sizeof__(self) -> int:
        return self.size

    def merged(self, other: "Stated") -> "Stated":
        """Sleep for what it takes to bring both here, and to add them."""
        latency, bandwidth, adding = self.network
        coming = sum(each.where != here() for each in (self, other))
        time.sleep(coming * (latency + self.size / bandwidth) + self.size / adding)
        return Stated(self.size, self.network, here())


def both(mine: Stated | None, theirs: Stated | None) -> Stated | None:
    return mine.merged(theirs) if mine and theirs else None


class Sums(Statistic):
    """Products of features of rows, and when and how long somebody was at it."""

    seconds: float
    size: int
    network: tuple[float, float, float]
    gram: Any = total(FEATURES, FEATURES)
    busy: float = total()
    first: float = minimum()
    last: float = maximum()
    stated: Any = merged_by(both)

    def update(self, blocks: Iterable[Block]) -> None:
        begun = time.time()
        slow = getattr(get_worker(), "slow", 1.0)
        for block in blocks:
            self.gram += block.X.T @ block.X
            time.sleep(self.seconds * slow * len(block) / BLOCKS)
        self.first, self.last = begun, time.time()
        self.busy += self.last - begun
        if self.size:
            self.stated = Stated(self.size, self.network, here())


class Rows(Source):
    """Rows that are drawn where they are read."""

    n_features, n_targets, target_ndim, dtype = FEATURES, 1, 1, np.dtype(float)

    def __init__(self, n_shards: int) -> None:
        self.n_samples = n_shards * BLOCKS

    def segments(self) -> list[Segment]:
        return [Segment(0, self.n_samples, 1)]

    def reader(self, shard: Shard) -> "Drawn":
        return Drawn(shard)

    def locate(self, row: int) -> str:
        return f"row {row}"

    def describe(self) -> dict[str, Any]:
        return {"rows": self.n_samples}


class Described(Rows):
    """Rows that are nowhere, to be planned for."""

    def __init__(self, n_samples: int, n_features: int) -> None:
        self.n_samples, self.n_features = n_samples, n_features


class Drawn(Reader):
    def __init__(self, shard: Shard) -> None:
        self.shard = shard

    def blocks(self, n_rows: int) -> Iterator[Block]:
        for start in range(self.shard.start, self.shard.stop, n_rows):
            X = np.random.default_rng(start).standard_normal((n_rows, FEATURES))
            yield Block(X, X[:, :1], start)


@click.group(help=__doc__, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    pass


@main.command(hidden=True)
@click.argument("address")
@click.argument("number", type=int)
@click.argument("slow", type=float)
def workers(address: str, number: int, slow: float) -> None:
    """Be so many workers of one thread, until the scheduler ends."""

    async def serve() -> None:
        made = []
        for _ in range(number):
            worker = Worker(address, nthreads=1, memory_limit=0, dashboard=False)
            worker.slow = slow
            made.append(await worker)
        await asyncio.gather(*(worker.finished() for worker in made))

    asyncio.run(serve())


def started(stack: ExitStack, *command: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, *command], env={**os.environ, **QUIET})
    stack.callback(process.kill)
    return process


def state() -> dict[str, float]:
    """Return what the process has taken so far, which is the scheduler's."""
    process = psutil.Process()
    times = process.cpu_times()
    return {"seconds": times.user + times.system, "bytes": process.memory_info().rss}


class Watched(Thread):
    """Looks at the scheduler's memory while a pass runs, and kills workers on the way."""

    def __init__(self, pid: int, mortal: list[Any], seconds: float) -> None:
        super().__init__(daemon=True)
        self.process, self.peak, self.ended = psutil.Process(pid), 0, Event()
        self.busy: list[tuple[float, float]] = []  # times, and per cent of all cores until then
        draws = np.random.default_rng(0)
        self.deaths = sorted((draws.uniform(0.1, 0.9) * seconds, each.pid) for each in mortal)

    def run(self) -> None:
        begun = time.monotonic()
        while not self.ended.wait(0.2):
            self.peak = max(self.peak, self.process.memory_info().rss)
            self.busy.append((time.time(), psutil.cpu_percent()))
            while self.deaths and time.monotonic() - begun > self.deaths[0][0]:
                os.kill(self.deaths.pop(0)[1], signal.SIGKILL)


@main.command("pass")
@click.option("--workers", "n_workers", default=64, help="Workers of one thread.")
@click.option("--shards", "n_shards", default=1000)
@click.option("--seconds", default=1.0, help="Of a shard.")
@click.option("--megabytes", default=0.0, help="That sums are said to have.")
@click.option("--bandwidth", default=1250.0, help="Of a link, in megabytes a second.")
@click.option("--latency", default=0.001, help="Of a link, in seconds.")
@click.option("--adding", default=2000.0, help="Megabytes of sums that are added a second.")
@click.option("--deaths", default=0, help="Workers that are killed on the way.")
@click.option("--late", default=0, help="Workers that come when a third of the time is over.")
@click.option("--slow", default=0, help="Workers that take three times as long.")
@click.option("--checkpoint", is_flag=True, help="Save sums on the way.")
@click.option("--monitored/--unmonitored", default=True, help="Whether tasks tell of themselves.")
@click.option("--json", "as_json", is_flag=True)
def one_pass(as_json: bool, **options: Any) -> None:
    """Run one pass, and print what it took."""
    found = options | measured(**options)
    if as_json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:36} {value if isinstance(value, str) else f'{value:,.4g}'}", flush=True)


def measured(
    *,
    n_workers: int,
    n_shards: int,
    seconds: float,
    megabytes: float,
    bandwidth: float,
    latency: float,
    adding: float,
    deaths: int,
    late: int,
    slow: int,
    checkpoint: bool,
    monitored: bool,
) -> dict[str, Any]:
    at_once = n_workers - late - slow - deaths
    expected = n_shards * seconds / n_workers
    begun = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        file = folder / "scheduler.json"
        scheduler = started(
            stack, "-m", "distributed.cli.dask_scheduler", "--port=0",
            "--dashboard-address=127.0.0.1:0", f"--scheduler-file={file}",
        )  # fmt: skip
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]

        def begin(number: int, factor: float = 1.0) -> None:
            for first in range(0, number, HOSTED):
                several = str(min(HOSTED, number - first))
                started(stack, __file__, "workers", address, several, str(factor))

        begin(at_once)
        begin(slow, 3.0)
        mortal = [started(stack, __file__, "workers", address, "1", "1.0") for _ in range(deaths)]
        client = stack.enter_context(streamkern.connect(scheduler=address, timeout=900))
        client.wait_for_workers(n_workers - late, timeout=600)
        resting = client.run_on_scheduler(state)
        time.sleep(RESTING)
        before = client.run_on_scheduler(state)
        idle = (before["seconds"] - resting["seconds"]) / RESTING
        waited = time.monotonic() - begun
        told = f"{n_workers - late} workers after {waited:.0f} s, shown at {client.dashboard_link}"
        print(told, file=sys.stderr)
        watched = Watched(scheduler.pid, mortal, expected)
        watched.start()
        if late:
            timer = Thread(target=lambda: (time.sleep(expected / 3), begin(late)), daemon=True)
            timer.start()
        sums = Sums(seconds, int(megabytes * 1e6), (latency, bandwidth * 1e6, adding * 1e6))
        called = time.time()
        with dask.config.set({"streamkern.monitoring": monitored}):
            held = opened_checkpoint(folder / "saved", {}) if checkpoint else nullcontext()
            saved = stack.enter_context(held)
            cut = {"shard_rows": BLOCKS, "block_rows": BLOCKS, "read_rows": 1}
            result = accumulate(Rows(n_shards), sums, **cut, checkpoint=saved)
        ended = time.time()
        watched.ended.set()
        after = client.run_on_scheduler(state)
        moved = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
        at_end = [busy for when, busy in watched.busy if when > result.statistic.last]
        made, taken = result.statistic, after["seconds"] - before["seconds"]
        return {
            "elapsed, s": ended - called,
            "to the first shard, s": made.first - called,
            "after the last shard, s": ended - made.last,
            "cores of this machine busy then, %": float(np.mean(at_end or [0.0])),
            "idle workers": 1 - made.busy / (n_workers * (made.last - made.first)),
            "scheduler, ms a shard": 1e3 * (taken - idle * (ended - called)) / n_shards,
            "scheduler, share of time": taken / (ended - called),
            "of that without a pass": idle,
            "scheduler before, MB": before["bytes"] / 1e6,
            "scheduler at most, MB": watched.peak / 1e6,
            "moved, GB": sum(moved.values()) / 1e9,
            "moved from one worker, GB": max(moved.values()) / 1e9,
            "shards read again": result.retried_shards,
            "bits": hashlib.sha256(made.gram.tobytes()).hexdigest()[:12],
        }


@main.command()
@click.option("--rows", default=1e12)
@click.option("--inputs", default=20)
@click.option("--components", default=16384)
@click.option("--speed", default=100e9, help="Multiply-adds a second of a worker.")
def model(rows: float, inputs: int, components: int, speed: float) -> None:
    """Say by the formulas of a plan what a fit takes on more and more workers."""
    source = Described(int(rows), inputs)
    print("| workers | " + " | ".join(ClusterTime._fields) + " | in all | worker-hours |")
    for n in (1, 2, 4, 8, 16, 64, 256, 1000, 4000, 16000):
        plan = plan_system(source, components, n_folds=5, n_workers=n, allowed_bytes=1 << 40)
        parts = cluster_time(plan, speed)
        told = [duration(each) for each in (*parts, parts.total)]
        print(f"| {n:,} | {' | '.join(told)} | {n * parts.total / 3600:,.0f} |", flush=True)


@main.command()
@click.option("--most", default=64, help="Workers, of threads of this process.")
@click.option("--shards", "n_shards", default=1000)
@click.option("--seconds", default=1.0, help="Of a shard.")
def adapt(most: int, n_shards: int, seconds: float) -> None:
    """Have Dask start workers for a pass and end them, and compare with two workers."""
    rows, network = Rows(n_shards), (0.0, 1.0, 1.0)
    cut = {"shard_rows": BLOCKS, "block_rows": 1}
    options: Any = {"processes": False, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(n_workers=0, **options) as cluster, Client(cluster) as client:
        cluster.adapt(minimum=0, maximum=most, interval="1s", wait_count=3)
        counts = [0]
        Thread(target=count_workers, args=(client, counts), daemon=True).start()
        adapted = accumulate(rows, Sums(seconds, 0, network), **cut)
        deadline = time.monotonic() + 60
        while counts[-1] and time.monotonic() < deadline:
            time.sleep(1)
    print(f"workers: {counts[0]} to {max(counts)}, and {counts[-1]} afterwards")
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster):
        plain = accumulate(rows, Sums(0.0, 0, network), **cut)
    print(f"{adapted.n_rows:,} of {rows.n_samples:,} rows, {adapted.retried_shards} shards again")
    same = np.array_equal(adapted.statistic.gram, plain.statistic.gram)
    print("the same bits as of two workers" if same else "OTHER BITS")


def count_workers(client: Client, counts: list[int]) -> None:
    while client.status == "running":
        counts.append(len(client.scheduler_info(n_workers=-1)["workers"]))
        time.sleep(0.5)


if __name__ == "__main__":
    import scale  # as others import it, so that tasks name it and need not carry it

    scale.main()
