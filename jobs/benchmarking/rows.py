"""Random regression problems in HDF5 files, written once for every size and codec."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np

from streamkern.runtime.memory import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from benchmarking.cases import Case

CHUNK_ROWS = 1024
# So that a chunk of targets has about the bytes of one of 90 inputs.
_TARGET_CHUNK_ROWS = 64 * CHUNK_ROWS
_ROWS_AT_ONCE = 64 * CHUNK_ROWS
_TEST_ROWS = 10_000
_DIRECTIONS, _NOISE = 8, 0.1


class Problem(NamedTuple):
    """Inputs that vary along a few directions, and a smooth function of these."""

    mixing: Any
    projection: Any

    @classmethod
    def of(cls, inputs: int) -> Problem:
        """Draw the directions; every input has unit variance, and so has every projection."""
        mixing = np.random.default_rng(0).standard_normal((_DIRECTIONS, inputs))
        mixing *= np.sqrt(0.75 / np.sum(mixing**2, axis=0))
        covariance = mixing.T @ mixing + 0.25 * np.eye(inputs)
        spread = np.sqrt(np.einsum("kp,pq,kq->k", mixing, covariance, mixing))
        return cls(mixing.astype(np.float32), (mixing.T / spread).astype(np.float32))

    def rows(self, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        """Return inputs (n, p) to three digits, as measured ones are, and targets (n,)."""
        X = rng.standard_normal((n, _DIRECTIONS), dtype=np.float32) @ self.mixing
        X += 0.5 * rng.standard_normal(X.shape, dtype=np.float32)
        np.round(256.0 * X, out=X)
        X /= np.float32(256.0)
        z = (X @ self.projection).T
        y = np.sin(z[0] + z[1]) + 0.5 * (z[2] * z[3] + z[4]) + np.cos(z[5])
        return X, y + _NOISE * rng.standard_normal(n, dtype=np.float32)


def path_of(folder: Path, case: Case) -> Path:
    """Return where the rows of a case are, or are to be."""
    return folder / f"{case.rows}x{case.inputs}-{case.codec}.h5"


def opened(path: str | Path) -> h5py.File:
    """Open a file for reading, whatever its codec."""
    import hdf5plugin  # noqa: F401  registers its codecs

    return h5py.File(path)


def write_rows(folder: Path, cases: Iterable[Case]) -> None:
    """Write the rows of every case that are not there yet.

    Raises
    ------
    SystemExit
        If the disk has no room for them.
    """
    missing = {path_of(folder, case): case for case in cases}
    missing = {path: case for path, case in missing.items() if not path.exists()}
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    needed = sum(4 * (case.inputs + 1) * (case.rows + _TEST_ROWS) for case in missing.values())
    free = shutil.disk_usage(folder).free
    if 1.1 * needed > free:
        raise SystemExit(
            f"the rows need {in_words(needed)} in {folder}, but {in_words(free)} is free; name "
            f"another folder with --cache, or take fewer rows."
        )
    for path, case in missing.items():
        temporary = path.with_suffix(".part")
        _write(temporary, case)
        temporary.replace(path)


def _write(path: Path, case: Case) -> None:
    n, p = case.rows, case.inputs
    problem, stored = Problem.of(p), _compression(case.codec)
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        X = file.create_dataset("X", (n, p), "f4", chunks=(min(CHUNK_ROWS, n), p), **stored)
        rows = (min(_TARGET_CHUNK_ROWS, n),)
        y = file.create_dataset("y", (n,), "f4", chunks=rows, **stored)
        for start in range(0, n, _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, n)
            X[start:stop], y[start:stop] = problem.rows(rng, stop - start)
        test = problem.rows(np.random.default_rng(2), _TEST_ROWS)
        file["X_test"], file["y_test"] = test


def _compression(codec: str) -> dict[str, Any]:
    """Return how h5py is told of a codec, each as its users are advised to take it."""
    if codec == "none":
        return {}
    if codec in ("gzip", "lzf"):
        return {"compression": codec, "shuffle": True}
    import hdf5plugin

    if codec == "blosc":
        return dict(hdf5plugin.Blosc(cname="zstd", clevel=5, shuffle=hdf5plugin.Blosc.SHUFFLE))
    return dict(hdf5plugin.Bitshuffle(cname="lz4"))
