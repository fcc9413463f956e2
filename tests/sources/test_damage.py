"""Files whose chunks cannot be read, that change meanwhile, or claim what they do not hold."""

import errno
import os
import shutil
from pathlib import Path

import dask
import h5py
import numpy as np
import pytest
from rows_read import together

import streamkern
from streamkern import RandomFeatureRidge
from streamkern.errors import DataError
from streamkern.sources import hdf5_opening
from streamkern.sources.shard_reader import HDF5Reader

N, CHUNK = 2000, 100
DAMAGED = 700  # the first row of the chunk that is


@pytest.fixture(autouse=True)
def no_waits(monkeypatch):
    monkeypatch.setattr(hdf5_opening, "_WAITS", (0.0, 0.0, 0.0))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3))
    return X, np.sin(X[:, 0])


def store(path, X, y, **options):
    with h5py.File(path, "w") as file:
        for name, values in (("X", X), ("y", y)):
            columns = values.shape[1:]
            shapes = {"chunks": (CHUNK, *columns), "maxshape": (None, *columns)}
            file.create_dataset(name, data=values, **shapes, **options)
    return path


def damage(path, name="X"):
    """Change bytes of one chunk, so that HDF5 cannot decode it."""
    with h5py.File(path, "r") as file:
        place = file[name].id.get_chunk_info(DAMAGED // CHUNK)
    with path.open("r+b") as raw:
        raw.seek(place.byte_offset + place.size // 2)
        raw.write(b"\xff" * 16)
    return path


def fit(path, **options):
    options = {"n_components": 8, "alpha": 1.0, "kernel": "gaussian"} | options
    with dask.config.set(scheduler="synchronous"):
        return RandomFeatureRidge(**options).fit(streamkern.open_hdf5(path))


CODECS = {"gzip": {"compression": "gzip"}, "checksum": {"fletcher32": True}}


damaged = pytest.mark.parametrize(
    ("codec", "name"), [("gzip", "X"), ("checksum", "X"), ("checksum", "y")]
)


@damaged
def test_a_chunk_that_cannot_be_decoded_is_named(tmp_path, rows, codec, name):
    path = damage(store(tmp_path / "a.h5", *rows, **CODECS[codec]), name)
    with pytest.raises(DataError) as error:
        fit(path)
    said = str(error.value)
    assert said.startswith(f"{path}: rows 700 to 800 of /{name} cannot be read (")
    remedy = "give on_bad_rows 'skip' (--on-bad-rows skip) to leave them out."
    assert said.endswith(f"copy the file again, or {remedy}")
    assert "\n" not in said


@damaged
def test_its_rows_are_skipped_and_counted_and_no_others(tmp_path, rows, codec, name):
    X, y = rows
    path = damage(store(tmp_path / "a.h5", X, y, **CODECS[codec]), name)
    model = fit(path, on_bad_rows="skip", random_state=3)
    assert (model.report_["rows"], model.report_["skipped_rows"]) == (N - CHUNK, CHUNK)
    y[DAMAGED : DAMAGED + CHUNK] = np.nan
    same = fit(store(tmp_path / "b.h5", X, y), on_bad_rows="skip", random_state=3)
    assert np.array_equal(model.coef_, same.coef_)


@pytest.mark.parametrize("block_rows", [150, 1000])
def test_only_the_damaged_chunk_is_left_out_wherever_blocks_begin(tmp_path, rows, block_rows):
    path = damage(store(tmp_path / "a.h5", *rows, fletcher32=True))
    X, *_ = together(streamkern.open_hdf5(path).skip_invalid(), block_rows=block_rows)
    assert np.flatnonzero(np.isnan(X).any(axis=1)).tolist() == [*range(DAMAGED, DAMAGED + CHUNK)]


class Flaky:
    """Makes the first reads of some rows fail, as a network file system may."""

    def __init__(self, monkeypatch, times, code=errno.EIO):
        self.left = times
        usual = h5py.Dataset.read_direct

        def read_direct(dataset, out, part):
            if part.start <= DAMAGED < part.stop and self.left:
                self.left -= 1
                raise OSError(code, os.strerror(code))
            usual(dataset, out, part)

        monkeypatch.setattr(h5py.Dataset, "read_direct", read_direct)


@pytest.mark.parametrize("times", [1, 2, 4])
def test_an_error_that_passes_is_outlived(tmp_path, rows, monkeypatch, times):
    path = store(tmp_path / "a.h5", *rows)
    expected = fit(path)
    flaky = Flaky(monkeypatch, times)
    assert np.array_equal(fit(path).coef_, expected.coef_)
    assert flaky.left == 0


def test_an_error_that_stays_is_raised_after_some_tries(tmp_path, rows, monkeypatch):
    flaky = Flaky(monkeypatch, 10**9)
    with pytest.raises(DataError, match=r"rows 700 to 800 of /X cannot be read \(.*Input/output"):
        fit(store(tmp_path / "a.h5", *rows))
    assert 10**9 - flaky.left == 5


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT])
def test_opening_is_tried_again_where_that_may_help(tmp_path, rows, monkeypatch, code):
    path, usual, left = store(tmp_path / "a.h5", *rows), h5py.File, [2]

    def opening(*arguments, **options):
        if left[0]:
            left[0] -= 1
            raise OSError(code, os.strerror(code))
        return usual(*arguments, **options)

    monkeypatch.setattr(hdf5_opening.h5py, "File", opening)
    assert streamkern.open_hdf5(path).n_samples == N
    assert left == [0]


def test_no_file_is_waited_for_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5_opening, "_WAITS", (1000.0,))
    with pytest.raises(DataError, match="does not exist"):
        streamkern.open_hdf5(tmp_path / "a.h5")


def resize(path, n):
    with h5py.File(path, "r+") as file:
        for name in ("X", "y"):
            file[name].resize(n, axis=0)


CHANGES = {
    "shrink": lambda path: resize(path, N // 2),
    "grow": lambda path: resize(path, 2 * N),
    "replace": lambda path: Path(shutil.copy(path, path.with_suffix(".new"))).rename(path),
    "remove": lambda path: path.unlink(),
    "truncate": lambda path: os.truncate(path, path.stat().st_size // 3),
}


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("after", [1, 15, 26], ids=["column pass", "moments", "end"])
def test_a_file_that_changes_during_a_pass_is_noticed(tmp_path, rows, monkeypatch, change, after):
    path = store(tmp_path / "a.h5", *rows)
    left, usual = [after], HDF5Reader.blocks

    def blocks(reader, n_rows):
        left[0] -= 1
        if not left[0]:
            CHANGES[change](path)
        yield from usual(reader, n_rows)

    monkeypatch.setattr(HDF5Reader, "blocks", blocks)
    with pytest.raises(DataError, match=r"a\.h5.* (start again|check the path|copy it again)\.$"):
        fit(path)
    assert left[0] <= 0


@pytest.mark.parametrize("chunks", [None, (1 << 16, 3)], ids=["contiguous", "chunks"])
def test_a_small_file_that_claims_a_terabyte_is_refused(tmp_path, chunks):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (1 << 37, 3), "f8", chunks=chunks)
        file.create_dataset("y", (1 << 37,), "f8", chunks=chunks and chunks[:1])
    assert path.stat().st_size < 10_000
    with pytest.raises(DataError, match=r"X has .* but 0 were written"):
        streamkern.open_hdf5(path)


def test_rows_in_files_that_are_not_hdf5_are_refused(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (1 << 37, 3), "f8", external=[("/dev/zero", 0, 1 << 45)])
        file["y"] = np.zeros(5)
    with pytest.raises(DataError, match="X is in files beside it that are not HDF5"):
        streamkern.open_hdf5(path)


@pytest.mark.parametrize("code", [errno.ESTALE, errno.ETIMEDOUT])
def test_an_outage_is_no_reason_to_skip_rows(tmp_path, rows, monkeypatch, code):
    Flaky(monkeypatch, 10**9, code)
    with pytest.raises(DataError, match="rows 700 to 800 of /X cannot be read"):
        fit(store(tmp_path / "a.h5", *rows), on_bad_rows="skip")
