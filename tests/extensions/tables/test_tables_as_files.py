"""CSV and Parquet files as people and programs write them, by way of the commands."""

import re
import resource

import h5py
import numpy as np
import pandas as pd
import pytest
from commandline import refused, report_of, streamkern
from rows_read import python

from streamkern import RandomFeatureRidge, convert, load, read_recipe
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.extensions.tables import stored_tables

FIT = ("--components", 16, "--alpha", 0.1, "--kernel", "gaussian", "--quiet", "--force")


def datasets(path, *names):
    with h5py.File(path) as file:
        return [file[name][:] for name in names or ("X",)]


@pytest.mark.parametrize("ends", ["", "\n", "\n\n\n", "\r\n\r\n"])
def test_an_empty_line_of_one_column_is_a_missing_cell_but_for_those_at_the_end(folder, ends):
    (folder / "t.csv").write_text("a\n1\n\n3\nNA\n5" + ends, newline="")
    convert("t.csv", "o.h5", targets=None)
    expected = [[1, 0], [3, 1], [3, 0], [3, 1], [5, 0]]
    np.testing.assert_array_equal(datasets("o.h5")[0], expected)
    (folder / "bare.csv").write_text("\n1\n\n3" + ends, newline="")
    convert("bare.csv", "n.h5", targets=None, header=False)
    np.testing.assert_array_equal(datasets("n.h5")[0], [[2, 1], [1, 0], [2, 1], [3, 0]])


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("before", ["", "\n", "\n \n"])
@pytest.mark.parametrize("n_columns", [1, 2])
def test_lines_may_end_in_any_way_and_empty_ones_come_first(tmp_path, end, before, n_columns):
    lines = [",".join(cells[:n_columns]) for cells in ("xz", "13", "25")]
    text = before + "\n".join(lines) + "\n"
    (tmp_path / "t.csv").write_text(text.replace("\n", end), newline="")
    convert(tmp_path / "t.csv", tmp_path / "o.h5", targets=None)
    expected = np.array([[1, 3], [2, 5]])[:, :n_columns]
    np.testing.assert_array_equal(datasets(tmp_path / "o.h5")[0], expected)


def numbers_as_text(folder, write):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1, 9999, 200).round(2), rng.standard_normal(200).round(3)
    frame = pd.DataFrame({"a": a, "b": b, "y": (a / 5000 + b).round(4)})
    frame.assign(a=[write(each) for each in a]).to_csv(folder / "t.csv", index=False)
    return frame


MARKS, PLAIN = "give --decimal , for 1,5, or", "write plain numbers"
WAYS = [
    (lambda number: f"{number:.2f}".replace(".", ","), MARKS),
    (lambda number: f"{number:.1f}%", PLAIN),
    (lambda number: f"{number:.3e}".replace("e", "D"), PLAIN),
    (lambda number: f"{number + 1000:,.2f}", MARKS),
    (lambda number: f"${number:.1f}", PLAIN),
]


@pytest.mark.parametrize(("write", "remedy"), WAYS, ids=["1,5", "12%", "1D+00", "1,234", "$5"])
def test_numbers_written_as_text_are_told_with_an_example_and_a_remedy(folder, write, remedy):
    example = write(numbers_as_text(folder, write)["a"][0])
    done = streamkern("convert", "t.csv", "o.h5", "--target", "y")
    assert f"columns of numbers are written as text: a (as {example}); {remedy}" in done.stderr


@pytest.mark.parametrize(("decimal", "between"), [(",", ";"), (",", ",")])
def test_decimal_commas_are_read_by_an_option_that_the_model_keeps(folder, decimal, between):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((80, 3)).round(4) * 1000, columns=["a", "b", "y"])
    frame.assign(id=[f"{j},5" for j in range(80)]).to_csv(
        "t.csv", index=False, sep=between, decimal=decimal
    )
    frame.to_csv("plain.csv", index=False)
    marks = ("--decimal", decimal, "--delimiter", between)
    streamkern("fit", "t.csv", "--target", "y", "--id", "id", "--out", "m.h5", *marks, *FIT)
    streamkern("fit", "plain.csv", "--target", "y", "--out", "plain.h5", *FIT)
    streamkern("predict", "m.h5", "t.csv", "--out", "p.csv")
    streamkern("predict", "plain.h5", "plain.csv", "--out", "q.csv")
    mine, theirs = pd.read_csv("p.csv", dtype=str), pd.read_csv("q.csv", dtype=str)
    assert mine["y_pred"].tolist() == theirs["y_pred"].tolist()
    assert mine["id"].tolist() == [f"{j},5" for j in range(80)]
    assert report_of("evaluate", "m.h5", "t.csv")["rmse"] == pytest.approx(
        report_of("evaluate", "plain.h5", "plain.csv")["rmse"]
    )
    assert load("m.h5").recipe_.decimal == ","


def test_marks_between_thousands_are_taken_out_and_doubtful_points_are_refused(folder):
    (folder / "t.csv").write_text('a,y\n"1,234.5",1\n"-12,345,678",2\n7,3\n')
    convert("t.csv", "o.h5", targets=["y"], thousands=",")
    np.testing.assert_array_equal(datasets("o.h5")[0][:, 0], [1234.5, -12345678, 7])
    (folder / "t.csv").write_text("a;y\n1.234,5;1\n2.000;2\n7;3\n")
    convert("t.csv", "o.h5", targets=["y"], thousands=".", decimal=",", delimiter=";", force=True)
    np.testing.assert_array_equal(datasets("o.h5")[0][:, 0], [1234.5, 2000, 7])
    with pytest.raises(DataError, match=r"numbers \('7'\) and text \('1\.234,5'\); .*--thousands"):
        convert("t.csv", "p.h5", targets=["y"], decimal=",", delimiter=";")
    for marks in ({"decimal": ",", "thousands": ","}, {"decimal": "12"}, {"thousands": "."}):
        with pytest.raises(ParameterError, match="must be two marks"):
            convert("t.csv", "p.h5", targets=["y"], **marks)
    pd.DataFrame({"a": [1.0], "y": [2.0]}).to_parquet("t.parquet")
    with pytest.raises(ParameterError, match="decimal is for CSV"):
        convert("t.parquet", "p.h5", targets=["y"], decimal=",")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_cells_between_other_marks_are_told(folder, name):
    frame = pd.DataFrame({"a": [1.5, 2.5], "y": [1, 2]})
    frame.to_csv(name, index=False, sep=";", decimal=",")
    for command in (("inspect", name), ("convert", name, "o.h5", "--no-target")):
        sentence = refused(*command)
        assert "has one column, with ';' in it; give --delimiter, ';' if" in sentence
    streamkern("convert", name, "o.h5", "--target", "y", "--delimiter", ";", "--decimal", ",")
    (folder / name).write_text("a;b\n1\n2\n")
    usual = "," if name == "t.csv" else "tab"
    streamkern("convert", name, "p.h5", "--no-target", "--delimiter", usual)


@pytest.mark.parametrize("block", range(20, 60, 7))
def test_a_line_break_in_quotes_is_the_same_wherever_a_block_ends(tmp_path, monkeypatch, block):
    monkeypatch.setattr(stored_tables, "PIECE_BYTES", 2 * block)
    lines = [f'"u\r\nv",{j},"w{j % 2}\r\nx"\r\n' for j in range(9)]
    (tmp_path / "t.csv").write_text("id,a,y\r\n" + "".join(lines), newline="")
    convert(tmp_path / "t.csv", tmp_path / "o.h5", targets=["y"], ids=["id"])
    ids, y = datasets(tmp_path / "o.h5", "id", "y")
    assert set(ids) == {b"u\r\nv"}
    assert set(y) == {b"w0\r\nx", b"w1\r\nx"}


@pytest.mark.parametrize("way", ["--classify", "--categorical"])
def test_labels_and_categories_are_text_as_written_unless_all_are_plain_numbers(folder, way):
    codes = np.array(["01", "1", "02"] * 20)
    size = 10 * (codes == "01") + 5 * (codes == "1")
    pd.DataFrame({"a": size + np.arange(60) / 60, "y": codes}).to_csv("t.csv", index=False)
    if way == "--classify":
        streamkern("fit", "t.csv", "--target", "y", way, "--out", "m.h5", *FIT)
        streamkern("predict", "m.h5", "t.csv", "--out", "p.csv")
        assert pd.read_csv("p.csv", dtype=str)["y_pred"].tolist() == codes.tolist()
    else:
        convert("t.csv", "o.h5", targets=["a"], categorical=["y"])
        assert read_recipe("o.h5").columns[0].levels == ("01", "02", "1")
    convert("t.csv", "l.h5", targets=["y"], categorical=["y"])
    assert read_recipe("l.h5").labels == ("01", "02", "1")
    pd.DataFrame({"a": size, "y": codes}).replace({"01": "3", "02": "2.0"}).to_csv("n.csv")
    convert("n.csv", "n.h5", targets=["y"], categorical=["y"])
    np.testing.assert_array_equal(datasets("n.h5", "y")[0][:3], [3, 1, 2])


def test_an_index_that_pandas_wrote_without_a_name_is_left_out_and_told(folder):
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 3)), columns=["a", "b", "y"])
    frame = frame.sort_values("y").reset_index(drop=True)
    frame.to_csv("t.csv")
    pd.read_csv("t.csv").to_csv("twice.csv")
    frame.set_index(np.arange(60) ** 2).to_parquet("t.parquet")
    for name in ("t.csv", "twice.csv", "t.parquet"):
        done = streamkern("fit", name, "--target", "y", "--out", "m.h5", *FIT)
        assert "(an index without a name)" in done.stderr
        assert load("m.h5").recipe_.feature_names == ["a", "b"]
        streamkern("predict", "m.h5", name, "--out", "p.h5", "--force")
        words = convert(name, "o.h5", targets=["y"], force=True)["columns"]
        assert list(words.values()).count("left out: an index without a name") == 1 + (
            name[0:2] == "tw"
        )
    with pytest.warns(
        StreamkernWarning, match=r"no inputs: 'Unnamed: 0' \(an index without a name"
    ):
        model = RandomFeatureRidge("gaussian", n_components=8).fit(pd.read_csv("t.csv"), "y")
    assert model.recipe_.feature_names == ["a", "b"]
    frame.rename_axis("row").to_csv("named.csv")
    convert("named.csv", "o.h5", targets=["y"], force=True)
    assert read_recipe("o.h5").feature_names == ["row", "a", "b"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_told_with_the_remedy(tmp_path, encoding):
    (tmp_path / "t.csv").write_text("a,b,y\n1,2,3\n", encoding=encoding)
    with pytest.raises(DataError, match=r"cannot be read: it is UTF-16, .*; save it as UTF-8"):
        convert(tmp_path / "t.csv", tmp_path / "o.h5", targets=["y"])


def test_a_long_label_is_refused_and_a_column_of_long_categories_left_out(tmp_path):
    frame = pd.DataFrame({"a": range(4000), "b": range(4000), "y": ["u", "v"] * 2000})
    frame.loc[7, "y"] = "w" * 900_000
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="'y' has a label of 900,000 bytes, but at most 1,024"):
        convert(tmp_path / "t.csv", tmp_path / "o.h5", targets=["y"])
    words = convert(
        tmp_path / "t.csv", tmp_path / "o.h5", targets=["a"], categorical=["y"], drop=[]
    )
    assert words["columns"]["y"] == "left out: text of up to 900,000 bytes"


def test_texts_of_parquet_that_are_much_longer_than_its_file_are_never_read(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code = (
        "import pyarrow as pa, pyarrow.parquet as pq\n"
        "table = pa.table({'a': [1.0, 2.0, 3.0], 'c': ['x' * (1 << 28), 'b', 'c'], 'y': [1, 2, 3]})"
        f"\npq.write_table(table, {str(tmp_path / 't.parquet')!r}, compression='zstd')"
    )
    python(code)
    words = convert(tmp_path / "t.parquet", tmp_path / "o.h5", targets=["y"])
    assert re.fullmatch(r"left out: texts of 89,478,\d* bytes on average", words["columns"]["c"])
    for how in ({"targets": ["c"]}, {"targets": ["y"], "ids": ["c"]}):
        with pytest.raises(DataError, match=r"'c' has texts of 89,478,.* but at most 2,048 are"):
            convert(tmp_path / "t.parquet", tmp_path / "p.h5", **how)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_parts_without_rows_or_labels_are_taken_beside_others(folder, ending):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(40), "t": ["u", "v"] * 20})
    frame["y"] = np.where(frame["a"] > 0, "high", "low")
    parts = [frame[:0], frame[:20], frame[20:].assign(y=None).astype({"y": object}), frame[20:]]
    if ending == "parquet":
        parts = [pd.DataFrame(columns=list(frame)), *parts]
    (folder / "parts").mkdir()
    for number, part in enumerate(parts):
        write = part.to_csv if ending == "csv" else part.to_parquet
        write(f"parts/{number}.{ending}", index=False)
    named = "parts" if ending == "parquet" else "parts/*.csv"
    streamkern("fit", named, "--target", "y", "--classify", "--out", "m.h5", *FIT)
    assert load("m.h5").report_["rows"] == 40
    assert report_of("predict", "m.h5", named, "--out", "p.h5")["rows"] == 60
    assert "has no rows; at least one" in refused(
        "predict", "m.h5", f"parts/0.{ending}", "--out", "q.h5"
    )


def test_numbers_that_are_no_target_or_weight_as_written_name_the_remedy(folder):
    n = 1200
    frame = pd.DataFrame({"a": np.arange(n) / 7, "y": np.arange(n) + 0.5})
    frame.assign(w=frame.y).to_csv("t.csv", index=False)
    written = frame.y.map(lambda each: f"{each:.1f}".replace(".", ","))
    frame.assign(y=written).to_csv("y.csv", index=False)
    frame.assign(w=written).to_csv("w.csv", index=False)
    sentence = refused("fit", "y.csv", "--target", "y", "--out", "m.h5")
    assert "all of numbers, as '0,5'; give --decimal , for 1,5" in sentence
    given = r"give `convert` decimal \(--decimal ,\)"
    with (
        pytest.warns(StreamkernWarning, match=given),
        pytest.raises(DataError, match=rf"as '0,5'; {given}"),
    ):
        RandomFeatureRidge(n_components=8).fit("y.csv", "y")
    sentence = refused("fit", "w.csv", "--target", "y", "--weights", "w", "--out", "m.h5")
    assert "such as '0,5'; give --decimal , for 1,5" in sentence
    streamkern("fit", "t.csv", "--target", "y", "--out", "m.h5", *FIT)
    frame.assign(a=written, w=1).to_csv("a.csv", index=False)
    sentence = refused("predict", "m.h5", "a.csv", "--out", "p.csv")  # which has no --decimal
    assert "such as '0,5'; give `convert` decimal (--decimal ,) for 1,5" in sentence


def test_the_cell_that_is_no_date_is_named_and_names_that_are_no_utf8_are_told(folder):
    days = pd.date_range("2020-01-01", periods=40).astype(str).to_list()
    frame = pd.DataFrame({"t": [*days[:17], "0000-00-00", *days[18:]], "y": np.arange(40.0)})
    frame.to_csv("t.csv", index=False)
    sentence = refused("fit", "t.csv", "--target", "y", "--out", "m.h5")
    assert "must hold dates or times, but has others, such as '0000-00-00'; mend" in sentence
    frame.assign(t=days).to_csv("t.csv", index=False)
    streamkern("fit", "t.csv", "--target", "y", "--out", "m.h5", *FIT)
    frame.assign(t="12 o'clock, they said").to_csv("p.csv", index=False)
    sentence = refused("predict", "m.h5", "p.csv", "--out", "p.h5")
    assert """has others, such as "12 o'clock, they said"; mend""" in sentence
    (folder / "l.csv").write_bytes("größe,y\n1,2\n".encode("latin-1"))
    assert "not UTF-8; save it as UTF-8" in refused("inspect", "l.csv")


def test_files_that_a_table_was_converted_to_are_not_told_of_columns_they_lack(tmp_path):
    rng = np.random.default_rng(0)
    sites, x = rng.integers(0, 40, 1000), rng.standard_normal(1000)
    table = pd.DataFrame({"x": x, "site": [f"s{i}" for i in sites]})
    table["y"] = np.sin(2.0 * x) + rng.standard_normal(40)[sites]
    table.to_csv(tmp_path / "t.csv", index=False)
    convert(tmp_path / "t.csv", tmp_path / "t.h5", targets="y")
    model = RandomFeatureRidge(n_components=64, n_folds=2)
    assert "new values" in model.fit(tmp_path / "t.csv", y="y").report_["note"]
    assert "new values" not in model.fit(tmp_path / "t.h5").report_["note"]
