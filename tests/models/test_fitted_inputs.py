"""What columns are called: models take them by name, and make recipes of data frames."""

import warnings
from copy import deepcopy

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from rows_read import store
from sklearn.base import clone

import streamkern
from streamkern.errors import DataError, StreamkernWarning
from streamkern.registry import installed

KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "dask": lambda frame: dd.from_pandas(frame, npartitions=2),
}


def mixed(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "age": rng.integers(18, 80, n).astype(float),
        "job": rng.choice(["baker", "smith", "clerk"], n),
        "size": pd.Categorical(rng.choice(["s", "m"], n)),
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        "works": rng.random(n) > 0.5,
    })  # fmt: skip
    frame["pay"] = frame["age"] / 10 + 3 * (frame["job"] == "baker") + 0.1 * rng.normal(size=n)
    frame.loc[[3, 7], "age"] = np.nan
    frame.loc[5, "job"] = None
    return frame


def numbers(n=120):
    values = np.random.default_rng(0).normal(size=(n, 3)) * [1.0, 30.0, 0.1] + [0, 50, 7]
    frame = pd.DataFrame(values, columns=["height", "age", "share"])
    return frame.assign(pay=frame["age"] / 10 + np.sin(frame["height"]))


def loaded(frame, folder):
    """Return a model of a table, from a file."""
    frame.to_csv(folder / "t.csv", index=False)
    streamkern.convert(folder / "t.csv", folder / "t.h5", targets=["pay"], force=True)
    models()[0].fit(streamkern.open_hdf5(folder / "t.h5")).save(folder / "m.h5", force=True)
    return streamkern.load(folder / "m.h5")


def models():
    ridge = streamkern.RandomFeatureRidge("gaussian", n_components=32, alpha=0.1)
    made = [ridge]
    if "classes" in installed():
        made.append(streamkern.RandomFeatureClassifier("gaussian", n_components=32, alpha=0.1))
        made.append(streamkern.RandomFeatureAdaBoost(ridge, n_estimators=2))
    if "components" in installed():
        made.append(streamkern.RandomFeaturePCA(n_components=3, n_random_features=32))
    return made


def said(model, X):
    """Return all that a model makes of rows."""
    names = ("predict", "predict_proba", "decision_function", "transform")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamkernWarning)
        made = [getattr(model, name)(X) for name in names if hasattr(model, name)]
        if isinstance(model, streamkern.RandomFeatureRidge):
            made += model.predict(X, return_std=True)
    return [np.asarray(each) for each in made]


def assert_same(mine, theirs):
    for left, right in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("make", [numbers, mixed], ids=["numbers", "mixed"])
def test_a_model_of_a_table_takes_frames_by_name_in_any_order(make, tmp_path):
    frame = make()
    model = loaded(frame, tmp_path)
    inputs = frame.drop(columns="pay")
    assert model.feature_names_in_.tolist() == list(inputs)
    assert model.n_features_in_ == inputs.shape[1]
    expected = said(model, model.recipe_.transform(inputs))
    for kind in KINDS.values():
        shuffled = kind(inputs[list(inputs)[::-1]].assign(more="x"))
        assert_same(said(model, shuffled), expected)
        with pytest.raises(DataError, match="table has no column 'age', which is needed; it has"):
            model.predict(kind(inputs.drop(columns="age")))


def test_files_of_other_inputs_are_refused(tmp_path):
    model = loaded(numbers(), tmp_path)
    loaded(numbers()[["age", "height", "share", "pay"]], tmp_path)
    source = streamkern.open_hdf5(tmp_path / "t.h5")
    why = "the two are height, age, share and age, height, share; convert the table again"
    for use in (model.predict, model.evaluate):
        with pytest.raises(DataError, match=why):
            use(source)


@pytest.mark.parametrize("model", models(), ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("make", [numbers, mixed], ids=["numbers", "mixed"])
def test_a_fit_to_a_frame_makes_the_recipe_that_it_needs(make, model, tmp_path):
    frame = make()
    inputs, y = frame.drop(columns="pay"), frame["pay"]
    targets = y if isinstance(model, streamkern.RandomFeatureRidge) else y > y.median()
    fitted = clone(model).fit(inputs, targets)
    assert fitted.recipe_.keeps_numbers == (make is numbers)
    assert fitted.feature_names_in_.tolist() == list(inputs)
    assert fitted.n_features_in_ == inputs.shape[1]
    rows = inputs.to_numpy() if make is numbers else fitted.recipe_.transform(inputs)
    assert_same(said(fitted, inputs), said(clone(model).fit(rows, targets), rows))
    fitted.save(tmp_path / "m.h5")
    for other in (deepcopy(fitted), streamkern.load(tmp_path / "m.h5")):
        assert other.recipe_ == fitted.recipe_
        assert other.feature_names_in_.tolist() == list(inputs)
        assert_same(said(other, inputs), said(fitted, inputs))
        assert_same(said(other, inputs[list(inputs)[::-1]]), said(fitted, inputs))


def test_rows_that_come_later_become_inputs_by_the_first_recipe():
    frame, later = mixed(), mixed(60, seed=1)[["works", "since", "size", "job", "age", "pay"]]
    model = models()[0]
    whole, inputs = pd.concat([frame, later]), frame.drop(columns="pay")
    model.partial_fit(inputs, frame["pay"]).partial_fit(later.drop(columns="pay"), later["pay"])
    assert model.report_["rows"] == 180
    first = models()[0].fit(inputs, frame["pay"])
    assert model.recipe_ == first.recipe_
    like = models()[0].fit(whole.drop(columns="pay"), whole["pay"], like=first)
    tuned = models()[0].tune(inputs, frame["pay"], kernels="gaussian")
    assert like.recipe_ == tuned.recipe_ == first.recipe_
    np.testing.assert_allclose(said(model, inputs)[0], said(like, inputs)[0], rtol=1e-3)


def test_what_the_fit_had_not_is_told_once():
    frame = mixed()
    model = models()[0].fit(frame.drop(columns="pay"), frame["pay"])
    rows = mixed(20)[["job", "age", "size", "since", "works"]].dropna()
    model.predict(rows)  # without a warning
    rows.loc[rows.index[:2], "job"] = "astronaut"
    with pytest.warns(StreamkernWarning, match=r"had not: 2, job=astronaut \(2\)\.") as told:
        model.predict(rows)
    assert len(told) == 1
    model.predict(rows)  # without another
    rows = rows.astype({"size": str})
    rows.loc[rows.index[:3], "size"] = "enormous"
    with pytest.warns(StreamkernWarning, match=r"had not: 5, size=enormous \(3\), job=astr"):
        model.predict(rows)
    with pytest.raises(DataError, match="'age' must hold numbers, but has 2 others, such as 'ol"):
        model.predict(rows.assign(age=["old", "young", *["1"] * (len(rows) - 2)]))


def test_rows_that_are_not_finite_are_named_by_column(tmp_path):
    frame = numbers()
    X, y = frame[["height", "age", "share"]], frame["pay"].to_numpy()
    model = models()[0].fit(X, y)
    bad = X.copy()
    bad.iloc[4, 1] = bad.iloc[5, 1] = bad.iloc[5, 2] = np.inf
    why = r"in 2 of 120 rows, in 'age' \(2\), 'share' \(1\); on_bad_rows 'skip' .*, or fill"
    with pytest.raises(DataError, match=why):
        model.predict(bad)
    store(tmp_path / "t.h5", bad, y)
    why = r"2 of 120 rows hold NaN or infinite values, in column 1 \(2\), column 2 \(1\), the .*"
    for rows in ((bad.to_numpy(), y), (streamkern.open_hdf5(tmp_path / "t.h5"),)):
        with pytest.raises(DataError, match=why + r"\(--on-bad-rows skip\).*--impute"):
            models()[0].fit(*rows)
    plain = models()[0].fit(X.to_numpy(), y)
    with pytest.raises(DataError, match=r"overflow in column 1 \(2\), column 2 \(1\); .*--impute"):
        plain.predict_to_hdf5(streamkern.open_hdf5(tmp_path / "t.h5"), tmp_path / "p.h5")


def test_moments_of_tables_whose_columns_have_other_codes_do_not_merge(tmp_path):
    frame = mixed()[["age", "size", "pay"]]
    model = streamkern.RandomFeatureRidge(n_components=16, standardize=False, kernel="matern32")
    made = []
    for sizes in ("sm", "ms"):
        path = tmp_path / f"{sizes}.h5"
        typed = frame.assign(size=pd.Categorical(frame["size"], [*sizes], ordered=True))
        typed.to_parquet(tmp_path / "t.parquet")
        streamkern.convert(tmp_path / "t.parquet", path, targets=["pay"])
        made.append(model.moments(streamkern.open_hdf5(path)))
    with pytest.raises(DataError, match="tables have other categories or codes"):
        made[0].merge(made[1], repeated_rows=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_of_numbers_is_a_table_and_has_the_bits_of_its_numbers(kind, tmp_path):
    frame = numbers()
    inputs, make = frame.drop(columns="pay"), KINDS[kind]
    plain = (
        models()[0].fit(make(inputs).to_dask_array(lengths=True), frame["pay"])
        if (kind == "dask")
        else models()[0].fit(inputs.to_numpy(), frame["pay"])
    )
    model = models()[0].fit(make(inputs), frame["pay"].to_numpy())
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    gone = inputs.copy()
    gone.loc[::7, "age"] = np.nan
    filled = np.asarray(
        model.predict(make(inputs.assign(age=gone["age"].fillna(inputs["age"].mean()))))
    )
    shuffled = make(gone[["share", "height", "age"]].assign(more="x"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamkernWarning)
        np.testing.assert_allclose(np.asarray(model.predict(shuffled)), filled, rtol=1e-12)
    inputs[["share", "age", "height"]].to_csv(tmp_path / "t.csv", index=False)
    found = model.predict(tmp_path / "t.csv")
    np.testing.assert_allclose(found, np.asarray(model.predict(make(inputs))), rtol=1e-6)


@pytest.mark.parametrize("kind", ["pandas", "dask"])
def test_a_column_is_named_as_targets_and_weights(kind):
    frame, make = (
        numbers().assign(weight=np.arange(120) % 3 + 0.5, more=1.0 * np.arange(120)),
        KINDS[kind],
    )
    inputs, weights = frame[["height", "age", "share"]], frame["weight"]
    plain = models()[0].fit(make(inputs), frame["pay"].to_numpy(), weights.to_numpy())
    table = make(frame.drop(columns="more"))
    named = models()[0].fit(table, "pay", "weight")
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    assert named.feature_names_in_.tolist() == list(inputs)
    expected = plain.score(make(inputs), frame["pay"].to_numpy())
    assert named.score(table, y="pay") == pytest.approx(expected)
    several = models()[0].fit(make(frame.drop(columns="weight")), ["pay", "more"])
    assert several.coef_.shape[1] == 2
    for rows, why in ((table, "has no such column"), (inputs.to_numpy(), "is no data frame")):
        with pytest.raises(DataError, match=f"y is 'price', but X {why}; name a column"):
            models()[0].fit(rows, "price")


def test_labels_that_are_called_as_columns_stay_labels():
    X = pd.DataFrame(np.random.default_rng(0).random((60, 3)), columns=["cat", "dog", "more"])
    labels = np.where(X["cat"] > X["dog"], "cat", "dog")
    model = streamkern.RandomFeatureClassifier(n_components=16)
    assert model.fit(X, labels.tolist()).score(X, labels) > 0.9
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("kind", ["pandas", "dask"])
def test_text_that_is_dates_is_read_as_dates(kind, tmp_path):
    frame = mixed().assign(since=lambda rows: rows["since"].dt.strftime("%Y-%m-%d"))
    frame.loc[9, "since"] = None
    frame["code"] = ["007", "2020"] * 60  # which somebody made text
    columns = frame[["since", "code", "age", "job", "pay"]]
    model = models()[0].fit(KINDS[kind](columns), "pay")
    columns.to_csv(tmp_path / "t.csv", index=False)
    theirs = dict(models()[0].fit(tmp_path / "t.csv", y="pay").recipe_.in_words())
    mine = dict(model.recipe_.in_words())
    assert mine.pop("code") == "2 categories"
    assert mine == {name: words for name, words in theirs.items() if name not in ("pay", "code")}
    assert np.isfinite(said(model, KINDS[kind](columns))[0]).all()


def test_a_fit_tells_of_cells_once_at_the_line_of_its_caller(tmp_path):
    frame = mixed()
    model = models()[0].fit(frame, "pay")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for again in (model, models()[0].fit(tmp_path / "t.csv", y="pay")):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for rows in (frame, frame[:60], tmp_path / "t.csv"):
                again.predict(rows)
                again.score(rows, "pay")
            again.predict(again.recipe_.transform(frame))
            again.predict(again.recipe_.transform(frame))
        assert [str(each.message)[:15] for each in told] == ["the table has c", "X has no names "]
        assert {each.filename for each in told} == {__file__}
