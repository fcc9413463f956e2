"""Tables of many columns: python jobs/wide_tables.py --columns 1000,10000,50000.

Writes a CSV and a Parquet file of random numbers in single precision, converts them, fits a model
to the table with the map `sorf` and predicts it, each in a process of its own.  Prints seconds of
the processor, which depend less on what else runs than seconds of a clock, and microseconds a cell.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

FIT = ("--kernel", "gaussian", "--map", "sorf", "--components", "64", "--alpha", "1", "--quiet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", default="1000,10000,50000", help="how many, of each table")
    parser.add_argument("--rows", type=int, default=30)
    options = parser.parse_args()
    print("| columns | file | convert | fit | predict | convert, a cell | fit | predict |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for p in map(int, options.columns.split(",")):
            values = np.random.default_rng(0).standard_normal((options.rows, p), np.float32)
            frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(p)])
            for path in (Path(folder) / "t.csv", Path(folder) / "t.parquet"):
                if path.suffix == ".csv":
                    frame.to_csv(path, index=False)
                else:
                    frame.to_parquet(path)
                seconds = _measured(path)
                each = [f"{1e6 * s / values.size:.1f} µs" for s in seconds]
                shown = " | ".join([*(f"{s:.1f} s" for s in seconds), *each])
                print(f"| {p:,} | {path.suffix[1:]} | {shown} |", flush=True)


def _measured(path: Path) -> list[float]:
    """Return the seconds of the processor that commands take on a table."""
    table, rows, model, out = (
        str(path.with_name(name)) for name in (path.name, "r.h5", "m.h5", "p.h5")
    )
    commands = (
        ["convert", table, rows, "--target", "x0", "--force"],
        ["fit", table, "--target", "x0", "--out", model, *FIT, "--force"],
        ["predict", model, table, "--out", out, "--force"],
    )
    return [_seconds(command) for command in commands]


def _seconds(command: list[str]) -> float:
    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    run = [str(Path(sys.executable).with_name("streamkern")), *command]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    return used() - before


if __name__ == "__main__":
    main()
