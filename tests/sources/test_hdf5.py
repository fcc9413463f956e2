"""Rows in HDF5 files: every storage, every type, every way of being wrong."""

import json
import pickle
import tempfile
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import pytest
from commandline import without_privileges
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_read import python, store, together

from streamkern.errors import DataError
from streamkern.sources import open_hdf5
from streamkern.sources.nonfinite_rows import bad_rows_error

SINGLE = ["f2", "f4", ">f4", "i1", "u1", "i2", ">i2", "u2"]
DOUBLE = ["f8", ">f8", "i4", "u4", "i8", "u8"]
STORAGES = {
    "contiguous": {},
    "chunked": {"chunks": (7, 3)},
    "one row a chunk": {"chunks": (1, 3)},
    "chunks of columns": {"chunks": (20, 1)},
    "chunks larger than the block": {"chunks": (40, 3)},
    "gzip": {"chunks": (7, 3), "compression": "gzip"},
    "gzip shuffle": {"chunks": (7, 3), "compression": "gzip", "shuffle": True},
    "lzf": {"chunks": (7, 3), "compression": "lzf"},
    "fletcher32": {"chunks": (7, 3), "fletcher32": True},
    "scaleoffset": {"chunks": (7, 3), "dtype": "i4", "scaleoffset": 0},
    "resizable": {"chunks": (7, 3), "maxshape": (None, 3)},
    "blosc": {"chunks": (7, 3), "compression": hdf5plugin.Blosc()},
    "blosc2": {"chunks": (7, 3), "compression": hdf5plugin.Blosc2()},
    "bitshuffle": {"chunks": (8, 3), "compression": hdf5plugin.Bitshuffle()},
    "zstd": {"chunks": (7, 3), "compression": hdf5plugin.Zstd()},
    "lz4": {"chunks": (7, 3), "compression": hdf5plugin.LZ4()},
}


def table(n=61, p=3, dtype="f4", seed=0):
    """Return rows that every dtype holds exactly, extremes among them where there is room."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    X = rng.integers(0 if kind.kind == "u" else -100, 100, (n, p)).astype(kind)
    if kind.kind in "iu" and kind.itemsize < 8 and n:
        X[0, 0], X[-1, -1] = np.iinfo(kind).min, np.iinfo(kind).max
    if kind.kind == "f" and n:
        X[0, 0], X[-1, -1] = np.finfo(kind).tiny, np.finfo(kind).max
    return X


@pytest.mark.parametrize("dtype", SINGLE + DOUBLE)
def test_every_number_type_is_read_exactly(tmp_path, dtype):
    X = table(dtype=dtype)
    source = open_hdf5(store(tmp_path / "a.h5", X, X[:, 0]))
    expected = np.float32 if dtype in SINGLE else np.float64
    read, y, _ = together(source, 20)
    assert source.dtype == read.dtype == expected
    kind = np.dtype(dtype)
    assert source.rounding == (np.finfo(kind).eps if kind.kind == "f" else 0)
    np.testing.assert_array_equal(read, X.astype(expected))
    np.testing.assert_array_equal(read.astype(X.dtype), X)
    np.testing.assert_array_equal(y[:, 0], X[:, 0].astype(np.float64))


@pytest.mark.parametrize("storage", STORAGES)
def test_every_storage_reads_as_the_data(tmp_path, storage):
    X = np.random.default_rng(0).integers(-1000, 1000, (61, 3)).astype("f4")
    y = np.arange(61.0)
    source = open_hdf5(store(tmp_path / "a.h5", X, y, **STORAGES[storage]))
    for block_rows in (1, 7, 16, 61, 100):
        read = together(source, 25, block_rows)
        np.testing.assert_array_equal(read[0], X)
        np.testing.assert_array_equal(read[1][:, 0], y)


def test_a_fresh_process_reads_plugin_filters_from_a_pickled_reader(tmp_path):
    X = table(dtype="f8")
    path = store(tmp_path / "a.h5", X, X[:, 0], chunks=(7, 3), compression=hdf5plugin.Zstd())
    source = open_hdf5(path)
    (tmp_path / "reader").write_bytes(pickle.dumps(source.reader(source.shards(100)[0])))
    code = (
        "import pickle, sys; reader = pickle.load(open(sys.argv[1], 'rb'));"
        "assert 'hdf5plugin' not in sys.modules;"
        "print(repr([b.X.tolist() for b in reader.blocks(1000)]))"
    )
    done = python(code, tmp_path / "reader")
    assert done.stdout.strip() == repr([X.tolist()])


@pytest.mark.parametrize("q", [(), (1,), (4,)])
def test_targets_keep_their_columns(tmp_path, q):
    y = np.random.default_rng(1).standard_normal((61, *q))
    source = open_hdf5(store(tmp_path / "a.h5", table(), y))
    assert (source.n_targets, source.target_ndim) == (sum(q) or 1, y.ndim)
    np.testing.assert_array_equal(together(source, 20)[1], y.reshape(61, -1))


def test_a_pattern_is_the_files_sorted_by_name(tmp_path):
    parts = {name: table(5, seed=i) for i, name in enumerate(("p-2", "p-10", "p-1"))}
    for name, part in parts.items():
        store(tmp_path / f"{name}.h5", part)
    read = together(open_hdf5(str(tmp_path / "p-*.h5"), y=None))
    np.testing.assert_array_equal(read[0], np.concatenate([parts[n] for n in sorted(parts)]))
    assert read[1].shape == (15, 0)


def test_a_name_with_brackets_is_a_file_where_there_is_one(tmp_path):
    path = store(tmp_path / "run[1].h5", table())
    np.testing.assert_array_equal(together(open_hdf5(path, y=None))[0], table())


def test_files_of_different_types_are_read_in_the_wider_one(tmp_path):
    narrow, wide = table(dtype="f4"), table(dtype="f8", seed=1)
    paths = [store(tmp_path / "a.h5", narrow), store(tmp_path / "b.h5", wide)]
    read = together(open_hdf5(paths, y=None))
    assert read[0].dtype == np.float64
    np.testing.assert_array_equal(read[0], np.concatenate([narrow, wide]))


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=4).filter(sum),
    chunk_rows=st.integers(1, 12),
    shard_rows=st.integers(1, 80),
    block_rows=st.integers(1, 80),
)
def test_blocks_put_together_are_the_data(sizes, chunk_rows, shard_rows, block_rows):
    X = np.random.default_rng(0).standard_normal((sum(sizes), 2))
    y = np.arange(sum(sizes))
    with tempfile.TemporaryDirectory() as folder:
        paths, start = [], 0
        for i, size in enumerate(sizes):
            rows = slice(start, start + size)
            options = {"chunks": (chunk_rows, 2), "maxshape": (None, 2)} if i != 1 else {}
            paths.append(store(Path(folder) / f"{i}.h5", X[rows], y[rows], **options))
            start += size
        read = together(open_hdf5(paths), shard_rows, block_rows)
    np.testing.assert_array_equal(read[0], X)
    np.testing.assert_array_equal(read[1][:, 0], y)


def test_a_row_is_located_in_its_file(tmp_path):
    paths = [store(tmp_path / f"{name}.h5", table(10)) for name in "ab"]
    source = open_hdf5(paths, y=None)
    assert source.locate(9) == f"{paths[0]}, row 9"
    assert source.locate(13) == f"{paths[1]}, row 3"
    with pytest.raises(DataError, match=r"2 of 20 rows .* the first at .*b\.h5, row 3; .* skip"):
        raise bad_rows_error(source, 2, 13)


def test_readers_pickle_small_and_read_the_same(tmp_path):
    X = table(5000)
    path = store(tmp_path / "a.h5", X, X[:, 0], chunks=(7, 3))
    source = open_hdf5(path)
    for shard in source.shards(2000):
        sent = pickle.dumps(source.reader(shard))
        assert len(sent) < 2000
        blocks = [block.X.copy() for block in pickle.loads(sent).blocks(900)]  # noqa: S301
        assert [len(block) for block in blocks[:-1]] == [900] * (shard.n_rows // 900)
        np.testing.assert_array_equal(np.concatenate(blocks), X[shard.start : shard.stop])


def test_a_block_stays_as_it_is_while_the_next_is_read(tmp_path):
    source = open_hdf5(store(tmp_path / "a.h5", table(), np.arange(61)))
    blocks = source.reader(source.shards(100)[0]).blocks(30)
    first, _ = next(blocks), next(blocks)
    np.testing.assert_array_equal(first.X, table()[:30])


def test_a_description_is_plain_json_with_the_storage(tmp_path):
    path = store(tmp_path / "a.h5", table(), np.arange(61), chunks=(7, 3), compression="gzip")
    described = json.loads(json.dumps(open_hdf5(path).describe()))
    assert described["rows"] == 61
    (file,) = described["files"]
    assert file["storage"] == "chunks 7x3, deflate"
    assert file["file_bytes"] == path.stat().st_size


def test_relative_paths_are_kept_absolute_for_workers_elsewhere(tmp_path, monkeypatch):
    store(tmp_path / "a.h5", table())
    monkeypatch.chdir(tmp_path)
    source = open_hdf5("a.h5", y=None)
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(together(source)[0], table())


# What is refused.

REFUSED = {
    "an absent dataset": (
        {"group/features": (6, 2), "y": 6},
        r"no dataset 'X'; it holds: group/features, y\. .*--x",
    ),
    "a group": ({"X/values": (6, 2), "y": 6}, "no dataset 'X'; it holds: X/values"),
    "no datasets": ({}, "it holds: none"),
    "a number": ({"X": (), "y": 6}, "X must be 2-D"),
    "one column": ({"X": 6, "y": 6}, "X must be 2-D"),
    "three dimensions": ({"X": (6, 2, 2), "y": 6}, "X must be 2-D"),
    "one target": ({"X": (6, 2), "y": ()}, r"y must have shape \(n,\) or \(n, q\)"),
    "targets in tables": ({"X": (6, 2), "y": (6, 2, 2)}, r"y must have shape \(n,\)"),
    "targets without columns": ({"X": (6, 2), "y": (6, 0)}, r"y must have shape \(n,\)"),
    "more targets": ({"X": (6, 2), "y": 7}, "X has 6 rows but y has 7"),
    "no rows": ({"X": (0, 2), "y": 0}, "zero rows; at least one is needed"),
    "no columns": ({"X": (5, 0), "y": 5}, "no columns; at least one is needed"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_datasets_that_are_no_rows_are_refused(tmp_path, what):
    shapes, why = REFUSED[what]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, shape in shapes.items():
            file[name] = np.zeros(shape)
    with pytest.raises(DataError, match=why):
        open_hdf5(tmp_path / "a.h5")


def test_paths_that_are_no_files_of_rows_are_refused(tmp_path):
    wide, many = np.zeros((6, 3)), np.zeros((6, 2))
    first = store(tmp_path / "2.h5", wide[:, :2], wide[:, 0])
    columns = [first, store(tmp_path / "3.h5", wide, wide[:, 0])]
    targets = [first, store(tmp_path / "q.h5", wide[:, :2], many)]
    for name, content in (("empty", b""), ("text", b"a,b\n1,2\n"), ("zeros", bytes(5000))):
        (tmp_path / name).write_bytes(content)
    for paths, why in (
        (tmp_path / "none.h5", r"none\.h5 does not exist; check the path"),
        (str(tmp_path / "*.hdf"), "no file matches"),
        (tmp_path, "is a folder, not an HDF5 file"),
        ([], "no files are named"),
        (tmp_path / "empty", "is not an HDF5 file; `streamkern convert`"),
        (tmp_path / "text", "is not an HDF5 file; `streamkern convert`"),
        (tmp_path / "zeros", "is not an HDF5 file; `streamkern convert`"),
        (columns, r"2\.h5 has 2 inputs and targets \(n,\) and .*3\.h5 has 3 inputs"),
        (targets, "must have the same columns"),
    ):
        with pytest.raises(DataError, match=why):
            open_hdf5(paths)


@pytest.mark.parametrize(
    ("shape", "block_rows"), [((1, 3), 7), ((20, 3), 50), ((49, 3), 7), ((50, 2), 50)]
)
def test_a_file_that_shrank_after_it_was_described_is_an_error(tmp_path, shape, block_rows):
    source = open_hdf5(store(tmp_path / "a.h5", table(50), np.zeros(50)))
    store(tmp_path / "a.h5", table(*shape), np.zeros(shape[0]))
    # h5py repeats one row into as many as are asked for.
    with pytest.raises(DataError, match=r"a\.h5"):
        together(source, block_rows=block_rows)


DAMAGE = """
import sys
from pathlib import Path
from streamkern.errors import DataError
from streamkern.sources import open_hdf5

path, start, stop = Path(sys.argv[1]), *map(int, sys.argv[2:])
whole, refused = path.read_bytes(), 0
for place in range(start, stop):
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
    try:
        source = open_hdf5(path)
        list(source.reader(source.shards(10**9)[0]).blocks(7))
    except DataError:
        refused += 1
print(refused > 10)
"""


def test_damage_in_the_header_of_a_dataset_is_never_a_traceback(tmp_path):
    path = store(tmp_path / "a.h5", table(), np.arange(61.0))
    with h5py.File(path) as file:
        header = h5py.h5o.get_info(file["X"].id).addr
    # In a process of its own, since HDF5 may crash on damaged files.
    done = python(DAMAGE, path, header, header + 60)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize(
    ("values", "called"),
    [
        (np.full((6, 2), "ab", h5py.string_dtype()), "text"),
        (np.zeros((6, 2), "c8"), "complex64"),
        (np.zeros((6, 2), [("a", "f4"), ("b", "i4")]), "'a'"),
    ],
    ids=["text", "complex", "compound"],
)
def test_values_that_are_not_numbers_are_refused(tmp_path, values, called):
    for role in "Xy":
        path = store(tmp_path / "a.h5", **{"X": np.zeros((6, 2)), "y": np.zeros(6), role: values})
        words = f"{role} must hold floats or integers, but its type is .*{called}"
        with pytest.raises(DataError, match=words):
            open_hdf5(path)


def test_named_integers_are_read_as_integers(tmp_path):
    colours = h5py.enum_dtype({"red": 0, "blue": 1}, "i4")
    codes = np.arange(12, dtype="i4").reshape(6, 2) % 2
    path = store(tmp_path / "a.h5", codes.astype(colours))
    np.testing.assert_array_equal(together(open_hdf5(path, y=None))[0], codes)


def test_a_filter_that_nobody_has_is_named(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((6, 2))
        properties.set_filter(32099, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple((6, 2))
        h5py.h5d.create(file.id, b"X", h5py.h5t.IEEE_F32LE, space, properties)
    with pytest.raises(DataError, match=r"a\.h5: X is compressed with the filter .*\(32099\)"):
        open_hdf5(path, y=None)


def test_a_file_in_a_folder_that_may_not_be_entered_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        path = store(Path(folder) / "a.h5", table())
        Path(folder).chmod(0)
        with without_privileges(), pytest.raises(DataError, match="permission denied"):
            open_hdf5(path, y=None)
        Path(folder).chmod(0o755)
