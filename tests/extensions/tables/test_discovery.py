"""The recipe of a table follows from all its rows by rules, however they are cut into pieces."""

import io
import math
from copy import deepcopy
from dataclasses import replace

import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from streamkern.errors import DataError, StreamkernWarning
from streamkern.extensions.tables.column_encoders import Categories, Numbers, Ordinal, Times
from streamkern.extensions.tables.discovery import RecipeOptions, discover, recipe_of_frame


def found(columns, *, targets=(), rows=1000, is_written=True, **options):
    """The recipe of columns of texts, as a CSV has them, or of arrays of Arrow."""
    arrays = {name: pa.array(values) for name, values in columns.items()}
    table = pa.table(arrays)

    def scanned(contents):
        parts = []
        for batch in table.select(list(contents)).to_batches(max_chunksize=rows):
            parts.append(deepcopy(contents))
            for name, column in parts[-1].items():
                column.update(batch.column(name))
        for part in parts[1:]:
            for name, column in parts[0].items():
                column.merge(part[name])
        return parts[0]

    written = columns if is_written else ()
    return discover(table.schema, scanned, targets, RecipeOptions(**options), written=written)


def column(values, **options):
    """What one column becomes in a table that is mixed."""
    recipe = found({"a": values, "other": ["u", "v"] * (len(values) // 2)}, **options)
    return recipe.left_out.get("a") or recipe.columns[0]


ADULT = """age, workclass, hours, since, works, income
39, State-gov, 40, 2013-01-01, true, <=50K
50, Self-emp-not-inc, ?, 2013-01-02T10:00:00Z, false, <=50K
38, ?, 40, 2014-05-01, true, >50K
53, Private, 45, NA, , <=50K
"""


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_every_column_of_a_mixed_table_has_its_rule(rows):
    frame = pd.read_csv(io.StringIO(ADULT), dtype=str, keep_default_na=False)
    columns = {name.strip(): values.tolist() for name, values in frame.items()}
    recipe = found(columns, targets=["income"], rows=rows)
    seconds = [1356998400.0, 1357120800.0, 1398902400.0]
    expected = (
        Numbers("age", 45.0),
        Categories("workclass", ("Private", "Self-emp-not-inc", "State-gov"), False, True),
        Numbers("hours", 125 / 3, True),
        Times("since", math.fsum(seconds) / 3, ("day", "week"), True),
        Numbers("works", 2 / 3, True),
    )
    for mine, theirs in zip(recipe.columns, expected, strict=True):
        if getattr(theirs, "fill", None) is not None:
            assert mine.fill == pytest.approx(theirs.fill, rel=1e-14)
            theirs = replace(theirs, fill=mine.fill)  # noqa: PLW2901  up to rounding
        assert mine == theirs
    assert (recipe.targets, recipe.labels) == (("income",), ("<=50K", ">50K"))


def test_a_table_of_numbers_alone_stays_as_it_is():
    recipe = found({"a": ["1", "2", "3"], "b": ["true", "false", "true"], "c": ["7", "7", "7"]})
    assert recipe.columns == (Numbers("a"), Numbers("b"), Numbers("c"))
    assert recipe.is_plain
    assert not found({"b": ["true", "false"]}).single
    imputed = found({"a": ["1", "2", "3"], "c": ["7", "7", "7"]}, impute=True)
    assert imputed.columns == (Numbers("a", 2.0),)
    assert imputed.left_out == {"c": "one value"}


@pytest.mark.parametrize("rows", [3, 1000])
def test_beyond_64_the_rarest_categories_share_one_input(rows):
    values = [f"c{j:02}" for j in range(70) for _ in range(9 if j % 2 else 3)]
    assert column(values[:128], rows=rows).pooled is False
    many = column(values, rows=rows)
    assert (many.pooled, len(many.inputs())) == (True, 64)
    assert {f"c{j:02}" for j in range(1, 70, 2)} < {*many.levels}


def test_text_that_tells_rows_apart_is_left_out_and_says_why():
    names = [f"row {i}" for i in range(200)]
    assert column(names) == "200 values in 200 rows tell rows apart, not kinds"
    assert isinstance(column([name[:-1] for name in names]), Categories)
    many = [f"{i % 10_001}" for i in range(20_004)]
    assert "more than 10,000 values" in column(many, categorical=["a"], rows=5000)


def test_an_order_comes_from_the_type():
    typed = pa.DictionaryArray.from_arrays(
        pa.array([1, 0] * 3, pa.int8()), pa.array(["S", "M", "L"]), ordered=True
    )
    for rows in (1, 1000):
        found = column(typed, is_written=False, rows=rows)
        assert found == Ordinal("a", ("S", "M", "L"), 0.5, False)


def test_columns_that_say_nothing_are_left_out():
    for values in (["red"] * 4, ["7"] * 4, ["TRUE", "true"], ["2020-01-01"] * 4):
        assert column(values) == "one value"
    assert column(["", "?"]) == "no values"
    assert column(["red", "?"]) == Categories("a", ("red",), False, True)


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("keep_missing", [False, True])
@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_an_index_without_a_name_in_a_data_frame_is_no_input(name, keep_missing, is_lazy):
    frame = pd.DataFrame({name: range(6), "a": np.arange(6.0), "b": [1, 4, 1, 5, 9, 2]})
    rows = dask.dataframe.from_pandas(frame, npartitions=2) if is_lazy else frame
    with pytest.warns(StreamkernWarning, match=rf"no inputs: '{name}' \(an index without a name"):
        recipe = recipe_of_frame(rows, keep_missing=keep_missing)
    assert recipe.feature_names == ["a", "b"]
    np.testing.assert_array_equal(recipe.transform(frame), frame[["a", "b"]])


def test_numbers_that_are_named_are_categories_in_the_order_of_numbers():
    expected = Categories("a", (2.0, 10.0))
    assert column(["10", "2", "2.0", "10"], categorical=["a"]) == expected
    assert column(np.array([10, 2, 2, 10]), categorical=["a"], is_written=False) == expected


def test_a_dictionary_of_numbers_is_one_of_categories():
    typed = pa.array([10, 2, 2, 10]).dictionary_encode()
    assert column(typed, is_written=False) == Categories("a", (2.0, 10.0))
    ranked = pa.DictionaryArray.from_arrays(
        pa.array([1, 0] * 3, pa.int8()), pa.array([3, 1, 2]), ordered=True
    )
    assert column(ranked, is_written=False) == Ordinal("a", (3.0, 1.0, 2.0), 0.5, False)


def test_numbers_as_large_as_they_can_be_have_a_mean():
    largest = np.finfo(float).max
    values = np.array([largest, largest, -largest, np.inf, largest, np.nan])
    for rows in (1, 4, 6):
        recipe = found({"a": values}, rows=rows, impute=True, is_written=False)
        assert recipe.columns[0].fill == pytest.approx(largest / 2)
        assert recipe.from_json(recipe.to_json()) == recipe


@pytest.mark.parametrize(
    ("last", "periods"),
    [
        ("2013-01-02", ()),
        ("2013-01-05", ()),
        ("2013-01-05T12:00:00", ("day",)),
        ("2013-01-20 12:00", ("day", "week")),
        ("2013-03-01", ("week",)),
        ("2015-01-03", ("week", "year")),
    ],
)
def test_times_have_the_periods_that_they_go_through_twice(last, periods):
    assert column(["2013-01-01", last]).periods == periods


@pytest.mark.parametrize("rows", [1, 1000])
@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (["1", "red", "2"], "numbers ('1') and text ('red')"),
        (["red", "1.5", "2"], "text ('red') and numbers ('1.5')"),
        (["1", "2020-01-01"], "numbers ('1') and times ('2020-01-01')"),
        (["true", "1"], "('true') and numbers ('1')"),
    ],
)
def test_a_column_of_two_kinds_is_refused_with_what_can_be_said(values, shown, rows):
    with pytest.raises(DataError) as error:
        found({"a": values}, rows=rows)
    remedy = "(--missing), or the column in categorical (--categorical a) if all are categories"
    assert all(words in str(error.value) for words in (*shown.split(" and "), remedy))


def test_what_is_said_to_be_missing_is_missing_and_no_more():
    assert column(["red", "NA", "?", "-"]).levels == ("-", "red")
    assert column(["red", "NA", "?", "-"], missing=["-", "?"]).levels == ("NA", "red")


def test_a_column_that_is_dropped_may_hold_anything():
    nested = pa.array([[1], [2]])
    table = {"a": nested, "b": pa.array([1, 2])}
    with pytest.raises(DataError, match=r"column 'a' must hold .* type list.*name it in drop"):
        found(table, is_written=False)
    assert found(table, is_written=False, drop=["a"]).left_out == {"a": "dropped"}


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"y": ["2020-01-01", "2020-01-02"]}, "target 'y' must hold numbers or labels, .* times"),
        ({"y": ["u", "v"], "z": ["1", "2"]}, "target 'y' must hold numbers, but has text"),
        ({"y": [f"label {i}" for i in range(1002)]}, "more than 1,000 values"),
    ],
)
def test_targets_are_numbers_or_one_column_of_labels(columns, why):
    n = len(columns["y"])
    with pytest.raises(DataError, match=why):
        found({"a": ["1", "2"] * (n // 2), **columns}, targets=list(columns))
