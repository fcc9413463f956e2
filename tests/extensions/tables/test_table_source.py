"""Tables as sources: every row once, in order, however files are cut into groups and shards."""

import csv
import datetime
import decimal
import sys

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest
from commandline import report_of, streamkern, unchanged_by
from pyarrow import parquet
from rows_read import inside, python

import streamkern as sk
from streamkern.errors import DataError, StreamkernWarning
from streamkern.extensions.tables import stored_tables
from streamkern.extensions.tables.table_rows import files_of, opened
from streamkern.sources import Shard, containers

N = 5000


def frame(n=N, seed=0):
    rng = np.random.default_rng(seed)
    x, town = rng.standard_normal(n), rng.choice(["Bern", "Rome", "Oslo, Ost"], n)
    y = np.sin(2 * x) + (town == "Rome") + 0.1 * rng.standard_normal(n)
    return pd.DataFrame({"row": np.arange(float(n)), "x": x, "town": town, "y": y})


def source_of(*paths, targets=("y",), **options):
    return opened(files_of(paths), None, options, targets=targets).source


def rows_of(source, shards=None, block_rows=700):
    """The first input and the target of all rows."""
    blocks = [
        (block.X[:, 0].copy(), block.y[:, 0].copy())
        for shard in shards or source.shards(1000)
        for block in source.reader(shard).blocks(block_rows)
    ]
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(stored_tables, "PIECE_BYTES", 10_000)


@pytest.mark.parametrize("group", [1, 700, N])
def test_every_row_of_parquet_is_read_once_however_it_is_cut(tmp_path, small_pieces, group):
    table = frame(N if group > 1 else 60)
    table.to_parquet(tmp_path / "t.parquet", row_group_size=group, index=False)
    source = source_of(tmp_path / "t.parquet")
    n = len(table)
    uneven = [Shard(0, 0, 7), Shard(1, 7, n - 13), Shard(2, n - 13, n)]
    for shards in (None, uneven):
        rows, y = rows_of(source, shards)
        np.testing.assert_array_equal(rows, table["row"])
        np.testing.assert_array_equal(y, table["y"])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("town", ["Oslo", "Oslo, Ost", 'the "Ost"', "Oslo\nOst"])
@pytest.mark.parametrize("last", [True, False])
def test_every_row_of_csv_is_read_once_however_lines_end(tmp_path, small_pieces, end, town, last):
    table = frame().replace("Oslo, Ost", town)
    quoted = csv.QUOTE_NONNUMERIC if "\n" in town else csv.QUOTE_MINIMAL
    text = table.to_csv(index=False, lineterminator=end, quoting=quoted)
    (tmp_path / "t.csv").write_text(text if last else text.removesuffix(end), newline="")
    source = source_of(tmp_path / "t.csv")
    is_cut = len(source.files[0].groups) > 1
    assert is_cut == ("\n" not in town and end != "\r")
    rows, y = rows_of(source)
    np.testing.assert_array_equal(rows, table["row"])
    np.testing.assert_array_equal(y, table["y"])
    assert f"town={town}" in source.recipe.feature_names


def test_a_line_of_a_csv_with_too_few_cells_is_named_by_its_place_in_the_file(
    tmp_path, small_pieces
):
    lines = frame().to_csv(index=False).splitlines()
    lines[3000] = "1,2"
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with pytest.raises(DataError, match="#3001: Expected 4 columns, got 2"):
        source_of(tmp_path / "t.csv")


def test_folders_named_after_values_are_columns(tmp_path, monkeypatch):
    table = frame()
    for year in (2020, 2021):
        for town in ("Bern", "Oslo, Ost"):
            folder = tmp_path / f"year={year}" / f"town={town.replace(' ', '%20')}"
            folder.mkdir(parents=True)
            part = table[(table["town"] == town) & (table["row"] % 2 == year % 2)]
            part.drop(columns="town").to_parquet(folder / "a.parquet", index=False)
    source = source_of(tmp_path)
    assert source.recipe.feature_names == ["row", "x", "year", "town=Bern", "town=Oslo, Ost"]
    one = opened(files_of([tmp_path / "year=2020"]), source.recipe, {}, with_targets=False)
    assert one.source.n_features == 5
    X = np.concatenate(
        [b.X.copy() for s in source.shards(100) for b in source.reader(s).blocks(50)]
    )
    held = table[table["town"] != "Rome"]
    assert len(X) == len(held)
    expected = held.set_index("row").loc[X[:, 0]]
    np.testing.assert_array_equal(X[:, 2], 2020 + X[:, 0] % 2)
    np.testing.assert_array_equal(X[:, 4], expected["town"] != "Bern")
    assert source_of(tmp_path / "year=2020/town=Bern/a.parquet").n_features == 2
    monkeypatch.chdir(tmp_path)
    assert source_of("year=*/*/*.parquet").recipe.feature_names == source.recipe.feature_names
    inside_year = source_of("year=2020/*/*.parquet")
    assert inside_year.recipe.feature_names == ["row", "x", "town=Bern", "town=Oslo, Ost"]


def test_files_that_writers_have_not_ended_or_a_snapshot_has_not_are_no_rows(tmp_path):
    table = frame().drop(columns="town")
    (tmp_path / "_temporary").mkdir()
    for name in ("a.parquet", ".b.parquet", "_temporary/c.parquet"):
        table.to_parquet(tmp_path / name)
    assert source_of(tmp_path).n_samples == N


def test_rows_of_a_delta_table_are_those_of_its_present_version(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    table = frame()
    for rows in (table.iloc[:100], table):
        written = pa.Table.from_pandas(rows, preserve_index=False)
        how = {"mode": "overwrite", "partition_by": ["town"]}
        deltalake.write_deltalake(tmp_path / "rows", written, **how)
    rows, y = rows_of(source_of(tmp_path / "rows"))
    assert sorted(rows) == table["row"].tolist()
    np.testing.assert_array_equal(y, table["y"].to_numpy()[rows.astype(int)])


def fitted(path, n_workers):
    model = sk.RandomFeatureRidge(n_components=32, kernel="gaussian", alpha=0.1)
    with dask.config.set(scheduler="threads", num_workers=n_workers):
        return model.fit(str(path), y="y").coef_.tobytes()


@pytest.mark.cluster
def test_the_bits_of_a_fit_are_the_same_for_any_workers(tmp_path, folder):
    frame(200_000).drop(columns="row").to_parquet("t.parquet", row_group_size=30_000)
    bits = {fitted("t.parquet", n) for n in (1, 3)}
    assert len(bits) == 1
    streamkern("fit", "t.parquet", "--target", "y", "--workers", 2, "--out", "m.h5", *FIT)
    assert {sk.load("m.h5").coef_.tobytes()} == bits


@pytest.mark.cluster
def test_cells_that_a_model_did_not_expect_are_counted_by_workers_in_processes(folder):
    frame(300_000).to_parquet("t.parquet", row_group_size=50_000)
    streamkern("fit", "t.parquet", "--target", "y", "--out", "m.h5", *FIT)
    new = frame(300_000)
    new.loc[::1000, "town"] = "Rom"
    new.loc[::3000, "x"] = np.nan
    new.to_parquet("n.parquet", row_group_size=50_000)
    for place in (("--workers", 2), ()):
        found = report_of("predict", "m.h5", "n.parquet", "--out", "p.h5", "--force", *place)
        assert (found["unseen_categories"], found["imputed_cells"]) == (300, 100)


FIT = ("--components", 32, "--kernel", "gaussian", "--alpha", 0.1, "--quiet")


def test_a_fit_a_prediction_and_an_evaluation_write_nothing_but_their_outputs(folder, monkeypatch):
    frame().drop(columns="row").to_parquet("t.parquet", row_group_size=700, index=False)
    monkeypatch.setenv("TMPDIR", "/nowhere")
    streamkern("fit", "t.parquet", "--target", "y", "--out", "m.h5", *FIT)
    streamkern("predict", "m.h5", "t.parquet", "--out", "p.parquet", "--quiet")
    found = report_of("evaluate", "m.h5", "t.parquet")
    y, predicted = frame()["y"], pd.read_parquet("p.parquet")["y_pred"]
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((y - predicted) ** 2)))
    assert inside(folder) == ["data.h5", "m.h5", "p.parquet", "t.parquet"]


def test_a_table_that_changes_during_a_pass_is_noticed(tmp_path):
    path = tmp_path / "t.parquet"
    frame().to_parquet(path)
    source = source_of(path)
    frame(N + 1, seed=1).to_parquet(path)
    for check in (source.check_unchanged, lambda: rows_of(source)):
        with pytest.raises(DataError, match="changed while it was in use; start again"):
            check()


ZONE = pa.timestamp("us", "Europe/Oslo")
DAY = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
COLUMNS = {
    "decimals": (pa.array([decimal.Decimal(i) / 8 for i in range(40)]), ["a"]),
    "zones": (pa.array([DAY + datetime.timedelta(i) for i in range(40)], ZONE), ["a sine of week"]),
    "one value": (pa.array([DAY] * 40), {"a": "one value"}),
    "nulls": (pa.nulls(40), {"a": "no values"}),
    "null floats": (pa.nulls(40, pa.float32()), {"a": "no values"}),
    "large texts": (pa.array(["u", "v"] * 20, pa.large_string()), ["a=u", "a=v"]),
    "views": (pa.array(["u", "v"] * 20, pa.string_view()), ["a=u", "a=v"]),
    "lists": (pa.array([[1], [2]] * 20), DataError),
    "structs": (pa.array([{"u": 1}] * 40), DataError),
    "binary": (pa.array([b"u"] * 40), DataError),
    "durations": (pa.array([datetime.timedelta(1)] * 40), DataError),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_types_of_parquet_are_read_or_refused_in_a_sentence(tmp_path, kind):
    column, expected = COLUMNS[kind]
    table = pa.table(
        {"a": column, "b": np.arange(40.0), "t": ["x", "y"] * 20, "y": np.arange(40.0)}
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    if expected is DataError:
        with pytest.raises(DataError, match=r"t\.parquet: column 'a' must hold numbers, text"):
            source_of(tmp_path / "t.parquet")
        return
    if isinstance(expected, dict):
        with pytest.warns(StreamkernWarning, match="columns that are no inputs: 'a'"):
            assert source_of(tmp_path / "t.parquet").recipe.left_out == expected
    else:
        names = source_of(tmp_path / "t.parquet").recipe.feature_names
        assert {*expected} <= {*names}


def test_times_of_96_bits_are_times(tmp_path):
    table = pa.table({"a": pa.array([DAY.replace(tzinfo=None)] * 2), "y": [1.0, 2.0], "b": [1, 2]})
    table = table.set_column(0, "a", pa.array([0, 86_400_000_000_000], pa.timestamp("ns")))
    parquet.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    X, _ = rows_of(source_of(tmp_path / "t.parquet"))
    assert X.tolist() == [0.0, 86_400.0]


def test_what_cannot_be_read_is_one_sentence(folder):
    frame().to_parquet("t.parquet")
    whole = (folder / "t.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[:-1000])
    (folder / "inside.parquet").write_bytes(whole[:500] + whole[1500:])
    parquet.write_table(pa.table({"x": np.empty(0), "y": np.empty(0)}), "none.parquet")
    frame().assign(x="many").to_parquet("text.parquet")
    frame().rename(columns={"x": "z"}).to_parquet("other.parquet")
    for words, message in {
        "cut.parquet": "cut.parquet cannot be read (",
        "inside.parquet": "inside.parquet cannot be read (",
        "none.parquet": "none.parquet has no rows; at least one is needed.",
        "t.parquet text.parquet": "a column has one type in t.parquet, but another in text.parquet",
        "t.parquet other.parquet": "t.parquet has 'x' and other.parquet has not",
    }.items():
        fit = ("fit", *words.split(), "--target", "y", "--out", "model.h5", "--quiet")
        assert message in unchanged_by(folder, *fit, status=(1, 2))


MUTATED = """
import sys, pathlib
import numpy as np
from streamkern.errors import DataError, StreamkernError
from streamkern.extensions.tables.table_rows import files_of, opened

path, whole, rng = sys.argv[1], pathlib.Path(sys.argv[1]).read_bytes(), np.random.default_rng(0)
n_read = n_zero = 0
for turn in range(int(sys.argv[2])):
    data = bytearray(whole)
    for at in rng.integers(4, len(data) - 4, rng.integers(1, 9)):
        data[at] = rng.integers(256)
    if turn % 4 == 0:
        del data[(at := rng.integers(4, len(data))) : at + rng.integers(1, 900)]
    pathlib.Path(path).write_bytes(data)
    try:
        source = opened(files_of([path]), None, {}, targets=["y"], told=set()).source
        for shard in source.shards(1000):
            for block in source.reader(shard).blocks(300):
                n_zero += int((block.X == 0).all(axis=1).sum())
        n_read += 1
    except StreamkernError as error:
        assert "\\n" not in str(error), error
print(n_read, n_zero)
"""


@pytest.mark.slow
def test_mutated_files_are_read_or_refused_and_crash_nothing(tmp_path):
    path = tmp_path / "t.parquet"
    frame(2000).assign(row=1 + np.arange(2000.0)).to_parquet(path, row_group_size=500)
    done = python(MUTATED, path, 2000)
    n_read, n_zero = map(int, done.stdout.split())
    assert 0 < n_read < 2000
    assert n_zero == 0


SMALL = {"kernel": "gaussian", "n_components": 16, "alpha": 0.1}


def test_a_dataset_of_arrow_is_its_files(tmp_path, monkeypatch):
    def refused(*_):
        raise AssertionError("the rows were read into memory")

    monkeypatch.setitem(containers._UNWRAPPED, "pyarrow.Dataset", refused)
    table = frame()
    for year in (2020, 2021):
        (tmp_path / f"year={year}").mkdir()
        for part in range(2):
            rows = table.iloc[year % 2 * 2500 + part * 1250 :][:1250]
            rows.to_parquet(tmp_path / f"year={year}" / f"{part}.parquet", index=False)
    (tmp_path / "year=2020" / "_notes.parquet").touch()
    unread = pyarrow.dataset.dataset(tmp_path, partitioning="hive")
    one = pyarrow.dataset.dataset(tmp_path / "year=2021/1.parquet")
    model = sk.RandomFeatureRidge(**SMALL).fit(unread, "y")
    by_path = sk.RandomFeatureRidge(**SMALL).fit(tmp_path, "y")
    assert model.report_["data"] == by_path.report_["data"]
    assert "year" in model.feature_names_in_
    np.testing.assert_array_equal(model.coef_, by_path.coef_)
    np.testing.assert_array_equal(model.predict(unread), by_path.predict(tmp_path))
    assert model.evaluate(unread, "y") == by_path.evaluate(tmp_path, "y")
    model, by_path = (
        sk.RandomFeatureRidge(**SMALL).fit(rows, ["y"], sample_weight="row")
        for rows in (one, tmp_path / "year=2021/1.parquet")
    )
    np.testing.assert_array_equal(model.coef_, by_path.coef_)


@pytest.mark.parametrize(
    "change",
    [
        lambda unread, _: unread.filter(pyarrow.dataset.field("x") > 0),
        lambda unread, _: unread.replace_schema(unread.schema.remove(1)),
        lambda unread, path: pyarrow.dataset.dataset(
            path, schema=unread.schema.set(0, pa.field("row", pa.float32()))
        ),
        lambda unread, _: pyarrow.dataset.FileSystemDataset(
            [next(unread.get_fragments()).subset(row_group_ids=[1])],
            unread.schema, unread.format, unread.filesystem,
        ),
    ],
)  # fmt: skip
def test_a_dataset_of_some_rows_or_other_cells_is_read_as_it_says(tmp_path, change):
    frame().to_parquet(tmp_path / "t.parquet", row_group_size=1000, index=False)
    unread = change(pyarrow.dataset.dataset(tmp_path), tmp_path / "t.parquet")
    held = unread.to_table()
    model, same = (sk.RandomFeatureRidge(**SMALL).fit(rows, "y") for rows in (unread, held))
    assert model.report_["rows"] == len(held)
    np.testing.assert_array_equal(model.coef_, same.coef_)


def test_files_of_a_dataset_that_differ_are_read_as_it_says(tmp_path):
    frame().to_parquet(tmp_path / "0.parquet", index=False)
    frame().drop(columns="row").to_parquet(tmp_path / "1.parquet", index=False)
    unread = pyarrow.dataset.dataset(tmp_path)
    model = sk.RandomFeatureRidge(**SMALL).fit(unread, "y")
    assert model.report_["rows"] == 2 * N
    assert "row is missing" in model.recipe_.feature_names


def test_values_beside_a_dataset_of_arrow_are_taken(tmp_path):
    table = frame()
    table.drop(columns="y").to_parquet(tmp_path / "t.parquet", index=False)
    unread = pyarrow.dataset.dataset(tmp_path)
    model, same = (
        sk.RandomFeatureRidge(**SMALL).fit(rows, table["y"], groups=table["town"])
        for rows in (unread, unread.to_table())
    )
    np.testing.assert_array_equal(model.coef_, same.coef_)
    classifier = sk.RandomFeatureClassifier(**SMALL, calibration=None)
    assert classifier.fit(unread, list(table["town"])).classes_.tolist() == sorted({*table["town"]})


def test_tasks_do_not_grow_with_the_columns_of_a_table(tmp_path, monkeypatch):
    module, counts = sys.modules["dask.delayed"], []
    looked_through = module.unpack_collections

    def counted(*arguments, **options):
        counts[-1] += 1
        return looked_through(*arguments, **options)

    monkeypatch.setattr(module, "unpack_collections", counted)
    for p in (10, 100):
        frame = pd.DataFrame(np.random.default_rng(0).standard_normal((40, p))).add_prefix("c")
        frame.to_csv(tmp_path / "t.csv", index=False)
        counts.append(0)
        sk.RandomFeatureRidge("gaussian", n_components=8).fit(tmp_path / "t.csv", "c0")
    assert counts[1] == counts[0] > 0
