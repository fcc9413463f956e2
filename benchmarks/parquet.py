"""Tables of Parquet that are larger than a worker's memory: seconds, peak memory and bits.

    python benchmarks/parquet.py layouts [--gigabytes 6] [--limit 512MB] [--system] [--folder DIR]
    python benchmarks/parquet.py table FILE.parquet --target NAME
    python benchmarks/parquet.py store [--gigabytes 0.3] [--late 0.05]
    python benchmarks/parquet.py columns [--columns 1000,5000,...]

`layouts` writes the same random rows as one file, as many small ones, and as one row group, and
fits each on two workers, which Dask ends where they have more memory than the limit.  With
`--system` so does the operating system: each is in a control group of its own, as in a container,
which takes the rights of root.  `table`
compares the commands on a table with the same commands on the HDF5 that `convert` makes of it, in
turns.  `store` fits rows in a folder here, and the same rows by way of a server of S3 on this
machine that answers every request at once, and late, in turns.  `columns` converts, fits and
predicts few rows of many columns: whether seconds grow faster than cells.
"""

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import dask
import fsspec
import numpy as np
import pyarrow as pa
from distributed import Client, LocalCluster
from pyarrow import csv, parquet
from s3fs import S3FileSystem

from streamkern import RandomFeatureRidge, load
from streamkern.runtime.memory import peak_bytes

# Inputs of a row, all of double precision, beside the target.
P, PIECE = 20, 1 << 16
LAYOUTS = ("one file", "small files", "one row group")


# What a worker runs, perhaps twice, to be in a control group of its own; what it has by then is not
# counted there.
GROUP = """
import os, pathlib, psutil
group = pathlib.Path({root!r}, f"streamkern-{{os.getpid()}}")
if not group.exists():
    group.mkdir()
    (group / {limit!r}).write_text(str({memory} - psutil.Process().memory_info().rss))
    (group / "cgroup.procs").write_text(str(os.getpid()))
"""


@click.group(help=__doc__, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    pass


def pieces(n_rows: int) -> Iterator[pa.Table]:
    """Yield the rows, the same for all layouts, a piece at a time."""
    for start in range(0, n_rows, PIECE):
        rng = np.random.default_rng(start)
        X = rng.standard_normal((min(PIECE, n_rows - start), P))
        y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(len(X))
        yield pa.table({f"x{j}": X[:, j] for j in range(P)} | {"y": y})


def write(folder: Path, layout: str, n_rows: int) -> None:
    """Write the rows; one row group is streamed, too, so that it needs no memory to write."""
    schema, plain = next(pieces(1)).schema, {"use_dictionary": False, "compression": "none"}
    if layout == "small files":
        for number, piece in enumerate(pieces(n_rows)):
            for part in range(16):
                rows = piece.slice(part * PIECE // 16, PIECE // 16)
                if len(rows):
                    parquet.write_table(rows, folder / f"{number:05d}-{part:02d}.parquet", **plain)
        return
    with parquet.ParquetWriter(folder / "rows.parquet", schema, **plain) as writer:
        if layout == "one row group":
            writer.write_table(pa.concat_tables(list(pieces(n_rows))), row_group_size=n_rows)
            return
        for piece in pieces(n_rows):
            writer.write_table(piece)


@main.command()
@click.option("--gigabytes", default=6.0)
@click.option("--limit", default="512MB")
@click.option("--system", is_flag=True, help="The operating system keeps the limit, too.")
@click.option("--folder", default=None, help="Where the rows are written for that time.")
@click.option("--layout", "layouts", multiple=True, default=LAYOUTS, type=click.Choice(LAYOUTS))
def layouts(
    gigabytes: float, limit: str, system: bool, folder: str | None, layouts: tuple[str, ...]
) -> None:
    """Fit the same rows in several layouts."""
    n_rows, bits = int(gigabytes * 1e9 / (8 * (P + 1))), set()
    memory = dask.utils.parse_bytes(limit)
    groups = Path("/sys/fs/cgroup")
    is_first = (groups / "memory").is_dir()  # version of control groups
    groups = groups / "memory" if is_first else groups
    if system:
        how = {"root": str(groups), "memory": memory}
        text = GROUP.format(**how, limit="memory.limit_in_bytes" if is_first else "memory.max")
        dask.config.set({"distributed.worker.preload": [text]})
    for layout in layouts:
        with TemporaryDirectory(dir=folder) as place:
            write(Path(place), layout, n_rows)
            size = sum(path.stat().st_size for path in Path(place).iterdir())
            with (
                LocalCluster(
                    n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address=None
                ) as cluster,
                Client(cluster) as client,
            ):
                begun = time.perf_counter()
                model = RandomFeatureRidge(n_components=256, kernel="gaussian", alpha=1.0)
                model.fit(place, y="y")
                seconds, peaks = time.perf_counter() - begun, client.run(peak_bytes)
        bits.add(model.coef_.tobytes())
        found = {
            "layout": layout,
            "rows": model.report_["rows"],
            "file_bytes_by_limit": size / memory,
            "peak_by_limit": max(peaks.values()) / memory,
            "planned_by_limit": model.report_["projected_worker_bytes"] / memory,
            "rows_per_second": n_rows / seconds,
            "same_bits": len(bits) == 1,
        }
        print(json.dumps(found), flush=True)
    for group in groups.glob("streamkern-*"):
        group.rmdir()


@main.command()
@click.argument("path")
@click.option("--target", required=True)
@click.option("--rounds", default=3)
@click.option("--budget", default="3m", help="Of `tune`.")
def table(path: str, target: str, rounds: int, budget: str) -> None:
    """Compare commands on a table with those on HDF5, in turns."""
    with TemporaryDirectory(dir=".") as place:
        rows = {"table": path, "hdf5": f"{place}/rows.h5"}
        run(f"convert {path} {place}/rows.h5 --target {target}")
        named = {"table": f"--target {target}", "hdf5": ""}
        commands = {
            "fit": "fit {rows} {named} --out {place}/{kind}.h5 --force --components 1024",
            "predict": "predict {place}/{kind}.h5 {inputs} --out {place}/p.h5 --force",
            "evaluate": "evaluate {place}/{kind}.h5 {rows}",
            "tune": f"tune {{rows}} {{named}} --out {{place}}/t.h5 --force --budget {budget}",
        }
        for name, command in commands.items():
            seconds: dict[str, list[float]] = {kind: [] for kind in rows}
            peaks: dict[str, list[int]] = {kind: [] for kind in rows}
            for _ in range(1 if name == "tune" else rounds):
                for kind, held in rows.items():
                    how = {"rows": held, "inputs": held, "named": named[kind], "kind": kind}
                    took, peak = run(command.format(place=place, **how))
                    seconds[kind].append(took)
                    peaks[kind].append(peak)
            ratio = np.median(seconds["table"]) / np.median(seconds["hdf5"])
            found = {
                "command": name,
                "seconds_by_hdf5": float(ratio),
                "peak_by_hdf5": max(peaks["table"]) / max(peaks["hdf5"]),
            }
            print(json.dumps(found), flush=True)
        errors = {kind: load(f"{place}/{kind}.h5").report_["cv_rmse"] for kind in rows}
        print(json.dumps({"cv_rmse": errors}), flush=True)


@main.command()
@click.option("--gigabytes", default=0.3)
@click.option("--late", default=0.05, help="Seconds that each request waits.")
@click.option("--files", default=8)
@click.option("--rounds", default=3)
def store(gigabytes: float, late: float, files: int, rounds: int) -> None:
    """Compare fits of a folder here with those of the same folder in a store."""
    with TemporaryDirectory() as place, ExitStack() as servers:
        for number, piece in enumerate(shares(int(gigabytes * 1e9 / (8 * (P + 1))), files)):
            parquet.write_table(piece, f"{place}/{number:03d}.parquet", row_group_size=PIECE)
        moto = servers.enter_context(serving("-m", "moto.server", "-H", "127.0.0.1", "-p"))
        proxy = Path(__file__).parents[1] / "tests" / "late_proxy.py"
        logs = {"at once": f"{place}/at-once", "late": f"{place}/late"}
        ports = {
            name: servers.enter_context(
                serving(proxy, f"127.0.0.1:{moto}", "--seconds", seconds, "--log", log, "--port")
            )
            for (name, log), seconds in zip(logs.items(), (0, late), strict=True)
        }
        os.environ |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
        filled = fsspec.filesystem("s3", endpoint_url=f"http://127.0.0.1:{moto}")
        filled.mkdir("rows")
        for path in sorted(Path(place).glob("*.parquet")):
            filled.put_file(str(path), f"rows/t/{path.name}")
        seconds: dict[str, list[float]] = {"here": [], **{name: [] for name in ports}}
        fits = set()
        for _, (name, took) in product(range(rounds), seconds.items()):
            if name in ports:
                os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{ports[name]}"
                S3FileSystem.clear_instance_cache()
            begun = time.perf_counter()
            model = RandomFeatureRidge(n_components=256, kernel="gaussian", alpha=1.0)
            model.fit(place if name == "here" else "s3://rows/t/", y="y")
            took.append(time.perf_counter() - begun)
            fits.add(model.coef_.tobytes())
        for name, took in seconds.items():
            found = {
                "rows": name,
                "rows_per_second": model.report_["rows"] / np.median(took),
                "seconds_by_here": float(np.median(took) / np.median(seconds["here"])),
                "same_bits": len(fits) == 1,
            }
            if name in logs:
                found["requests"] = Path(logs[name]).read_text().count("\n") / rounds
            print(json.dumps(found), flush=True)


@main.command()
@click.option("--columns", default="1000,3000,12000,50000", show_default=True)
@click.option("--rows", default=300, show_default=True)
def columns(columns: str, rows: int) -> None:
    """Print a line for every number of columns and kind of file, with seconds of each command."""
    rng = np.random.default_rng(0)
    for number in map(int, columns.split(",")):
        values = rng.standard_normal((rows, number)).astype(np.float32)
        names = [f"x{j}" for j in range(number)]
        frame = pa.table([*values.T, values[:, 0]], names=[*names, "y"])
        for kind in ("csv", "parquet"):
            with TemporaryDirectory() as folder:
                file = f"{folder}/rows.{kind}"
                (csv.write_csv if kind == "csv" else parquet.write_table)(frame, file)
                steps = {
                    "convert": f"convert {file} {folder}/rows.h5 --target y",
                    "fit": f"fit {file} --target y --out {folder}/m.h5 --map sorf --components 256",
                    "predict": f"predict {folder}/m.h5 {file} --out {folder}/p.h5",
                }
                seconds = {name: round(run(command)[0], 1) for name, command in steps.items()}
            print(json.dumps({"columns": number, "kind": kind} | seconds), flush=True)


def shares(n_rows: int, n_files: int) -> Iterator[pa.Table]:
    """Yield the rows of so many files."""
    rows = pa.concat_tables(list(pieces(n_rows)))
    for number in range(n_files):
        start, end = (n_rows * each // n_files for each in (number, number + 1))
        yield rows.slice(start, end - start)


@contextmanager
def serving(*command: Any) -> Iterator[int]:
    """Run a server whose last argument is a port, and yield that."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, *map(str, command), str(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(600):
                with socket.socket() as asking:
                    if asking.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield port
        finally:
            process.kill()


def run(command: str) -> tuple[float, int]:
    """Run a command, and return its seconds and the most memory that it had."""
    program = "from streamkern.cli import main; main()"
    words = ["/usr/bin/time", "-f", "%M", sys.executable, "-c", program]
    begun = time.perf_counter()
    done = subprocess.run(
        [*words, *shlex.split(command), "--quiet"], stderr=subprocess.PIPE, text=True, check=False,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise click.ClickException(f"{command}: {done.stderr}")
    return time.perf_counter() - begun, int(done.stderr.split()[-1])


if __name__ == "__main__":
    main()
