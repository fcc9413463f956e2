"""Rows in object stores and on web servers: real servers on loopback, well and unwell."""

import os
import pickle
import re
import sys
from contextlib import ExitStack

import h5py
import numpy as np
import pytest
from rows_read import STORED, N, P, python, write
from rows_read import together as read_together
from servers import KEY, SECRET, late_proxy, web_server, web_server_without_ranges

from streamkern import open_hdf5
from streamkern.errors import DataError, ParameterError
from streamkern.extensions.stores import files_at_urls, requests
from streamkern.parameters.planning import plan_system
from streamkern.sources import Shard


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(requests, "_WAITS", (0.01,) * 7)


@pytest.fixture
def small_pieces(monkeypatch):
    """Have small files read as large ones are."""
    monkeypatch.setattr(files_at_urls, "_BLOCK_BYTES", 4 << 10)


def together(source, shard_rows=2000, block_rows=999):
    return read_together(source, shard_rows, block_rows)[:2]


def equal(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("name", "libver"), [*zip(STORED, ["earliest", "latest"] * 3, strict=True)]
)
def test_rows_in_a_store_are_the_rows_of_the_file(tmp_path, bucket, small_pieces, name, libver):
    path = write(tmp_path / "a.h5", libver=libver, **STORED[name])
    source = open_hdf5(bucket.put(path), storage_options=bucket.options)
    assert equal(together(source), together(open_hdf5(path)))
    assert source.files[0].storage == open_hdf5(path).files[0].storage
    source.check_unchanged()


def test_a_pattern_is_the_files_sorted_by_name(tmp_path, bucket):
    paths = [write(tmp_path / f"part-{i}.h5", 100 + i, seed=i) for i in (10, 2, 1)]
    for path in paths:
        bucket.put(path)
    source = open_hdf5("s3://rows/part-*.h5", storage_options=bucket.options)
    assert [file.path for file in source.files] == [f"s3://rows/part-{i}.h5" for i in (1, 10, 2)]
    assert equal(together(source), together(open_hdf5(str(tmp_path / "part-*.h5"))))


def test_paths_and_urls_are_rows_of_one_data_set(tmp_path, bucket):
    path = write(tmp_path / "mixed.h5", 50)
    there = bucket.put(path)
    here = write(tmp_path / "here.h5", 30, seed=1)
    source = open_hdf5([here, there], storage_options=bucket.options)
    assert equal(together(source), together(open_hdf5([here, path])))
    assert source.locate(31) == "s3://rows/mixed.h5, row 1"
    with pytest.raises(DataError, match=r"s3://rows/mixed\.h5 is named twice"):
        open_hdf5([there, there], storage_options=bucket.options)


def test_a_file_url_is_a_path(tmp_path):
    path = write(tmp_path / "a.h5", 10)
    assert open_hdf5(f"file://{path}") == open_hdf5(path)


def test_readers_in_another_process_bring_what_it_takes_to_read(tmp_path, bucket):
    url = bucket.put(write(tmp_path / "a.h5", 1000))
    source = open_hdf5(url, storage_options=bucket.options)
    reader = source.reader(Shard(0, 100, 300))
    (tmp_path / "reader").write_bytes(pickle.dumps(reader))
    code = (
        "import pickle, sys; reader = pickle.load(open(sys.argv[1], 'rb')); print(reader);"
        "print(sum(float(b.X.sum(dtype=float)) for b in reader.blocks(50)))"
    )
    done = python(code, tmp_path / "reader")
    shown, total = done.stdout.splitlines()
    assert float(total) == pytest.approx(together(source)[0][100:300].sum(dtype=float))
    assert "s3://rows/a.h5" in shown
    assert SECRET not in shown
    again = pickle.loads(pickle.dumps(source))  # noqa: S301
    assert again == source
    assert equal(together(again), together(source))


# How it is read.


def requests_in(log):
    return [line.split() for line in log.read_text().splitlines()]


def test_bytes_are_asked_for_about_once_and_in_few_requests(tmp_path, bucket, small_pieces):
    path = write(tmp_path / "a.h5", chunks=(256, P))
    url, log = bucket.put(path), tmp_path / "log"
    with late_proxy(bucket.server, "--seconds", 0, "--log", log) as (proxy, _):
        source = open_hdf5(url, storage_options=bucket.options_at(proxy))
        described = len(requests_in(log))
        assert sum(map(len, source.reader(Shard(0, 0, N)).blocks(512))) == N
        asked = requests_in(log)
    assert [method for method, *_ in asked[:2]] == ["HEAD", "GET"]
    rows = [each for _, _, each, _ in asked[described:]]
    fetched = sum(int(b) - int(a) + 1 for a, b in (each.split("-") for each in rows))
    assert fetched < 1.1 * path.stat().st_size
    assert len(rows) < 1.1 * path.stat().st_size / (4 << 10) + 1


def test_what_is_kept_of_a_file_is_in_the_plan(tmp_path, bucket):
    path = write(tmp_path / "a.h5", chunks=(256, P))
    source = open_hdf5(bucket.put(path), storage_options=bucket.options)
    plans = [plan_system(rows, 64, n_workers=1) for rows in (source, open_hdf5(path))]
    assert plans[0].worker_bytes - plans[1].worker_bytes >= source.files[0].path.kept_bytes


# What goes wrong.


@pytest.mark.parametrize("kind", ["store", "web server"])
def test_answers_that_fail_now_and_then_are_asked_for_again(tmp_path, bucket, small_pieces, kind):
    path, log = write(tmp_path / "a.h5", chunks=(256, P)), tmp_path / "log"
    url, troubles = bucket.put(path), ("--seconds", 0, "--errors", 0.1, "--drops", 0.1)
    with ExitStack() as servers:
        server = bucket.server if kind == "store" else servers.enter_context(web_server(tmp_path))
        proxy, _ = servers.enter_context(late_proxy(server, *troubles, "--log", log))
        options = bucket.options_at(proxy) if kind == "store" else {}
        source = open_hdf5(url if options else f"http://{proxy}/a.h5", storage_options=options)
        assert equal(together(source), together(open_hdf5(path)))
    assert sum(status == "503" for *_, status in requests_in(log)) > 1


@pytest.mark.parametrize("on_bad_rows", ["error", "skip"])
def test_a_server_that_goes_is_an_error_that_names_file_and_rows(
    tmp_path, small_pieces, on_bad_rows
):
    write(tmp_path / "a.h5", chunks=(256, P))
    with web_server(tmp_path) as server, late_proxy(server, "--seconds", 0) as (proxy, process):
        source = open_hdf5(f"http://{proxy}/a.h5")
        source = source.skip_invalid() if on_bad_rows == "skip" else source
        blocks = source.reader(Shard(0, 0, N)).blocks(512)
        next(blocks)
        process.kill()
        with pytest.raises(DataError) as error:
            list(blocks)
    said = str(error.value)
    assert said.startswith(f"http://{proxy}/a.h5, rows ")
    assert said.endswith("8 times); try again when its server is well.")


def test_a_server_that_goes_while_headers_are_read_is_an_error(tmp_path, monkeypatch):
    write(tmp_path / "a.h5", chunks=(256, P))
    with web_server(tmp_path) as server, late_proxy(server, "--seconds", 0) as (proxy, process):
        source = open_hdf5(f"http://{proxy}/a.h5")
        process.kill()
        with pytest.raises(DataError, match=rf"^http://{proxy}/a\.h5 cannot be read \(.* 8 times"):
            list(source.reader(Shard(0, 0, N)).blocks(512))


def test_a_server_without_ranges_is_refused(tmp_path):
    write(tmp_path / "a.h5")
    with (
        web_server_without_ranges(tmp_path) as server,
        pytest.raises(DataError, match=r"a\.h5 is on a server that does not serve parts of files"),
    ):
        open_hdf5(f"http://{server}/a.h5")


def test_a_web_server_with_ranges_serves_files_and_patterns(tmp_path):
    paths = [write(tmp_path / f"{name}.h5", 100, seed=i) for i, name in enumerate("ab")]
    with web_server(tmp_path) as server:
        source = open_hdf5(f"http://{server}/*.h5")
        assert equal(together(source), together(open_hdf5(paths)))
        source.check_unchanged()
        with pytest.raises(DataError, match=r"none\.h5 does not exist; check the URL"):
            open_hdf5(f"http://{server}/none.h5")


def test_a_password_in_a_url_is_used_and_not_shown(tmp_path):
    path = write(tmp_path / "a.h5", 100)
    with web_server(tmp_path, "hunter2") as server:
        source = open_hdf5(f"http://someone:hunter2@{server}/a.h5")
        assert equal(together(source), together(open_hdf5(path)))
        assert source.files[0].path == f"http://...@{server}/a.h5"
        with pytest.raises(DataError, match="access denied; check the credentials") as error:
            open_hdf5(f"http://someone:hunter3@{server}/a.h5")
    assert "hunter" not in str(error.value) + repr(error.value.__context__)
    assert "hunter" not in repr(source) + str(source.describe())


def test_what_is_not_in_a_store_or_no_hdf5_is_refused(tmp_path, bucket):
    whole = write(tmp_path / "a.h5").read_bytes()
    for name, content in (("cut", whole[:100_000]), ("text", b"a,b\n"), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        bucket.put(tmp_path / name)
    bucket.put(tmp_path / "a.h5", "folder/a.h5")
    for url, why in (
        ("s3://rows/none.h5", "does not exist; check the URL.$"),
        ("s3://rows/none-*.h5", "does not exist; check the URL.$"),
        ("s3://no-bucket/a.h5", "does not exist; check the URL.$"),
        ("s3://rows/folder", "is a folder, not a file"),
        ("s3://rows/cut", "is a truncated HDF5 file"),
        ("s3://rows/text", "is not an HDF5 file"),
        ("s3://rows/empty", "is not an HDF5 file"),
    ):
        with pytest.raises(DataError, match=f"^{re.escape(url)} {why}"):
            open_hdf5(url, storage_options=bucket.options)


def test_a_program_that_ends_with_such_an_error_does_not_crash(tmp_path, bucket):
    (tmp_path / "a.csv").write_bytes(b"a,b" * 1000)
    bucket.put(tmp_path / "a.csv")
    code = "import streamkern; streamkern.open_hdf5('s3://rows/a.csv')"
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    endpoint = {"AWS_ENDPOINT_URL": bucket.options["endpoint_url"]}
    done = python(code, env={**os.environ, **keys, **endpoint})
    assert done.stderr.splitlines()[-1].startswith("streamkern.errors.DataError: s3://rows/a.csv")
    assert done.returncode == 1


def test_damage_inside_a_chunk_is_an_error_that_names_the_rows(tmp_path, bucket):
    path = write(tmp_path / "a.h5", chunks=(100, P), fletcher32=True)
    with h5py.File(path) as file:
        place = file["X"].id.get_chunk_info(7).byte_offset
    with path.open("r+b") as raw:
        raw.seek(place)
        raw.write(b"\xff\xff\xff\xff")
    source = open_hdf5(bucket.put(path), storage_options=bucket.options)
    with pytest.raises(DataError, match=r"s3://rows/a\.h5: rows 700 to 800 of /X cannot be read"):
        together(source)
    X, _ = together(source.skip_invalid())
    assert np.flatnonzero(np.isnan(X).all(axis=1)).tolist() == list(range(700, 800))


def test_an_object_that_changes_meanwhile_is_noticed(tmp_path, bucket):
    url = bucket.put(write(tmp_path / "a.h5", 100))
    source = open_hdf5(url, storage_options=bucket.options)
    source.check_unchanged()
    bucket.put(write(tmp_path / "a.h5", 100, seed=1))
    with pytest.raises(DataError, match=r"s3://rows/a\.h5 changed while it was in use"):
        source.check_unchanged()
    source = open_hdf5(url, storage_options=bucket.options)
    assert equal(together(source), together(open_hdf5(tmp_path / "a.h5")))


def test_an_object_that_shrank_is_an_error(tmp_path, bucket):
    url = bucket.put(write(tmp_path / "a.h5", chunks=(100, P)))
    source = open_hdf5(url, storage_options=bucket.options)
    bucket.put(write(tmp_path / "a.h5", 100))
    with pytest.raises(DataError, match=r"s3://rows/a\.h5 changed while it was in use"):
        together(source)


def test_wrong_options_are_refused_without_their_values(tmp_path, bucket):
    options = {"endpoint_url": f"http://{bucket.server}", "session": "hunter2"}
    with pytest.raises(DataError, match=r"s3://rows/a\.h5 cannot be asked for \(") as error:
        open_hdf5("s3://rows/a.h5", storage_options=options)
    assert "hunter2" not in str(error.value)
    with pytest.raises(DataError, match=r"^what://a\.h5 cannot be asked for \(ValueError\)"):
        open_hdf5("what://a.h5")
    with pytest.raises(ParameterError, match="storage_options are for URLs"):
        open_hdf5(write(tmp_path / "a.h5", 10), storage_options={"key": KEY})


@pytest.mark.parametrize(
    ("url", "package", "remedy"),
    [
        ("s3://rows/a.h5", "s3fs", r"pip install 'streamkern\[s3\]'"),
        ("gs://rows/a.h5", "gcsfs", r"pip install 'streamkern\[gcs\]'"),
        ("https://host/a.h5", "aiohttp", r"pip install 'streamkern\[http\]'"),
        ("abfs://rows/a.h5", "adlfs", "adlfs"),
    ],
)
def test_a_package_that_is_not_installed_is_named(monkeypatch, url, package, remedy):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    registry = sys.modules["fsspec.registry"]
    monkeypatch.delitem(registry._registry, url.partition(":")[0], raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataError, match=f"needs a package that is not installed; .*{remedy}"):
        open_hdf5(url)
