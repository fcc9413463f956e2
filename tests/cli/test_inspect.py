"""`streamkern inspect`: what files hold, and what a fit would need."""

import json

import h5py
import hdf5plugin
import numpy as np
import pytest
from commandline import report_of, streamkern, write
from h5py import h5t

from streamkern.errors import DataError
from streamkern.estimators.problems import Regression
from streamkern.parameters.parameters import Parameters
from streamkern.sources import open_hdf5
from streamkern.sources.headers import describe_file


@pytest.fixture
def data(tmp_path):
    for name, n in (("b.h5", 500), ("a.h5", 1500)):
        with h5py.File(tmp_path / name, "w") as file:
            file.create_dataset(
                "X", data=np.zeros((n, 6), "f4"), chunks=(100, 3), compression="gzip", shuffle=True
            )
            file["y"] = np.zeros(n)
            file["notes/where"] = "here"
    return tmp_path


def planned(path):
    return Regression().job(Parameters()).plan(open_hdf5(path))


def result(*arguments):
    return report_of("inspect", *arguments)


def test_every_dataset_of_every_file_is_listed(data):
    found = result(data / "b.h5", data / "a.h5")
    assert [file["path"] for file in found["files"]] == [str(data / "b.h5"), str(data / "a.h5")]
    for file, n in zip(found["files"], (500, 1500), strict=True):
        rows = {dataset.pop("name"): dataset for dataset in file["datasets"]}
        stored = rows["X"].pop("stored_bytes")
        assert 0 < stored < n * 6 * 4
        X = {"shape": [n, 6], "dtype": "float32", "chunks": [100, 3], "bytes": n * 6 * 4}
        y = {"shape": [n], "dtype": "float64", "chunks": None, "bytes": n * 8}
        assert rows == {
            "X": X | {"compression": "shuffle + deflate"},
            "y": y | {"compression": "", "stored_bytes": n * 8},
            "notes/where": {**rows["notes/where"], "shape": [], "dtype": "text", "chunks": None},
        }


def test_a_fit_is_planned_for_all_rows_together(data):
    found = result(str(data / "*.h5"), "--components", "512")
    assert [file["path"] for file in found["files"]] == [str(data / "a.h5"), str(data / "b.h5")]
    how = ("--components", "512", "--dry-run", "--out", data / "model.h5")
    planned = report_of("fit", str(data / "?.h5"), *how)
    for each in (found["fit"], planned):
        del each["allowed_bytes"]  # of the memory free just then
    assert planned.items() >= found["fit"].items()


def test_too_few_rows_for_a_fit_are_described_all_the_same(tmp_path):
    with h5py.File(tmp_path / "few.h5", "w") as file:
        file["X"], file["y"] = np.zeros((4, 2)), np.zeros(4)
    found = result(tmp_path / "few.h5")
    assert found["fit"] is None
    assert [each["name"] for each in found["files"][0]["datasets"]] == ["X", "y"]
    assert "5 folds need as many rows" in streamkern("inspect", tmp_path / "few.h5").stderr


@pytest.mark.parametrize(
    ("options", "missing"), [(("--x", "inputs"), "'inputs'"), (("--y", "price"), "'price'")]
)
def test_a_file_without_the_datasets_named_is_still_listed(data, options, missing):
    done = streamkern("inspect", data / "a.h5", *options)
    assert "1,500 x 6" in done.stdout
    assert "shards" not in done.stdout
    assert f"no dataset {missing}; it holds: X, notes/where, y. Name the datasets" in done.stderr
    found = result(data / "a.h5", *options)
    assert found["fit"] is None
    assert len(found["files"][0]["datasets"]) == 3


@pytest.fixture
def odd(tmp_path):
    """A file with types that NumPy has not, and names that are not UTF-8."""
    three = h5t.STD_I32LE.copy()
    three.set_size(3)
    kinds = {b"time": h5t.UNIX_D32LE, b"three": three, b"reference": h5t.STD_REF_OBJ}
    kinds |= {b"caf\xe9": h5t.IEEE_F64BE, b"long": h5t.NATIVE_LDOUBLE, b"bits": h5t.STD_B16LE}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, kind in kinds.items():
            h5py.h5d.create(file.id, name, kind, h5py.h5s.create_simple((4, 2)))
        file["y"] = np.zeros(4)
    return tmp_path / "a.h5"


def test_types_and_names_of_any_kind_are_listed(odd):
    found = {item.name: (item.dtype, item.bytes) for item in describe_file(odd)}
    assert found == {
        "bits": ("uint16", 16),
        "caf\udce9": (">f8", 64),
        "long": ("float128", 128),
        "reference": ("object", 64),
        "three": ("integers of 24 bits", 24),
        "time": ("times of 32 bits", 32),
        "y": ("float64", 32),
    }
    shown = streamkern("inspect", odd, "--json")
    assert "it holds: bits, caf\\udce9, long" in shown.stderr
    listed = json.loads(shown.stdout.splitlines()[-1])["files"][0]["datasets"]
    assert [each["name"] for each in listed] == list(found)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("time", "must hold floats or integers, but its type is times of 32 bits"),
        ("three", "must hold floats or integers, but its type is integers of 24 bits"),
        ("caf\udce9", r"names of datasets must be UTF-8, but caf\udce9 is not; rename it"),
    ],
)
def test_rows_of_such_types_and_names_are_refused_in_one_sentence(odd, name, why):
    assert why in streamkern("inspect", odd, "--x", name).stderr


def test_a_fit_to_labels_is_planned_where_they_are_said_to_be_labels(tmp_path):
    labels = write(tmp_path / "labels.h5", np.zeros((90, 2)), np.array(["a", "b", "c"] * 30))
    said = streamkern("inspect", labels).output
    assert "no fit to plan" in said
    assert "take a classifier (--classify)" in said
    found = result(labels, "--classify", "--components", 64)
    targets = write(tmp_path / "targets.h5", np.zeros((90, 2)), np.zeros((90, 3)))
    alike = result(targets, "--components", 64)
    assert found["fit"]["worker_bytes"] == pytest.approx(alike["fit"]["worker_bytes"], rel=0.01)


def test_contents_name_every_kind_of_storage(tmp_path):
    layout = h5py.VirtualLayout((4, 2), "f8")
    layout[:] = h5py.VirtualSource(write(tmp_path / "part.h5", np.zeros((4, 2))), "X", (4, 2))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("zstd", data=np.zeros((9, 2)), chunks=(3, 2), **hdf5plugin.Zstd())
        file.create_dataset("empty", data=h5py.Empty("f4"))
        file.create_dataset("pairs", data=np.zeros(3, [("u", "i2"), ("v", "f4")]))
    empty, pairs, virtual, zstd = describe_file(tmp_path / "a.h5")
    assert (empty.name, empty.shape) == ("empty", ())
    assert (pairs.name, pairs.dtype) == ("pairs", "[('u', '<i2'), ('v', '<f4')]")
    assert (virtual.name, virtual.compression) == ("virtual", "virtual")
    assert (zstd.name, zstd.chunks, "zstd" in zstd.compression) == ("zstd", (3, 2), True)


def test_damaged_headers_are_one_sentence(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="v110") as file:
        file["X"] = np.zeros((4, 2))
        header = h5py.h5o.get_info(file["X"].id).addr
    damaged = bytearray(path.read_bytes())
    damaged[header + 10] ^= 255
    path.write_bytes(damaged)
    with pytest.raises(DataError, match=r"a\.h5 has damaged headers .*; copy it again"):
        describe_file(path)


def test_people_see_datasets_and_the_plan(data):
    done = streamkern("inspect", data / "a.h5")
    assert done.stderr == ""
    for words in ("1,500 x 6", "float32", "100 x 3", "notes/where", "text", "none", "36 kB"):
        assert words in done.stdout
    for name, value in planned(data / "a.h5").rows():
        assert name in done.stdout
        if name not in ("memory allowed", "time of the pass"):  # as they are just then
            assert value in done.stdout
