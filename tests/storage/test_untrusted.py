"""Values of files that anyone may have written: plain ones come back, all else is refused."""

import os
import resource
import subprocess
import sys
import zlib

import h5py
import numpy as np
import pytest

from streamkern import RandomFeatureRidge, load, load_moments
from streamkern.errors import CheckpointError, ModelFileError
from streamkern.storage.nested_values import read_plain, write_plain
from streamkern.storage.untrusted import array, finite_array, fixed, mark, text

TERABYTE = (1 << 37,)


@pytest.fixture
def file():
    with h5py.File("any", "w", driver="core", backing_store=False, libver="latest") as opened:
        yield opened


@pytest.mark.parametrize("value", ["streamkern-model", "", "κ", 7, np.int32(-1)])
def test_short_texts_and_integers_are_marks(file, value):
    file.attrs["mark"] = fixed(value) if isinstance(value, str) else value
    assert mark(file, "mark") == value


@pytest.mark.parametrize(
    "value",
    [1.5, np.arange(3), np.zeros((1 << 10, 1 << 10)), h5py.Empty("f8"), "any", "x" * 1_000_000],
    ids=["number", "array", "large", "empty", "text", "long"],
)
def test_nothing_else_is_one(file, value):
    file.attrs["mark"] = value
    assert mark(file, "mark") is None


def test_a_mark_that_is_not_there_is_none(file):
    assert mark(file, "mark") is None


def test_a_long_text_is_no_mark(file):
    file.attrs["mark"] = fixed("x" * 1_000)
    assert mark(file, "mark") is None


@pytest.mark.parametrize("value", [np.zeros(3), 1.0, [b"a", b"b"], "any"])
def test_only_one_text_is_a_text(file, value):
    file["card"] = value
    with pytest.raises(ValueError, match="not a text"):
        text(file, "card")


def test_a_text_comes_back(file):
    file["card"] = fixed("κ")
    assert text(file, "card") == "κ"


@pytest.mark.parametrize("chunks", [None, (1 << 20,)], ids=["contiguous", "chunks"])
def test_what_was_not_written_is_not_made_room_for(file, chunks):
    dataset = file.create_dataset("values", TERABYTE, "f8", chunks=chunks)
    with pytest.raises(ValueError, match=r"claims 1,099,511,627,776 bytes that were not written"):
        array(dataset)


@pytest.mark.parametrize("value", ["text", [b"a"], [True]], ids=["text", "bytes", "booleans"])
def test_what_are_no_numbers_is_refused(file, value):
    file["values"] = value
    with pytest.raises(ValueError, match="not numbers"):
        finite_array(file, "values")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(file, value):
    file["values"] = [1.0, value]
    with pytest.raises(ValueError, match="not finite"):
        finite_array(file, "values")


def saved(kind, path):
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = RandomFeatureRidge(n_components=8, alpha=0.1)
    if kind == "model":
        model.fit(X, X[:, 0]).save(path)
    elif kind == "moments":
        model.moments(X, X[:, 0]).save(path)
    else:
        write_plain(path, {"cross": X})


READERS = {
    "model": (load, ModelFileError),
    "moments": (load_moments, ModelFileError),
    "sums": (read_plain, CheckpointError),
}


def datasets(path):
    names = []
    with h5py.File(path) as opened:
        opened.visititems(lambda name, item: names.append(name) if hasattr(item, "dtype") else None)
    return names


@pytest.mark.parametrize("kind", list(READERS))
def test_a_claim_of_a_terabyte_anywhere_in_a_file_takes_no_memory(kind, tmp_path):
    read, error = READERS[kind]
    saved(kind, tmp_path / "whole.h5")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    names = datasets(tmp_path / "whole.h5")
    assert names
    for i, name in enumerate(names):
        path = tmp_path / f"{i}.h5"
        path.write_bytes((tmp_path / "whole.h5").read_bytes())
        with h5py.File(path, "r+") as opened:
            was = opened[name]
            shape = tuple(1 << 20 for _ in was.shape) or TERABYTE
            kind_of = was.dtype
            del opened[name]
            opened.create_dataset(name, shape, kind_of, chunks=tuple(1 << 8 for _ in shape))
        with pytest.raises(error) as caught:
            read(path)
        assert "\n" not in str(caught.value)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000  # kilobytes


def external(file, name):
    del file[name]
    file.create_dataset(name, (1 << 37,), "f8", external=[("/dev/zero", 0, 1 << 40)])


def linked(file, name):
    del file[name]
    file[name] = h5py.ExternalLink("/etc/hostname", "/X")


def moved(file, name):
    file.move(name, "elsewhere")
    file[name] = h5py.SoftLink("/elsewhere")


def many_names(file, name):
    for i in range(1000):
        file[f"map/{i}"] = file[name]


def map_moved(file, name):
    moved(file, "map")


def equations_moved(file, name):
    moved(file, "equations")


def two_names(file, name):
    file["equations/again"] = file["equations"]


def filtered(file, name):
    """What 500 bytes hold here is decoded to 200 MB, in a chunk of eight bytes."""
    del file["intercept"]
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk((1,))
    for _ in range(2):
        made.set_deflate(9)
    space = h5py.h5s.create_simple((1,))
    dataset = h5py.h5d.create(file.id, b"intercept", h5py.h5t.IEEE_F64LE, space, made)
    dataset.write_direct_chunk((0,), zlib.compress(zlib.compress(bytes(200_000_000))), 0)


CHANGES = [external, linked, moved, many_names]
CHANGES += [map_moved, equations_moved, two_names, filtered]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_is_elsewhere_or_there_many_times_is_not_read(tmp_path, change):
    saved("model", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as opened:
        change(opened, "map/inner_frequencies")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelFileError, match="damaged"):
        load(tmp_path / "a.h5")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


@pytest.mark.parametrize("kind", ["moments", "sums"])
def test_no_file_of_our_own_has_filters(kind, tmp_path):
    read, error = READERS[kind]
    saved(kind, tmp_path / "a.h5")
    names = datasets(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as opened:
        assert not any(opened[name].chunks for name in names)
        largest = max(names, key=lambda name: opened[name].size)
        values = opened[largest][()]
        del opened[largest]
        opened.create_dataset(largest, data=values, compression="gzip")
    with pytest.raises(error, match="has filters"):
        read(tmp_path / "a.h5")


WAITING = """
import sys
from streamkern import load, load_moments
from streamkern.errors import StreamkernError
from streamkern.storage import opened_checkpoint, read_recipe
from streamkern.storage.nested_values import is_whole, read_plain

pipe, linked, folder = sys.argv[1:]
for read in (load, load_moments, read_recipe, read_plain):
    for path in (pipe, linked, "/dev/zero", folder):
        try:
            read(path)
        except StreamkernError as error:
            print(str(error).count(path))
assert not is_whole(pipe)
try:
    opened_checkpoint(folder, {}).__enter__()
except StreamkernError as error:
    print(error)
"""


def test_a_pipe_is_not_waited_for_wherever_it_is(tmp_path):
    pipe, linked = tmp_path / "pipe", tmp_path / "a.h5"
    os.mkfifo(pipe)
    saved("model", linked)
    with h5py.File(linked, "r+") as opened:
        del opened["map"]
        opened["map"] = opened["recipe"] = h5py.ExternalLink(str(pipe), "/")
    (tmp_path / "saved").mkdir()
    os.mkfifo(tmp_path / "saved" / "job.json")
    done = subprocess.run(
        [sys.executable, "-c", WAITING, pipe, linked, tmp_path / "saved"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.stderr == ""
    said = done.stdout.splitlines()
    assert len(said) == 4 * 4 + 1
    assert "job.json is damaged (not a plain file); remove the folder" in said[-1]


def test_a_long_text_that_was_not_written_takes_no_memory(tmp_path):
    saved("model", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as opened:
        del opened["card"]
        opened.create_dataset("card", (), dtype=h5py.string_dtype(length=1 << 30))
    assert (tmp_path / "a.h5").stat().st_size < 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelFileError, match="claims 1,073,741,824 bytes"):
        load(tmp_path / "a.h5")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def run_python(code, timeout=60):
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, stderr=subprocess.PIPE, timeout=timeout, check=False)
    return done.stderr


@pytest.mark.parametrize("where", ["format", "card"])
def test_a_heap_of_texts_without_end_is_not_read(tmp_path, where):
    path = tmp_path / "a.h5"
    saved("model", path)
    with h5py.File(path, "r+") as opened:
        if where == "format":
            opened.attrs["format"] = "streamkern-model"
        else:
            del opened["card"]
            opened["card"] = "{}"
    bytes_of = bytearray(path.read_bytes())
    size = bytes_of.index(b"GCOL") + 24  # of the first object of the heap
    bytes_of[size : size + 8] = (2**64 - 16).to_bytes(8, "little")  # and 16 more of its header
    path.write_bytes(bytes_of)
    value = ".attrs['format']" if where == "format" else "['card'][()]"
    with pytest.raises(subprocess.TimeoutExpired):
        run_python(f"import h5py; h5py.File({str(path)!r}){value}", timeout=5)
    assert b"ModelFileError" in run_python(f"import streamkern; streamkern.load({str(path)!r})")


@pytest.mark.parametrize("where", ["card", "labels"])
def test_folds_without_number_take_no_memory(tmp_path, where):
    saved("moments", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as opened:
        if where == "card":
            card = opened["card"].asstr()[()]
            assert '"n_folds": 5' in card
            del opened["card"]
            opened["card"] = fixed(card.replace('"n_folds": 5', '"n_folds": 1000000000'))
        else:
            labels = opened["index/folds"][()].astype("u4")
            labels[0] = 1 << 31
            del opened["index/folds"]
            opened["index/folds"] = labels
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelFileError, match="damaged"):
        load_moments(tmp_path / "a.h5")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_a_model_file_runs_nothing(tmp_path):
    """What pickle or eval would run is text here, and refused as such."""
    saved("model", tmp_path / "a.h5")
    code = f"__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()"
    with h5py.File(tmp_path / "a.h5", "r+") as opened:
        card = opened["card"].asstr()[()]
        del opened["card"]
        opened["card"] = fixed(card.replace('"gaussian"', f'"{code}"'))
    program = f"import streamkern; streamkern.load({str(tmp_path / 'a.h5')!r})"
    assert b"ModelFileError" in run_python(program)
    assert not (tmp_path / "ran").exists()
