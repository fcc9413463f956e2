"""Rows written to HDF5 files, and read from sources to the end."""

import os
import re
import subprocess
import sys

import dask
import h5py
import numpy as np

from streamkern.errors import MissingExtensionError
from streamkern.sources import ArraySource, Block, Reader
from streamkern.statistics import RowSample

N, P = 5000, 7
# What a program says that needs an extension, or has an option of one.
_MISSED = re.compile("has no extension|No such option|No such command|, which is not installed")
STORED = {
    "contiguous": {},
    "chunks": {"chunks": (512, P)},
    "chunks of columns": {"chunks": (300, 3)},
    "gzip": {"chunks": (512, P), "compression": "gzip", "shuffle": True},
    "one chunk": {"chunks": (N, P)},
    "many chunks": {"chunks": (16, P)},
}


def chunked(path, rows, **datasets):
    """Write datasets in chunks of so many rows."""
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            chunks = (min(rows, len(values)), *values.shape[1:])
            file.create_dataset(name, data=values, chunks=chunks)
    return path


class Unread(ArraySource):
    """Rows that fail the test that reads them."""

    def reader(self, shard):
        raise AssertionError(f"{shard} is read")


class ReadBy(ArraySource):
    """Rows whose blocks go through a function of them and their shard."""

    def __init__(self, X, y, blocks):
        super().__init__(X, y)
        self.blocks = blocks

    def reader(self, shard):
        return Wrapped(super().reader(shard), shard, self.blocks)


class Wrapped(Reader):
    def __init__(self, reader, shard, function):
        self.reader, self.shard, self.function = reader, shard, function

    def blocks(self, n_rows):
        return self.function(self.reader.blocks(n_rows), self.shard)


def write(path, n=N, seed=0, libver="earliest", userblock=0, **stored):
    """Write X (n, P), stored so, and y in chunks."""
    X = np.random.default_rng(seed).standard_normal((n, P)).astype("f4")
    with h5py.File(path, "w", libver=libver, userblock_size=userblock) as file:
        file.create_dataset("X", data=X, **stored)
        file.create_dataset("y", data=np.sin(X[:, 0]) + X[:, 1], chunks=(min(n, 700),))
    return path


def store(path, X, y=None, *, x_name="X", y_name="y", **options):
    with h5py.File(path, "w") as file:
        file.create_dataset(x_name, data=X, **options)
        if y is not None:
            file[y_name] = y
    return path


def together(source, shard_rows=10**9, block_rows=7):
    """Read a source to the end: X, y and weights, checking that every block is where it says."""
    X, y, weights, at = [], [], [], 0
    for shard in source.shards(shard_rows):
        assert shard.start == at
        (reader,) = dask.compute(source.reader(shard), scheduler="synchronous", traverse=False)
        for block in reader.blocks(block_rows):
            assert block.start == at
            assert 0 < len(block) <= block_rows
            assert block.y.dtype == np.float64
            at += len(block)
            X.append(block.X.copy())
            y.append(block.y.copy())
            if block.weights is not None:
                assert len(block.weights) == len(block)
                weights.append(block.weights.copy())
        assert at == shard.stop
    assert at == source.n_samples
    return np.concatenate(X), np.concatenate(y), np.concatenate(weights) if weights else None


def sample_of(X, weights=None):
    """Return all rows as a sample of them."""
    sample = RowSample(len(X), 0)
    sample.update([Block(X, np.zeros((len(X), 1)), 0, weights)])
    return sample


def inside(folder):
    """The names of what is in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())


def python(code, *arguments, **options):
    """Run a program of Python in a process of its own, and return how it ended."""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code, *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=120, **options,
    )  # fmt: skip
    skip_without_extension(done.stdout + done.stderr)
    return done


def skip_without_extension(said):
    """Raise that for which a test is skipped, if a program says that it lacks an extension."""
    if "STREAMKERN_WITHOUT" in os.environ and _MISSED.search(said):
        raise MissingExtensionError(said)
