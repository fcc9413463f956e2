"""Tables in other formats become HDF5 with the same numbers, or a sentence."""

import gzip
import json
import os
import pickle
import zipfile

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from rows_read import inside, python

from streamkern.errors import DataError, OutputError
from streamkern.extensions.tables import stored_tables
from streamkern.extensions.tables.table_conversion import convert
from streamkern.sources import open_hdf5


def frame(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.standard_normal((n, 4)), columns=["a", "b", "price", "c"])


def read(path):
    with h5py.File(path) as file:
        return {name: file[name][:] for name in ("X", "y") if name in file}


def names(path):
    with h5py.File(path) as file:
        return {name: json.loads(file.attrs[name]) for name in ("feature_names", "target_names")}


WRITERS = {
    "t.CSV": lambda table, path: table.to_csv(path, index=False),
    "t.csv.gz": lambda table, path: table.to_csv(path, index=False),
    "t.tsv.gz": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    "t.parquet": lambda table, path: table.to_parquet(path),
}


@pytest.fixture(params=WRITERS)
def table_file(request, tmp_path):
    def write(table):
        WRITERS[request.param](table, tmp_path / request.param)
        return tmp_path / request.param

    return write


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(stored_tables, "PIECE_BYTES", 2000)


def test_a_table_is_the_same_numbers_bit_for_bit(table_file, tmp_path, small_pieces):
    table, out = frame(1000), tmp_path / "o.h5"
    result = convert(table_file(table), out, targets=["price"])
    written = read(out)
    np.testing.assert_array_equal(written["X"], table[["a", "b", "c"]].to_numpy())
    np.testing.assert_array_equal(written["y"], table["price"].to_numpy())
    assert written["X"].dtype == written["y"].dtype == np.float64
    assert names(out) == {"feature_names": ["a", "b", "c"], "target_names": ["price"]}
    counts = {"rows": 1000, "n_features": 3, "n_targets": 1, "missing_rows": 0}
    assert result == counts | {"output": str(out)}
    source = open_hdf5(out)
    assert (source.n_samples, source.n_features, source.n_targets) == (1000, 3, 1)
    with h5py.File(out) as file:
        assert file["X"].chunks
        assert file.attrs["source"].startswith("t.")


def test_targets_that_do_not_fit_the_columns_are_refused(table_file, tmp_path):
    many = pd.DataFrame(np.zeros((2, 50)), columns=[f"x{j}" for j in range(50)])
    for table, targets, why in (
        (frame(), ["cost"], "no column 'cost'; its columns are a, b, price, c"),
        (frame(), (), r"needs a target; .*--target\), of: a, b, price, c"),
        (many, ["cost"], r"x0, .*x19 and 30 more"),
        (frame(), ["c", "c"], "name every target once"),
        (frame(), ["a", "b", "c", "price"], "no columns but targets"),
        (frame(0), ["price"], "has no rows; at least one is needed"),
    ):
        with pytest.raises(DataError, match=why):
            convert(table_file(table), tmp_path / "o.h5", targets=targets)
        assert not (tmp_path / "o.h5").exists()


@pytest.mark.parametrize("fields", ["1,2", "1,2,3,4", "1"])
@pytest.mark.parametrize("line", [1, 400])
def test_lines_of_unequal_length_are_refused_with_their_number(tmp_path, fields, line):
    lines = ["a,b,c", *["1,2,3"] * 500]
    lines[line] = fields
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with pytest.raises(
        DataError, match=rf"Row #{line + 1}: Expected 3 columns, got {len(fields) // 2 + 1}"
    ):
        convert(tmp_path / "t.csv", tmp_path / "o.h5", targets=["a"])


@pytest.mark.parametrize(
    ("text", "X"),
    [
        ("a,b\n1, 2.5\n3, 4\n", [2.5, 4]),
        ("a,b\r\n1,2.5\r\n3,4\r\n", [2.5, 4]),
        ("\ufeffa,b\n1,2.5\n3,4", [2.5, 4]),
        ("a,b\n1,2.5\n\n3,4\n", [2.5, 4]),
        ('"a","b"\n"1","2.5"\n"3","4"\n', [2.5, 4]),
        ("a,b\n1,inf\n3,-1e300\n", [np.inf, -1e300]),
        ("a,b\n1,NA\n3,\n2,4\n3,8\n", [6, 6, 4, 8]),
        ("a,b\n1,0.1\n3,5e-324\n", [0.1, 5e-324]),
        ("a,b\n1,9007199254740993\n3,1.7976931348623157e308\n", [2.0**53, 1.7976931348623157e308]),
    ],
)
def test_numbers_are_read_as_people_write_them(tmp_path, text, X):
    (tmp_path / "t.csv").write_text(text, newline="")
    convert(tmp_path / "t.csv", tmp_path / "o.h5", targets=["a"])
    np.testing.assert_array_equal(read(tmp_path / "o.h5")["X"][:, 0], X)
    np.testing.assert_array_equal(read(tmp_path / "o.h5")["y"][:2], [1, 3])


@pytest.mark.parametrize(
    ("dtype", "single"),
    [(dtype, True) for dtype in ("f2", "f4", "i1", "u1", "i2", "u2", "?")]
    + [(dtype, False) for dtype in ("f8", "i4", "u4", "i8", "u8")],
)
def test_columns_are_single_where_that_holds_every_value(tmp_path, dtype, single):
    values = np.array([0, 1, 1], dtype)
    if dtype[0] in "iu" and dtype[1] != "8":
        values[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    parquet.write_table(
        pa.table({"a": pa.array(values), "b": pa.array([1, 2, 3], "int8"), "y": [1.0, 2.0, 3.0]}),
        tmp_path / "t.parquet",
    )
    convert(tmp_path / "t.parquet", tmp_path / "o.h5", targets=["y"])
    written = read(tmp_path / "o.h5")
    assert written["X"].dtype == (np.float32 if single else np.float64)
    assert written["y"].dtype == np.float64
    np.testing.assert_array_equal(written["X"][:, 0], values.astype(float))


def test_decimals_are_numbers_and_the_unnamed_index_of_pandas_is_left_out(tmp_path):
    prices = pa.array([1.25, None], pa.float64()).cast(pa.decimal128(10, 2))
    table = pa.table({"a": prices, "y": [1.0, 2.0]}).to_pandas().set_index(np.arange(2) * 2)
    parquet.write_table(pa.Table.from_pandas(table), tmp_path / "t.parquet")
    convert(tmp_path / "t.parquet", tmp_path / "o.h5", targets=["y"])
    np.testing.assert_array_equal(read(tmp_path / "o.h5")["X"], [[1.25, 0], [1.25, 1]])


@pytest.mark.parametrize(
    ("dtype", "order"), [("f4", "C"), ("f8", "F"), (">f4", "F"), ("i8", "C"), ("u1", "F")]
)
def test_npz_arrays_keep_their_type(tmp_path, small_pieces, dtype, order):
    X = np.asarray(np.arange(3000).reshape(1000, 3).astype(dtype), order=order)
    y = np.arange(1000, dtype="i2")
    np.savez(tmp_path / "t.npz", X=X, y=y, other=np.array(["words"]))
    result = convert(tmp_path / "t.npz", tmp_path / "o.h5")
    written = read(tmp_path / "o.h5")
    assert (written["X"].dtype, written["y"].dtype) == (X.dtype, y.dtype)
    np.testing.assert_array_equal(written["X"], X)
    np.testing.assert_array_equal(written["y"], y)
    assert (result["rows"], result["n_features"], result["n_targets"]) == (1000, 3, 1)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("bomb",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("t.csv", text) for text in (b"", b"\n\n", b"\x00\xff\xfe" * 100, b"a,b\xe9\n1,2\n")),
        ("t.csv.gz", gzip.compress(b"a,b\n" + b"1.25,2.5\n" * 10_000)[:100]),
        ("t.csv.gz", b"a,b\n1,2\n"),
        ("t.parquet", b"PAR1"),
        ("t.npz", b"PK"),
    ],
    ids=range(8),
)
def test_what_is_damaged_or_another_format_is_refused_and_leaves_nothing(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}.* (cannot be read|has no column)"):
        convert(tmp_path / name, tmp_path / "o.h5", targets=() if "npz" in name else ["a"])
    assert inside(tmp_path) == [name]


TABLE = np.zeros((5, 4))


@pytest.mark.parametrize(
    ("held", "targets", "why"),
    [
        ({"Z": TABLE}, (), r"needs an array X \(n, p\), but holds: Z"),
        ({"X": np.zeros(3)}, (), "X must be a table"),
        ({"X": np.zeros((0, 3))}, (), "has no rows"),
        ({"X": np.full((3, 2), "a")}, (), "X must hold numbers, not <U1"),
        ({"X": TABLE, "y": np.zeros(4)}, (), "X has 5 rows, but y has 4"),
        ({"X": TABLE, "y": np.zeros(5)}, ["y"], "as the array y; give no targets"),
    ],
)
def test_arrays_that_are_no_table_of_rows_are_refused(tmp_path, held, targets, why):
    np.savez(tmp_path / "t.npz", **held)
    with pytest.raises(DataError, match=why):
        convert(tmp_path / "t.npz", tmp_path / "o.h5", targets=targets)
    assert inside(tmp_path) == ["t.npz"]


def test_an_npz_that_claims_too_much_is_refused(tmp_path, monkeypatch):
    np.savez(tmp_path / "t.npz", X=TABLE)
    infos = zipfile.ZipFile(tmp_path / "t.npz").infolist()
    infos[0].file_size = 1 << 50
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda _: infos)
    with pytest.raises(DataError, match="is read whole, which takes"):
        convert(tmp_path / "t.npz", tmp_path / "o.h5")


@pytest.mark.parametrize("name", ["X", "y", "t.npz"])
def test_pickles_and_objects_in_numpy_files_are_refused_and_never_run(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / (name if "." in name else "t.npz")
    if name == path.name:
        path.write_bytes(pickle.dumps(Bomb()))
    else:
        arrays = {"X": np.zeros((2, 2)), "y": np.zeros(2)}
        np.savez(path, **arrays | {name: np.array([[Bomb()], [Bomb()]])})
    with pytest.raises(DataError, match="cannot be read"):
        convert(path, tmp_path / "o.h5")
    assert inside(tmp_path) == [path.name]


def test_what_is_no_table_by_its_name_is_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for name in ("t.xls", "t", "t.h5"):
        (tmp_path / name).touch()
        with pytest.raises(DataError, match=r"must end in \.csv, .*\.npz; export it"):
            convert(tmp_path / name, tmp_path / "o.h5")
    with pytest.raises(DataError, match=r"is one array, and convert takes \.npz with X and y"):
        convert(tmp_path / "t.npy", tmp_path / "o.h5")
    for name in ("none.csv", "none.parquet", "none.npz", "folder.csv"):
        with pytest.raises(DataError, match="does not exist or is not a file; check the path"):
            convert(tmp_path / name, tmp_path / "o.h5", targets=["a"])


def test_an_existing_output_survives_a_table_that_turns_out_bad(tmp_path):
    (tmp_path / "o.h5").write_bytes(b"old")
    (tmp_path / "t.csv").write_text(text := "a,b\n" + "1,2\n" * 10 + "1,red\n")
    with pytest.raises(DataError, match="'red'"):
        convert(tmp_path / "t.csv", tmp_path / "o.h5", targets=["a"], force=True)
    assert (tmp_path / "o.h5").read_bytes() == b"old"
    with pytest.raises(OutputError, match="is an input of this job"):
        convert(tmp_path / "t.csv", tmp_path / "t.csv", targets=["a"], force=True)
    assert inside(tmp_path) == ["o.h5", "t.csv"]
    assert (tmp_path / "t.csv").read_text() == text


BOUNDED = """
import sys
from streamkern.extensions.tables import stored_tables
from streamkern.extensions.tables import table_conversion
from streamkern.extensions.tables.table_conversion import convert
from streamkern.runtime.memory import peak_bytes

stored_tables.PIECE_BYTES = table_conversion._PIECE_BYTES = 1 << 18
small, large, out = sys.argv[1:]
convert(small, out, targets=["x0"])
before = peak_bytes()
result = convert(large, out, targets=["x0"], force=True)
print(result["rows"], result["n_features"], peak_bytes() - before)
"""


@pytest.mark.parametrize(("kind", "copies", "n_features"), [("csv", 30, 9), ("parquet", 50, 9)])
def test_memory_does_not_grow_with_the_file(tmp_path, kind, copies, n_features):
    rng, n = np.random.default_rng(0), 20_000
    table = pd.DataFrame(rng.random((n, 10))).add_prefix("x")
    small, large = tmp_path / f"small.{kind}", tmp_path / f"large.{kind}"
    if kind == "parquet":
        plain = {"use_dictionary": False, "compression": "none", "row_group_size": 1 << 20}
        rows = pa.Table.from_pandas(table)
        parquet.write_table(rows, small)
        parquet.write_table(pa.concat_tables([rows] * copies), large, **plain)
        size = large.stat().st_size
    else:
        head, _, body = table.to_csv(index=False).partition("\n")
        small.write_text(f"{head}\n" + body * (copies // 8))
        large.write_text(f"{head}\n" + body * copies)
        size = copies * len(body)
    done = python(BOUNDED, small, large, tmp_path / "o.h5")
    rows, made, grown = map(int, done.stdout.split())
    assert (rows, made) == (copies * n, n_features)
    assert size > 70e6
    assert grown < size / 2, (size, grown)  # blocks that are read ahead, as there is time


@pytest.mark.parametrize("ending", ["", "\n", "\n\n"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_quotation_mark_that_is_never_closed_loses_no_rows(tmp_path, name, ending):
    lines = [f"{i},{'yes' if i % 2 else 'no'}" for i in range(90)]
    lines[50] = '50,"yes'
    text = "\n".join(["price,said", *lines]) + ending
    packed = gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
    (tmp_path / name).write_bytes(packed)
    with pytest.raises(DataError, match="a quotation mark is never closed"):
        convert(tmp_path / name, tmp_path / "o.h5", targets=["price"])
