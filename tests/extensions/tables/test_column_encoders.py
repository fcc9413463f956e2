"""Columns become what pandas and scikit-learn make of them, or a sentence says why not."""

import json
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from streamkern.errors import DataError
from streamkern.extensions.tables import column_contents
from streamkern.extensions.tables.cells import Writing
from streamkern.extensions.tables.column_contents import ColumnContents
from streamkern.extensions.tables.column_encoders import Categories, Numbers, Ordinal, Tally, Times
from streamkern.extensions.tables.recipe import Recipe


def encoded(column, values, missing=("?",)):
    cells = values if isinstance(values, pa.Array) else pa.array(values)
    out = np.full((len(cells), len(column.inputs())), np.pi)
    out[:] = 0
    column.encode(cells, Writing(missing), out, Tally())
    return out


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([1, None, 0], pa.int8()),
        pa.array([True, None, False]),
        pa.array(["TRUE", "?", "false"]),
        pa.array(["1", " ", "0"]).dictionary_encode(),
        pa.array(["1", None, "0.0"], pa.large_string()),
    ],
)
def test_numbers_are_read_from_every_type_that_holds_them(cells):
    np.testing.assert_array_equal(encoded(Numbers("a"), cells)[:, 0], [1, np.nan, 0])


@pytest.mark.parametrize("pooled", [False, True])
def test_categories_are_those_of_one_hot_encoding(pooled):
    frame = pd.DataFrame({"c": ["b", "ä b", "b", "C"]})
    encoder = OneHotEncoder(sparse_output=False).fit(frame)
    column = Categories("c", tuple(encoder.categories_[0].tolist()), pooled, indicator=True)
    found = encoded(column, [" b", "ä b ", "b", "C", "new", "?"])
    np.testing.assert_array_equal(found[:4, :3], encoder.transform(frame))
    np.testing.assert_array_equal(found[4:, :3], 0)
    np.testing.assert_array_equal(found[:, -1], [0, 0, 0, 0, 0, 1])
    assert column.inputs()[:3] == ["c=C", "c=b", "c=ä b"]
    if pooled:
        np.testing.assert_array_equal(found[:, 3], [0, 0, 0, 0, 1, 0])


@pytest.mark.parametrize(
    "cells", [pa.array(["3", "10", "3.0", "4"]), pa.array([3, 10, 3, 4]), pa.array([3.0, 10, 3, 4])]
)
def test_categories_that_are_numbers_are_the_same_however_they_are_written(cells):
    column = Categories("c", (3.0, 10.0))
    np.testing.assert_array_equal(encoded(column, cells), [[1, 0], [0, 1], [1, 0], [0, 0]])
    assert column.inputs() == ["c=3", "c=10"]


def test_ordered_categories_are_their_places():
    frame = pd.DataFrame({"size": ["M", "S", "L"]})
    expected = OrdinalEncoder(categories=[["S", "M", "L"]]).fit_transform(frame)[:, 0]
    column = Ordinal("size", ("S", "M", "L"), fill=0.5, indicator=True)
    found = encoded(column, ["M", "S", "L", "XL", None])
    np.testing.assert_array_equal(found[:, 0], [*expected, 0.5, 0.5])
    np.testing.assert_array_equal(found[:, 1], [0, 0, 0, 1, 1])
    falling = Ordinal("size", (3.0, 1.0, 2.0), fill=0.5)
    np.testing.assert_array_equal(encoded(falling, [1, 2, 3])[:, 0], [1, 2, 0])


def test_times_are_read_as_iso_8601_writes_them():
    end, start = datetime(2013, 1, 6, 23, 59, 30, tzinfo=UTC), datetime(2013, 1, 6, tzinfo=UTC)
    plain = ["2013-01-06 23:59:30", " 2013-01-06T23:59:30.000 "]
    zoned = ["2013-01-06T23:59:30Z", "2013-01-07 01:59:30+02:00"]
    for cells in (plain, plain + zoned):
        found = encoded(Times("t", fill=0.0), [*cells, "2013-01-06"])[:, 0]
        assert found.tolist() == [end.timestamp()] * len(cells) + [start.timestamp()]


@pytest.mark.parametrize(
    ("column", "cells", "why"),
    [
        (Numbers("a"), ["1", "red"], "column 'a' must hold numbers, .* 1 other, such as 'red'"),
        (Numbers("a"), ["true", "2"], "must hold numbers, .* such as 'true'"),
        (Numbers("a"), pa.array([1], pa.date32()), "but has others, of type date32"),
        (Times("a", fill=0.0), ["2020-01-01", "soon"], "must hold dates or times, .*'soon'"),
        (Times("a", fill=0.0), ["2020-13-01"], "must hold dates or times, .*'2020-13-01'"),
        (Times("a", fill=0.0), [1.0], "must hold dates or times, .* of type double"),
        (Categories("a", ("u", "v")), [1, 2], "must hold text, but has others, of type int64"),
        (Categories("a", (1.0, 2.0)), ["u"], "must hold numbers, .*'u'"),
    ],
)
def test_cells_of_another_kind_are_refused_with_one(column, cells, why):
    with pytest.raises(DataError, match=why):
        encoded(column, cells)


COLUMNS = (
    Numbers("n", fill=0.5, indicator=True),
    Categories("c", ("a", "b"), pooled=True),
    Categories("k", (1.0, 2.0), indicator=True),
    Ordinal("o", ("low", "high"), fill=0.25),
    Times("t", fill=1e9, periods=("day", "year")),
)
RECIPE = Recipe(
    COLUMNS, ("y",), ("no", "yes"), "w", {"id": "dropped"}, ("?",), single=False, header=False
)


def test_a_recipe_comes_back_from_its_text():
    assert Recipe.from_json(RECIPE.to_json()) == RECIPE
    assert json.loads(RECIPE.to_json()) == RECIPE.as_dict()
    for column in (*COLUMNS, Ordinal("o", ("b", "a"), 0.0), Numbers("n")):
        column.check()


def mutations(value):
    """The value with one part of it replaced or gone, in every way."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {k: v for k, v in value.items() if k != key}
            for changed in mutations(inner):
                yield value | {key: changed}
        yield value | {"more": 1}
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            for changed in mutations(inner):
                yield [*value[:i], changed, *value[i + 1 :]]
        yield [*value, *value]
    yield from (None, -1, 1e400, "x", [], {}, [[]], True, "\ud800")


def test_a_recipe_that_was_tampered_with_is_a_value_error_or_still_a_recipe():
    cells = ["1", "a", "1", "low", "2020-01-01", "1"]
    frame = pa.table([[cell] for cell in cells], names=list("nckotx"))
    taken = Counter()
    for changed in mutations(RECIPE.as_dict()):
        try:
            recipe = Recipe.from_json(json.dumps(changed))
        except ValueError:
            taken[False] += 1
            continue
        taken[True] += 1
        with suppress(DataError):
            assert recipe.transform(frame).shape == (1, len(recipe.feature_names))
    assert taken[False] > 200
    assert taken[True] > 20


@pytest.mark.parametrize("text", ["", "[" * 100_000, "1", "{}", "null", '{"format_version": 2}'])
def test_a_text_that_is_no_recipe_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011  who reads it says where
        Recipe.from_json(text)


def test_a_frame_may_be_of_pandas_or_pyarrow_with_columns_in_any_order():
    recipe = Recipe((Numbers("a", 0.0), Categories("b", ("u", "v"))))
    frame = pd.DataFrame({"more": [[1]], "b": pd.Categorical(["v"]), "a": [2]})
    for rows in (frame, pa.Table.from_pandas(frame), pa.Table.from_pandas(frame).to_batches()[0]):
        np.testing.assert_array_equal(recipe.transform(rows), [[2, 0, 1]])


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (pd.DataFrame({"b": ["u"]}), "the table has no column 'a', which is needed; it has b"),
        (pa.table([[1], [2]], names=["a", "a"]), "more than one column 'a'"),
        (pd.DataFrame({"a": [1, "u"]}), "each hold one kind of value"),
        (np.zeros((2, 2)), "rows must be a table of pandas, polars or pyarrow .* not ndarray"),
    ],
)
def test_a_frame_without_the_columns_is_refused(rows, why):
    with pytest.raises(DataError, match=why):
        Recipe((Numbers("a", 0.0),)).transform(rows)


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "-2.5", "1e3"],
        ["1", None, ".5"],
        ["", "7", "NA"],
        ["NAN", "2", "nan"],
        [" 1", "2 ", "inf"],
        ["true", "false", "true"],
        ["1", "x", "2020-01-01"],
        [None, None, None],
    ],
)
def test_plain_numbers_are_counted_at_once_as_cells_are_one_by_one(cells, monkeypatch):
    found = []
    for _ in range(2):
        contents = ColumnContents("a", pa.string(), Writing(), as_categories=False, is_written=True)
        contents.update(pa.array(cells, pa.string()))
        found.append(repr(vars(contents)))
        monkeypatch.setattr(column_contents, "plain_numbers", lambda *_: None)
    assert found[0] == found[1]
