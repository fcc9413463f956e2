"""What workers take beside what was planned: python benchmarks/memory.py.

For every kind of pass, commands run on a new LocalCluster, whose workers have a limit of memory,
one thread, and one BLAS thread.  A line of the table says how many features and rows there were;
the largest plan that was told; and the peak of the largest worker, as Linux counts what is resident
(VmHWM): in all, above what it held when it was ready, and over the plan.  Predictions and
evaluations have no plan.  Marked are peaks over the plan, or without one over the limit, and
workers that Dask paused or started anew.  What a command that failed said goes to standard error.
The next run finds the rows in the folder, of which many.h5 is four times as large as a worker.
Workers import this file, too, so that libraries are imported where they are used.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import streamkern

_P, _CHUNK_ROWS = 40, 8192
# Rows in memory have no command.
_IN_MEMORY = """
import sys, numpy as np, streamkern
from scipy.sparse import random_array
D, X = int(sys.argv[2]), random_array((200_000, 2000), format="csr", dtype="f4", rng=0)
if sys.argv[1] == "array":
    X = np.random.default_rng(0).standard_normal((300_000, 200), dtype="f4")
with streamkern.connect(scheduler=sys.argv[4]):
    streamkern.RandomFeatureRidge(n_components=D).fit(X, np.tanh(X[:, :50].sum(axis=1)))
print('{"rows": %d, "n_components": %d}' % (X.shape[0], D))
"""
_MODEL = "fit rows.h5 --components 1536 --out model.h5"
KINDS = {
    "fit": [_MODEL],
    "fit, many rows": ["fit many.h5 --components 256"],
    "fit, double": ["fit rows.h5 --components 1280 --precision double"],
    "fit, penalty given": ["fit rows.h5 --components 3072 --alpha 1"],
    "fit, each row left out": ["fit rows.h5 --components 1536 --alpha loo"],
    "fit, 64 targets": ["fit rows.h5 --components 1280 --y targets"],
    "fit, metric learnt": ["fit rows.h5 --components 1024 --metric learn"],
    "landmarks": ["fit rows.h5 --components 1024 --map nystroem"],
    "10 classes": ["fit rows.h5 --components 1280 --y labels --classify"],
    "boosting": ["fit rows.h5 --components 1024 --y labels --classify --boost 4"],
    "conjugate gradients": ["fit rows.h5 --components 2048 --solver cg"],
    "integers": ["fit rows.h5 --components 1280 --precision int8"],
    "field": ["fit points.h5 --components 1536 --map grid"],
    "field, conjugate gradients": ["fit points.h5 --components 32768 --map grid"],
    "loss of counts": ["fit rows.h5 --components 1024 --y counts --loss poisson"],
    "loss of quantiles": ["fit rows.h5 --components 512 --loss quantile:0.1,0.9"],
    "tune": ["tune rows.h5 --components 512 --budget 20s"],
    "Parquet": ["fit rows.parquet --components 1280 --target y"],
    "array": ["array --components 512"],
    "sparse rows": ["sparse --components 1024"],
    "principal components": ["pca rows.h5 --random-features 2048"],
    "moments, merged, forgotten": [
        *("moments rows.h5 --components 1280 --out 1.h5", "moments more.h5 --like 1.h5"),
        *("merge 1.h5 out.h5 --out 2.h5", "forget 2.h5 more.h5", "solve out.h5 --out 1.h5"),
    ],
    "predict, deviations, intervals": ["predict model.h5 rows.h5 --std --interval 90"],
    "evaluate, each row left out": ["evaluate model.h5 rows.h5 --leave-one-out 5"],
}


def main() -> None:
    from streamkern.extensions.integers.integer_products import integer_products
    from streamkern.runtime.threads import processor

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help=f"some of: {'; '.join(KINDS)}")
    parser.add_argument("--folder", type=Path, default=Path("memory"), help="of files")
    parser.add_argument("--rows", type=float, default=1e5)
    parser.add_argument("--limit", type=int, default=1000, help="MB of a worker")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    os.chdir(given.folder)
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    kinds = given.kinds or [*KINDS]
    named, n = " ".join(command for kind in kinds for command in KINDS[kind]), int(given.rows)
    sizes = {"rows": n, "more": n // 4, "points": n, "many": 1_000_000 * given.limit // _P}
    for name, rows in sizes.items():
        if (name == "rows" or f"{name}.h5" in named) and not Path(f"{name}.h5").exists():
            write(name, rows, 2 if name == "points" else _P)
    how = {"n_workers": given.workers, "threads_per_worker": 1, "memory_limit": f"{given.limit}MB"}
    where = {"version": 1, "module": "dask.distributed", "class": "LocalCluster", "kwargs": how}
    Path("cluster.yaml").write_text(json.dumps(where))
    print(f"{processor()}; {given.workers} workers of {given.limit:,} MB; memory in MB\n")
    columns = "kind", "D", "rows", "plan", "peak", "above ready", "peak / plan", "limit", "exit"
    print(f"| {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) - 1)}", flush=True)
    for kind in kinds:
        if kind != "integers" or integer_products().name != "float32 BLAS":
            print(line(kind, given.limit), flush=True)


def line(kind: str, limit: int) -> str:
    """Return the line of the table of a kind, whose commands run on a cluster of its own."""
    if KINDS[kind][0].split()[1] == "model.h5" and not Path("model.h5").exists():
        run(_MODEL, "--workers", "1")
    status, said = 0, dict[str, Any]()
    with streamkern.connect(cluster="cluster.yaml") as client, watched(client) as found:
        for command in KINDS[kind]:
            if not status:
                status, more = run(command, "--scheduler", client.scheduler.address)
                said = more | said
    peak, plan, over = found["peak"], found["plan"], "**" * (found["peak"] > found["plan"])
    ratio = f"{over}{peak / plan:.2f}{over}" if plan else "**over**" * (peak > 1e6 * limit)
    sizes = (f"{said[key]:,}" if key in said else "" for key in ("n_components", "rows"))
    numbers = (f"{each / 1e6:,.0f}" if each else "" for each in (plan, peak, peak - found["ready"]))
    last = ratio, f"{limit:,}", ", ".join([str(status), *found["events"]])
    return f"| {' | '.join([kind, *sizes, *numbers, *last])} |"


@contextmanager
def watched(client: Any) -> Iterator[dict[str, Any]]:
    """Look at the workers of a client: what they held at first, and at the most, and their fate."""
    processes, over = client.run(os.getpid), threading.Event()
    for number in processes.values():
        Path(f"/proc/{number}/clear_refs").write_text("5")  # the peak begins again
    ready = largest(processes, "VmRSS")
    found: dict[str, Any] = {"plan": 0, "peak": ready, "ready": ready, "events": []}

    def hear(logged: tuple[Any, dict[str, Any]]) -> None:
        if logged[1].get("kind") == "planned":
            found["plan"] = max(found["plan"], logged[1]["worker_bytes"])

    def look() -> None:
        while not over.wait(0.05):
            found["peak"] = max(found["peak"], largest(processes, "VmHWM"))

    client.subscribe_topic("streamkern", hear)
    (looking := threading.Thread(target=look)).start()
    try:
        yield found
    finally:
        over.set()
        looking.join()
        logged = [each for log in client.get_events().values() for _, each in log]
        paused = any(isinstance(each, dict) and each.get("status") == "paused" for each in logged)
        anew = client.run(os.getpid) != processes
        found["events"] += ["**paused**"] * paused + ["**started anew**"] * anew


def largest(processes: dict[str, int], name: str) -> int:
    """Return a line of the status of processes in bytes, of the largest that is there."""
    sizes = [0]
    for number in processes.values():
        with suppress(OSError, IndexError):
            text = Path(f"/proc/{number}/status").read_text()
            sizes.append(1024 * int(text.partition(f"{name}:")[2].split()[0]))
    return max(sizes)


def run(command: str, *where: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status of a command, and the object that it ends with."""
    name, *more = command.split()
    words = [str(Path(sys.executable).with_name("streamkern")), name, *more, "--quiet", "--json"]
    if name in ("array", "sparse"):
        words = [sys.executable, "-c", _IN_MEMORY, name, more[1], *where]
    else:
        words += [] if "--out" in more or name == "evaluate" else ["--out", "out.h5"]
        words += ["--force"] * (name != "evaluate") + [*where] * (name != "merge")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        print(command, done.stderr, sep="\n", file=sys.stderr)
        return done.returncode, {}
    return 0, json.loads(done.stdout.splitlines()[-1])


def write(name: str, n: int, p: int) -> None:
    """Write inputs (n, p) and y, with other targets of rows."""
    import h5py
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(int(name == "more"))
    mix = rng.standard_normal((p, 64), dtype=np.float32) / p**0.5
    with h5py.File(f"{name}.h5", "w") as file:
        for first in range(0, n, _CHUNK_ROWS):
            X = rng.standard_normal((min(_CHUNK_ROWS, n - first), p), dtype=np.float32)
            waves = np.sin(2 * X @ mix)
            targets = waves + 0.3 * rng.standard_normal(waves.shape, dtype=np.float32)
            made = {"X": X, "y": targets[:, 0]}
            if name == "rows":
                made |= {"targets": targets, "labels": waves[:, :10].argmax(axis=1)}
                made["counts"] = rng.poisson(2 + waves[:, 0])
            for key, values in made.items():
                how = (n, *values.shape[1:]), values.dtype
                stored = file.require_dataset(key, *how, chunks=values.shape)
                stored[first : first + len(X)] = values
        if name == "rows":
            table = pd.DataFrame(file["X"][:]).add_prefix("x").assign(y=file["y"][:])
            table.to_parquet("rows.parquet", row_group_size=1 << 16)


if __name__ == "__main__":
    main()
