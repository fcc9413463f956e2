"""Values of files that anyone may have written: plain ones come back, all else is refused."""

import os
import resource
import zlib
from contextlib import contextmanager

import h5py
import numpy as np
import pytest
from rows_read import python

from streamkern import RandomFeatureRidge, load, load_moments
from streamkern.errors import CheckpointError, DataError, ModelFileError
from streamkern.sources.headers import describe_file
from streamkern.storage.plain_values import read_plain, write_plain
from streamkern.storage.untrusted import fixed

TERABYTE = (1 << 37,)


def saved(kind, path):
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = RandomFeatureRidge("gaussian", n_components=8, alpha=0.1)
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


@contextmanager
def within(kilobytes):
    """The most memory that this process had must not grow by more."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < kilobytes


def datasets(path):
    names = []
    with h5py.File(path) as opened:
        opened.visit(names.append)
        return [name for name in names if isinstance(opened[name], h5py.Dataset)]


@pytest.mark.parametrize("kind", list(READERS))
def test_a_claim_of_a_terabyte_anywhere_in_a_file_takes_no_memory(kind, tmp_path):
    read, error = READERS[kind]
    path = tmp_path / "a.h5"
    saved(kind, path)
    whole, names = path.read_bytes(), datasets(path)
    assert names
    with within(200_000):
        for name in names:
            path.write_bytes(whole)
            with h5py.File(path, "r+") as opened:
                shape = tuple(1 << 20 for _ in opened[name].shape) or TERABYTE
                dtype, chunks = opened[name].dtype, tuple(1 << 8 for _ in shape)
                if name == "card":  # one long text
                    shape, dtype, chunks = (), h5py.string_dtype(length=1 << 30), None
                del opened[name]
                opened.create_dataset(name, shape, dtype, chunks=chunks)
            with pytest.raises(error) as caught:
                read(path)
            assert "\n" not in str(caught.value)


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


ARRAY = "map/inner_frequencies"
CHANGES = [(change, ARRAY) for change in (external, linked, moved, many_names, filtered)]
CHANGES += [(moved, "map"), (moved, "equations")]


@pytest.mark.parametrize(("change", "name"), CHANGES)
def test_what_is_elsewhere_or_there_many_times_is_not_read(tmp_path, change, name):
    saved("model", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as opened:
        change(opened, name)
    with within(100_000), pytest.raises(ModelFileError, match="damaged"):
        load(tmp_path / "a.h5")


@pytest.mark.parametrize("kind", list(READERS))
def test_groups_deep_in_others_are_refused_before_their_names_take_minutes(kind, tmp_path):
    read, error = READERS[kind]
    saved(kind, tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as opened:
        group = opened
        for _ in range(100):
            group = group.create_group("g")
    with pytest.raises(error, match="more than 64 deep"):
        read(tmp_path / "a.h5")
    with pytest.raises(DataError, match="more than 64 deep"):
        describe_file(str(tmp_path / "a.h5"))


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
from streamkern.storage.checkpoints import opened_checkpoint
from streamkern import read_recipe
from streamkern.storage.plain_values import is_whole, read_plain

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
    done = python(WAITING, pipe, linked, tmp_path / "saved")
    assert done.stderr == ""
    said = done.stdout.splitlines()
    assert len(said) == 4 * 4 + 1
    assert "job.json is damaged (not a plain file); remove the folder" in said[-1]


LOADING = """
import sys
from streamkern import load
from streamkern.errors import ModelFileError

for path in sys.argv[1:]:
    try:
        load(path)
    except ModelFileError:
        print("refused")
"""


def test_a_heap_of_texts_without_end_is_not_read(tmp_path):
    paths = [tmp_path / f"{where}.h5" for where in ("format", "card")]
    for path in paths:
        saved("model", path)
        with h5py.File(path, "r+") as opened:
            if path.stem == "format":
                opened.attrs["format"] = "streamkern-model"
            else:
                del opened["card"]
                opened["card"] = "{}"
        bytes_of = bytearray(path.read_bytes())
        size = bytes_of.index(b"GCOL") + 24  # of the first object of the heap
        bytes_of[size : size + 8] = (2**64 - 16).to_bytes(8, "little")  # and 16 more of its header
        path.write_bytes(bytes_of)
    # HDF5 would not come back from reading them.
    done = python(LOADING, *paths)
    assert done.stdout.split() == ["refused", "refused"], done.stderr


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
    with within(200_000), pytest.raises(ModelFileError, match="damaged"):
        load_moments(tmp_path / "a.h5")


def test_a_model_file_runs_nothing(tmp_path):
    """What pickle or eval would run is text here, and refused as such."""
    saved("model", tmp_path / "a.h5")
    code = f"__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()"
    with h5py.File(tmp_path / "a.h5", "r+") as opened:
        card = opened["card"].asstr()[()]
        del opened["card"]
        opened["card"] = fixed(card.replace('"gaussian"', f'"{code}"'))
    with pytest.raises(ModelFileError):
        load(tmp_path / "a.h5")
    assert not (tmp_path / "ran").exists()
