"""Rows in HDF5 files: every storage, every type, every way of being wrong."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import pytest
from commandline import without_privileges
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkern.errors import DataError
from streamkern.sources import HDF5Source, open_hdf5

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


def store(path, X, y=None, *, x_name="X", y_name="y", **options):
    with h5py.File(path, "w") as file:
        file.create_dataset(x_name, data=X, **options)
        if y is not None:
            file[y_name] = y
    return path


def together(source, shard_rows=10**9, block_rows=7):
    """Read a source to the end, checking that every block is where it says."""
    X, y, at = [], [], 0
    for shard in source.shards(shard_rows):
        assert shard.start == at
        for block in source.reader(shard).blocks(block_rows):
            assert block.start == at
            assert 0 < len(block) <= block_rows
            assert block.y.dtype == np.float64
            assert block.weights is None
            X.append(block.X.copy())
            y.append(block.y.copy())
            at += len(block)
        assert shard.stop == at
    assert at == source.n_samples
    return np.concatenate(X), np.concatenate(y)


@pytest.mark.parametrize("dtype", SINGLE + DOUBLE)
def test_every_number_type_is_read_exactly(tmp_path, dtype):
    X = table(dtype=dtype)
    source = open_hdf5(store(tmp_path / "a.h5", X, np.arange(61)))
    expected = np.float32 if dtype in SINGLE else np.float64
    read, _ = together(source, 20)
    assert source.dtype == read.dtype == expected
    np.testing.assert_array_equal(read, X.astype(expected))
    np.testing.assert_array_equal(read.astype(X.dtype), X)


@pytest.mark.parametrize("dtype", SINGLE + DOUBLE)
def test_targets_of_every_number_type_are_read_as_doubles(tmp_path, dtype):
    y = table(p=1, dtype=dtype)[:, 0]
    _, read = together(open_hdf5(store(tmp_path / "a.h5", table(), y)), 20)
    np.testing.assert_array_equal(read[:, 0], y.astype(np.float64))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("block_rows", [1, 7, 16, 61, 100])
def test_every_storage_reads_as_the_data(tmp_path, storage, block_rows):
    options = dict(STORAGES[storage])
    X = np.random.default_rng(0).integers(-1000, 1000, (61, 3)).astype("f4")
    y = np.arange(61.0)
    source = open_hdf5(store(tmp_path / "a.h5", X, y, **options))
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
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code, tmp_path / "reader"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == repr([X.tolist()])


@pytest.mark.parametrize(
    ("y_shape", "n_targets", "target_ndim"), [((61,), 1, 1), ((61, 1), 1, 2), ((61, 4), 4, 2)]
)
def test_targets_keep_their_columns(tmp_path, y_shape, n_targets, target_ndim):
    y = np.random.default_rng(1).standard_normal(y_shape)
    source = open_hdf5(store(tmp_path / "a.h5", table(), y))
    assert (source.n_targets, source.target_ndim) == (n_targets, target_ndim)
    np.testing.assert_array_equal(together(source, 20)[1], y.reshape(61, -1))


def test_inputs_without_targets_have_blocks_with_no_target_columns(tmp_path):
    source = open_hdf5(store(tmp_path / "a.h5", table()), y=None)
    assert source.n_targets == 0
    X, y = together(source, 20)
    np.testing.assert_array_equal(X, table())
    assert y.shape == (61, 0)


def test_datasets_are_found_by_the_names_given(tmp_path):
    X = table()
    path = store(tmp_path / "a.h5", X, X[:, 1], x_name="train/inputs", y_name="train/price")
    read = together(open_hdf5(path, "train/inputs", "train/price"))
    np.testing.assert_array_equal(read[0], X)
    np.testing.assert_array_equal(read[1][:, 0], X[:, 1])


def test_a_virtual_dataset_reads_as_the_files_it_names(tmp_path):
    parts = [table(n, seed=n) for n in (20, 30, 11)]
    layout = h5py.VirtualLayout((61, 3), "f4")
    start = 0
    for i, part in enumerate(parts):
        path = store(tmp_path / f"{i}.h5", part)
        layout[start : start + len(part)] = h5py.VirtualSource(path, "X", part.shape)
        start += len(part)
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
        file["y"] = np.arange(61)
    source = open_hdf5(tmp_path / "all.h5")
    np.testing.assert_array_equal(together(source, 25)[0], np.concatenate(parts))
    assert source.describe()["files"][0]["storage"] == "virtual"


def test_a_virtual_dataset_whose_file_is_missing_is_refused_not_read_as_zeros(tmp_path):
    part = store(tmp_path / "part.h5", table(60))
    layout = h5py.VirtualLayout((60, 3), "f4")
    layout[:] = h5py.VirtualSource(part, "X", (60, 3))
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    part.unlink()
    with pytest.raises(DataError, match=r"part\.h5"):
        together(open_hdf5(tmp_path / "all.h5", y=None))


def test_several_files_are_rows_in_the_order_given(tmp_path):
    parts = {name: table(n, seed=n) for name, n in (("b", 20), ("a", 31), ("c", 9))}
    paths = [store(tmp_path / f"{k}.h5", v, v[:, 0], chunks=(8, 3)) for k, v in parts.items()]
    X = np.concatenate(list(parts.values()))
    for block_rows in (1, 7, 25, 60):  # 25 crosses the files
        read = together(open_hdf5(paths), 60, block_rows)
        np.testing.assert_array_equal(read[0], X)
        np.testing.assert_array_equal(read[1][:, 0], X[:, 0])


def test_a_block_may_cross_more_than_two_files(tmp_path):
    parts = [table(n, seed=n) for n in (3, 2, 4)]
    paths = [store(tmp_path / f"{i}.h5", part) for i, part in enumerate(parts)]
    source = open_hdf5(paths, y=None)
    (block,) = source.reader(source.shards(100)[0]).blocks(100)
    np.testing.assert_array_equal(block.X, np.concatenate(parts))


def test_a_pattern_is_the_files_sorted_by_name(tmp_path):
    parts = {name: table(5, seed=i) for i, name in enumerate(("p-2", "p-10", "p-1"))}
    for name, part in parts.items():
        store(tmp_path / f"{name}.h5", part)
    read, _ = together(open_hdf5(str(tmp_path / "p-*.h5"), y=None))
    np.testing.assert_array_equal(read, np.concatenate([parts[n] for n in sorted(parts)]))


def test_a_name_with_brackets_is_a_file_where_there_is_one(tmp_path):
    path = store(tmp_path / "run[1].h5", table())
    np.testing.assert_array_equal(together(open_hdf5(path, y=None))[0], table())


def test_files_of_different_types_are_read_in_the_wider_one(tmp_path):
    narrow, wide = table(dtype="f4"), table(dtype="f8", seed=1)
    paths = [store(tmp_path / "a.h5", narrow), store(tmp_path / "b.h5", wide)]
    read, _ = together(open_hdf5(paths, y=None))
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read, np.concatenate([narrow, wide]))


def test_an_empty_file_among_others_adds_no_rows(tmp_path):
    paths = [store(tmp_path / f"{i}.h5", table(n)) for i, n in enumerate((5, 0, 6))]
    read, _ = together(open_hdf5(paths, y=None), 4)
    np.testing.assert_array_equal(read, np.concatenate([table(5), table(6)]))


@settings(max_examples=40, deadline=None)
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


def test_missing_values_reach_the_blocks_and_are_found_there(tmp_path):
    X = table(dtype="f4")
    X[3, 1], X[8, 0] = np.nan, np.inf
    y = np.zeros(61)
    y[5] = np.nan
    source = open_hdf5(store(tmp_path / "a.h5", X, y))
    (block,) = source.reader(source.shards(100)[0]).blocks(100)
    assert np.flatnonzero(~block.finite()).tolist() == [3, 5, 8]
    assert block.where(block.finite()).places().tolist() == [
        i for i in range(61) if i not in (3, 5, 8)
    ]


def test_a_row_is_located_in_its_file(tmp_path):
    paths = [store(tmp_path / f"{name}.h5", table(10)) for name in "ab"]
    source = open_hdf5(paths, y=None)
    assert source.locate(9) == f"{paths[0]}, row 9"
    assert source.locate(13) == f"{paths[1]}, row 3"
    with pytest.raises(DataError, match=r"2 of 20 rows .* the first at .*b\.h5, row 3; .* skip"):
        raise source.bad_rows_error(2, 13)


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


def test_sources_pickle_and_are_equal_after(tmp_path):
    source = open_hdf5(store(tmp_path / "a.h5", table(), np.arange(61)))
    again = pickle.loads(pickle.dumps(source))  # noqa: S301
    assert isinstance(again, HDF5Source)
    assert again == source
    assert again.shards(9) == source.shards(9)


def test_a_description_is_plain_json_with_the_storage(tmp_path):
    import json

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


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"none\.h5 does not exist; check the path"):
        open_hdf5(tmp_path / "none.h5")


def test_a_pattern_without_files_is_refused(tmp_path):
    with pytest.raises(DataError, match="no file matches"):
        open_hdf5(str(tmp_path / "*.h5"))


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="is a folder, not an HDF5 file"):
        open_hdf5(tmp_path)


def test_no_paths_at_all_are_refused():
    with pytest.raises(DataError, match="file"):
        open_hdf5([])


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\x00" * 5000])
def test_a_file_that_is_not_hdf5_is_refused(tmp_path, content):
    (tmp_path / "a.h5").write_bytes(content)
    with pytest.raises(DataError, match="is not an HDF5 file; `streamkern convert`"):
        open_hdf5(tmp_path / "a.h5")


@pytest.mark.parametrize("tenth", range(1, 10))
def test_a_file_cut_short_is_refused(tmp_path, tenth):
    path = store(tmp_path / "a.h5", table(20000), np.zeros(20000), chunks=(1000, 3))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * tenth // 10])
    with pytest.raises(DataError, match=r"truncated HDF5 file.*copy it again"):
        open_hdf5(path)


def test_damage_inside_a_chunk_is_an_error_that_names_the_rows(tmp_path):
    path = tmp_path / "a.h5"
    store(path, table(100), chunks=(10, 3), fletcher32=True)
    with h5py.File(path) as file:
        place = file["X"].id.get_chunk_info(3).byte_offset
    with path.open("r+b") as raw:
        raw.seek(place)
        raw.write(b"\xff\xff\xff\xff")
    with pytest.raises(DataError, match=r"a\.h5: rows 30 to 40 of /X cannot be read"):
        together(open_hdf5(path, y=None), block_rows=10)


@pytest.mark.parametrize("left", [1, 20, 49])  # h5py repeats one row into as many as are asked
@pytest.mark.parametrize("block_rows", [7, 50])
def test_a_file_that_shrank_after_it_was_described_is_an_error(tmp_path, left, block_rows):
    source = open_hdf5(store(tmp_path / "a.h5", table(50), np.zeros(50)))
    store(tmp_path / "a.h5", table(left), np.zeros(left))
    with pytest.raises(DataError, match=r"a\.h5"):
        together(source, block_rows=block_rows)


DAMAGE = """
import sys
from pathlib import Path
from streamkern.errors import DataError
from streamkern.sources import open_hdf5

path, start, stop = Path(sys.argv[1]), *map(int, sys.argv[2:])
whole, tracebacks, refused = path.read_bytes(), set(), 0
for place in range(start, stop):
    damaged = bytearray(whole)
    damaged[place] ^= 255
    path.write_bytes(damaged)
    try:
        source = open_hdf5(path)
        for block in source.reader(source.shards(10**9)[0]).blocks(7):
            len(block)
    except DataError:
        refused += 1
    except Exception as error:
        tracebacks.add(type(error).__name__)
print(refused > 10, sorted(tracebacks))
"""


def test_damage_in_the_header_of_a_dataset_is_never_a_traceback(tmp_path):
    path = store(tmp_path / "a.h5", table(), np.arange(61.0))
    with h5py.File(path) as file:
        header = h5py.h5o.get_info(file["X"].id).addr
    # In a process of its own, since HDF5 may crash on damaged files.
    done = subprocess.run(
        [sys.executable, "-c", DAMAGE, path, str(header), str(header + 60)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("True []\n", "")


def test_an_absent_dataset_is_refused_with_a_list_of_those_present(tmp_path):
    path = store(tmp_path / "a.h5", table(), x_name="group/features", y=np.arange(61))
    with pytest.raises(DataError, match=r"no dataset 'X'; it holds: group/features, y\. .*--x"):
        open_hdf5(path)
    with pytest.raises(DataError, match=r"no dataset 'z'; it holds: group/features, y\."):
        open_hdf5(path, "group/features", "z")


def test_a_group_is_not_a_dataset(tmp_path):
    path = store(tmp_path / "a.h5", table(), x_name="X/values")
    with pytest.raises(DataError, match=r"no dataset 'X'; it holds: X/values"):
        open_hdf5(path, y=None)


def test_a_file_without_datasets_says_so(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w"):
        pass
    with pytest.raises(DataError, match="it holds: none"):
        open_hdf5(tmp_path / "a.h5")


@pytest.mark.parametrize("shape", [(), (6,), (6, 2, 2)])
def test_inputs_that_are_not_a_table_are_refused(tmp_path, shape):
    path = store(tmp_path / "a.h5", np.zeros(shape))
    with pytest.raises(DataError, match="X must be 2-D"):
        open_hdf5(path, y=None)


@pytest.mark.parametrize("shape", [(), (6, 2, 2), (6, 0)])
def test_targets_that_are_not_rows_of_targets_are_refused(tmp_path, shape):
    path = store(tmp_path / "a.h5", np.zeros((6, 2)), np.zeros(shape))
    with pytest.raises(DataError, match=r"y must have shape \(n,\) or \(n, q\)"):
        open_hdf5(path)


def test_targets_of_another_length_are_refused(tmp_path):
    path = store(tmp_path / "a.h5", np.zeros((6, 2)), np.zeros(7))
    with pytest.raises(DataError, match="X has 6 rows but y has 7"):
        open_hdf5(path)


def test_zero_rows_are_refused(tmp_path):
    path = store(tmp_path / "a.h5", np.zeros((0, 2)), np.zeros(0))
    with pytest.raises(DataError, match="zero rows; at least one is needed"):
        open_hdf5(path)


def test_zero_columns_are_refused(tmp_path):
    path = store(tmp_path / "a.h5", np.zeros((5, 0)), np.zeros(5))
    with pytest.raises(DataError, match="no columns; at least one is needed"):
        open_hdf5(path)


@pytest.mark.parametrize(
    ("values", "called"),
    [
        (np.full((6, 2), b"ab"), r"\|S2"),
        (np.full((6, 2), "ab", h5py.string_dtype()), "object"),
        (np.zeros((6, 2), "c8"), "complex64"),
        (np.zeros((6, 2), [("a", "f4"), ("b", "i4")]), "'a'"),
        (np.zeros((6, 2), "V4"), "V4"),
    ],
    ids=["bytes", "text", "complex", "compound", "opaque"],
)
@pytest.mark.parametrize("role", ["X", "y"])
def test_values_that_are_not_numbers_are_refused(tmp_path, values, called, role):
    numbers = np.zeros((6, 2))
    X, y = (values, numbers) if role == "X" else (numbers, values)
    path = store(tmp_path / "a.h5", X, y)
    with pytest.raises(
        DataError, match=rf"{role} must hold floats or integers, but its type is .*{called}"
    ):
        open_hdf5(path)


def test_named_integers_are_read_as_integers(tmp_path):
    colours = h5py.enum_dtype({"red": 0, "blue": 1}, "i4")
    codes = np.arange(12, dtype="i4").reshape(6, 2) % 2
    path = store(tmp_path / "a.h5", codes.astype(colours))
    np.testing.assert_array_equal(together(open_hdf5(path, y=None))[0], codes)


def test_a_file_that_was_rewritten_meanwhile_is_found_out(tmp_path):
    path = store(tmp_path / "a.h5", np.zeros((6, 2)), np.zeros(6))
    source = open_hdf5(path)
    source.check_unchanged()
    os.utime(path, (1, 1))
    with pytest.raises(DataError, match=r"a\.h5 changed while it was in use"):
        source.check_unchanged()
    path.unlink()
    with pytest.raises(DataError, match=r"a\.h5 changed while it was in use"):
        source.check_unchanged()


def test_integers_have_no_rounding_and_floats_that_of_their_type(tmp_path):
    for dtype, rounding in (("i8", 0.0), ("f4", np.finfo("f4").eps), ("f8", np.finfo("f8").eps)):
        path = store(tmp_path / f"{dtype}.h5", np.zeros((6, 2), dtype), np.zeros(6))
        assert open_hdf5(path).rounding == rounding


def test_files_with_different_columns_are_refused(tmp_path):
    paths = [store(tmp_path / f"{p}.h5", np.zeros((6, p)), np.zeros(6)) for p in (2, 3)]
    with pytest.raises(
        DataError, match=r"2\.h5 has 2 inputs and targets \(n,\) and .*3\.h5 has 3 inputs"
    ):
        open_hdf5(paths)


def test_files_with_different_targets_are_refused(tmp_path):
    paths = [store(tmp_path / f"{q}.h5", np.zeros((6, 2)), np.zeros((6, q))) for q in (1, 2)]
    with pytest.raises(DataError, match="must have the same columns"):
        open_hdf5(paths)


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


@pytest.fixture
def public_folder():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_file_that_may_not_be_read_is_refused(public_folder):
    path = store(public_folder / "a.h5", table())
    path.chmod(0)
    with without_privileges(), pytest.raises(DataError, match="cannot be read: permission denied"):
        open_hdf5(path, y=None)


def test_a_file_in_a_folder_that_may_not_be_entered_is_refused(public_folder):
    inner = public_folder / "inner"
    inner.mkdir()
    path = store(inner / "a.h5", table())
    inner.chmod(0)
    try:
        with without_privileges(), pytest.raises(DataError, match="permission denied"):
            open_hdf5(path, y=None)
    finally:
        inner.chmod(0o755)


@pytest.mark.parametrize("there", ["part%.h5", "part%%.h5"])
def test_two_percent_signs_in_a_virtual_dataset_are_one_as_hdf5_takes_them(tmp_path, there):
    rows = table(60)
    store(tmp_path / there, rows)
    layout = h5py.VirtualLayout((60, 3), "f4")
    layout[:] = h5py.VirtualSource("part%%.h5", "X", (60, 3))
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    if there == "part%.h5":
        read = together(open_hdf5(tmp_path / "all.h5", y=None))
        np.testing.assert_array_equal(read[0], rows)
    else:  # which HDF5 does not look for, but would read zeros
        with pytest.raises(DataError, match=r"part%\.h5 does not exist"):
            open_hdf5(tmp_path / "all.h5", y=None)
