"""Data frames of numbers are predicted as their inputs are, however their columns lie."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from harvests import smooth_rows

from streamkern import RandomFeatureRidge
from streamkern.errors import DataError
from streamkern.extensions.tables.recipe import Recipe

NAMES = ["a", "b", "c"]


def frame(n=40, seed=1, dtype=float):
    return pd.DataFrame(smooth_rows(n, seed=seed)[0].astype(dtype), columns=NAMES)


KINDS = {
    "as it was": lambda rows: rows,
    "one row": lambda rows: rows[:1],
    "another order": lambda rows: rows[["c", "a", "b"]],
    "more columns": lambda rows: rows.assign(d=1.0),
    "whole numbers": lambda rows: rows.astype({"b": int}),
    "all whole": lambda rows: rows.astype(int),
    "booleans": lambda rows: rows.assign(a=rows["a"] > 0),
    "half": lambda rows: rows.astype(np.float32),
    "of pandas": lambda rows: rows.convert_dtypes(),
    "of arrow": lambda rows: rows.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "missing": lambda rows: rows.assign(b=rows["b"].where(rows["a"] > 0)),
}


@pytest.mark.parametrize("dtype", [np.float32, float])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.* cells")
def test_a_frame_of_numbers_is_predicted_as_its_inputs(kind, dtype):
    rows = frame(200, seed=0, dtype=dtype)
    rows.loc[5, "b"] = np.nan  # so that there is a mean for others
    model = RandomFeatureRidge(n_components=32).fit(rows, smooth_rows(200)[1])
    new = KINDS[kind](frame(dtype=dtype))
    inputs = model.recipe_.transform(new)
    assert np.array_equal(model.predict(new), model.model_.predict(inputs))


def test_cells_are_looked_at_one_by_one_only_where_they_are_not_plain_numbers(monkeypatch):
    rows, y = smooth_rows(200)
    model = RandomFeatureRidge(n_components=32).fit(pd.DataFrame(rows, columns=NAMES), y)
    said, looked = model.predict(frame()), []
    transform = Recipe.transform
    monkeypatch.setattr(Recipe, "transform", lambda *given: looked.append(1) or transform(*given))
    assert np.array_equal(model.predict(frame()), said)
    assert not looked
    with pytest.raises(DataError, match="no column 'c'"):
        model.predict(frame()[["a", "b"]])
    with pytest.raises(DataError, match="infinity in 1 of 40 rows, in"):
        model.predict(frame().assign(b=[np.inf] + 39 * [0.0]))
    with pytest.raises(DataError, match="0 sample"):
        model.predict(frame()[:0])
    assert len(looked) == 3
