"""Files from strangers: python jobs/fuzz.py --files 10000.

Whole files of models, moments, saved sums, rows and clusters are damaged at random and read by
programs of limited memory, as `predict`, `solve` and `fit` read them.  A third of the HDF5 files
are not damaged but restructured, with links and filters.  Every file must be read, or refused with
a sentence, and rows of zeros are in none of them: anything else is counted and printed, with the
seed that makes it again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from fuzzing.restructure import BESIDE, prepare, restructure

import streamkern
from streamkern import RandomFeatureRidge
from streamkern.engine.cluster_file import read_cluster_file
from streamkern.errors import StreamkernError
from streamkern.storage.plain_values import read_plain, write_plain

if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY = 3 << 30
SECONDS = 30
HUGE = [b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x00" * 8, (1 << 40).to_bytes(8, "little")]
CLUSTER = """version: 1
module: dask.distributed
class: LocalCluster
kwargs: {n_workers: 2, threads_per_worker: 1, host: 127.0.0.1}
adapt: {minimum: 0, maximum: 4}
"""
NASTY = [
    "!!python/object/apply:os.system ['touch ran']", "&a [*a, *a]", "*a", "$(touch ran)", "`id`",
    "os.system", "subprocess", "preload: [ran]", "1e999", ".nan", "null", "[]", "{}", "- - - -",
    "\x00", "\ud7ff", "? :", "scale: -1", "class: Popen", "module: subprocess", "'", '"', "{" * 50,
    "args: [x; touch ran]", "0x10", "2001-01-01", "!!binary aGk=", "<<: {a: 1}", "\t", "%YAML 9.9",
]  # fmt: skip


def predict(path: Path) -> None:
    model = streamkern.load(path)
    model.predict(np.zeros((3, model.n_features_in_)))


def solve(path: Path) -> None:
    RandomFeatureRidge(n_components="auto", alpha=1.0).solve(streamkern.load_moments(path))


def fit(path: Path) -> None:
    RandomFeatureRidge(n_components=8, alpha=1.0).fit(streamkern.open_hdf5(path))


def fit_whole(path: Path) -> None:
    """Fit to rows none of which was zero when they were written."""
    fit(path)
    source = streamkern.open_hdf5(path)
    for shard in source.shards(1 << 20):
        for block in source.reader(shard).blocks(1 << 20):
            if not block.X.any(axis=1).all():
                raise AssertionError("rows of zeros")


READERS: dict[str, Callable[[Path], Any]] = {
    "model": predict,
    "moments": solve,
    "rows": fit,
    "whole rows": fit_whole,
    "sums": read_plain,
    "cluster": read_cluster_file,
}


def seeds(folder: Path) -> dict[str, list[bytes]]:
    """Return whole files of every kind."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = np.sin(X)
    made: dict[str, list[bytes]] = {kind: [] for kind in READERS}
    path = folder / "seed.h5"

    def take(kind: str) -> None:
        made[kind].append(path.read_bytes())
        path.unlink()

    for options in ({}, {"paired": False}, {"feature_map": "identity"}, {"sparse": 4}):
        RandomFeatureRidge(n_components=8, alpha=0.1, **options).fit(X, y).save(path)
        take("model")
    RandomFeatureRidge(n_components=8, alpha="cv").moments(X, y[:, 0]).save(path)
    take("moments")
    for options in ({}, {"compression": "gzip"}, {"compression": "lzf", "shuffle": True}):
        with h5py.File(path, "w") as file:
            file.create_dataset("X", data=X, chunks=(100, 3), **options)
            file.create_dataset("y", data=y[:, 0], chunks=(100,), fletcher32=bool(options))
        take("rows")
    with h5py.File(path, "w", libver="latest") as file:
        file["X"], file["y"] = X.astype("f4"), y
    take("rows")
    write_plain(path, {"gram": [np.eye(3), None], "weight": 3.0, "parts": {0: X}})
    take("sums")
    made["cluster"].append(CLUSTER.encode())
    return made


def damaged(whole: bytes, chance: random.Random, *, text: bool) -> bytes:
    """Return the bytes of a file after a few changes."""
    data = bytearray(whole)
    for _ in range(chance.choice([1, 1, 2, 4, 16])):
        place = chance.randrange(max(len(data), 1))
        kind = chance.randrange(7)
        if text and chance.random() < 0.7:
            data[place:place] = chance.choice(NASTY).encode("utf-8", "surrogatepass")
        elif kind == 0:
            data[place : place + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            data[place : place + 8] = chance.choice(HUGE)
        elif kind == 2:
            del data[place:]
        elif kind == 3:
            other = chance.randrange(len(data) + 1)
            size = chance.randrange(64)
            data[place : place + size] = data[other : other + size]
        elif kind == 4:
            del data[place : place + chance.randrange(1, 64)]
        elif kind == 5:
            data[place : place + 4] = chance.randbytes(4)
        else:
            data[place : place + 1] = bytes(
                [data[place] ^ (1 << chance.randrange(8))] if data else b""
            )
    return bytes(data)


def read_files() -> None:
    """Read the files named on standard input, and say of each how that went."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        kind, _, name = line.strip().partition(": ")
        try:
            READERS[kind](Path(name))
        except StreamkernError as error:
            said = str(error)
            found = "refused" if "\n" not in said and len(said) < 1000 else f"long: {said[:80]!r}"
        except MemoryError:
            found = "out of memory"
        except BaseException as error:  # noqa: BLE001  what is looked for
            found = f"{type(error).__name__}: {error}"[:200]
        else:
            found = "read"
        print(json.dumps(found), flush=True)


class ReadingProcess:
    """A process that reads files, and is started anew when it dies or hangs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None

    def found(self, kind: str, path: Path) -> str:
        """Return how reading a file went."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).resolve()), "--read"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=self.folder,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        assert self.process.stdin is not None  # noqa: S101  for the type checker
        assert self.process.stdout is not None  # noqa: S101
        self.process.stdin.write(f"{kind}: {path}\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return str(json.loads(line))
        hangs = not ready
        self.process.kill()
        status = self.process.wait()
        self.process = None
        return "hangs" if hangs else f"crashed: {status}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(READERS))
    parser.add_argument("--read", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        read_files()
        return
    begun, bad = time.monotonic(), 0
    kinds = [kind for kind in given.kinds.split(",") if kind != "whole rows"]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = seeds(folder)
        reading = ReadingProcess(folder)
        for number in range(given.files):
            kind = kinds[number % len(kinds)]
            chance = random.Random(f"{given.seed} {number}")  # noqa: S311  not for secrets
            path, whole = folder / "file", chance.choice(made[kind])
            what = "damaged"
            if kind != "cluster" and chance.random() < 1 / 3:
                prepare(folder, whole)
                path.write_bytes(whole)
                what = restructure(path, chance)
                kind = "whole rows" if kind == "rows" else kind
            else:
                path.write_bytes(damaged(whole, chance, text=kind == "cluster"))
            found = reading.found(kind, path)
            counts[kind][found.partition(":")[0]] += 1
            left = {entry.name for entry in folder.iterdir()} - {path.name, *BESIDE}
            if left:
                found = f"wrote {left}"
            if found not in {"read", "refused"}:
                bad += what != "damaged" or not found.startswith("crashed")
                print(f"file {number} ({kind}, {what}): {found}", flush=True)
        if reading.process is not None:
            reading.process.kill()
    for kind, counted in counts.items():
        print(f"{kind}: " + ", ".join(f"{n:,} {what}" for what, n in counted.most_common()))
    print(
        f"{given.files:,} files in {time.monotonic() - begun:.0f} s, {bad} neither read nor refused"
    )
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
