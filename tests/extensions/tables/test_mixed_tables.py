"""Tables of all kinds of columns become inputs as others would make them, and so do later ones."""

import json
from dataclasses import replace

import h5py
import numpy as np
import pandas as pd
import pytest
from commandline import write

import streamkern
from streamkern import convert, read_recipe
from streamkern.errors import DataError, ModelFileError, ParameterError
from streamkern.extensions.tables import stored_tables, table_conversion
from streamkern.sources import open_hdf5

CITIES = ["Basel", "Zürich", "Bern", "Genève"]


def mixed(n=600, seed=0):
    """A table with a number, categories, a time, a truth value, and cells missing in each."""
    rng = np.random.default_rng(seed)
    hours = pd.to_timedelta(rng.integers(0, 24 * 30, n), "h")
    frame = pd.DataFrame(
        {
            "age": rng.integers(17, 90, n).astype(float),
            "city": rng.choice(CITIES, n),
            "since": pd.Timestamp("2020-01-01T05:00:00") + hours,
            "works": rng.choice([True, False], n),
        }
    )
    frame["pay"] = frame["age"] + 10 * (frame["city"] == "Bern") + rng.standard_normal(n)
    frame["label"] = np.where(frame["pay"] > 60, ">50K", "<=50K é")
    for name in ("age", "city", "since"):
        frame.loc[rng.random(n) < 0.1, name] = None
    return frame


def expected(frame, of):
    """The inputs of the mixed table in pandas, by the means and periods of another."""
    age, since = frame["age"], frame["since"]
    epoch = pd.Timestamp("1970-01-01")
    seconds, of_seconds = (
        (times - epoch) / pd.Timedelta(seconds=1) for times in (since, of["since"])
    )
    angles = 2 * np.pi * (seconds / 86_400 % 1), 2 * np.pi * ((seconds / 86_400 + 3) / 7 % 1)
    waves = {
        f"{wave.__name__} {i}": wave(a) for i, a in enumerate(angles) for wave in (np.sin, np.cos)
    }
    return pd.DataFrame(
        {
            "age": age.fillna(of["age"].mean()),
            "age is missing": age.isna(),
            **{f"city={city}": frame["city"] == city for city in sorted(CITIES)},
            "city is missing": frame["city"].isna(),
            "since": seconds.fillna(of_seconds.mean()),
            **{name: values.fillna(0) for name, values in waves.items()},
            "since is missing": since.isna(),
            "works": frame["works"],
        }
    ).astype(float)


WRITERS = {
    "t.csv": lambda table, path: table.to_csv(path, index=False),
    "t.tsv.gz": lambda table, path: table.to_csv(path, index=False, sep="\t", na_rep=" ?"),
    "t.parquet": lambda table, path: table.to_parquet(path),
}


@pytest.fixture(params=WRITERS)
def table_file(request, tmp_path):
    """Return a function that writes a data frame in one of the formats."""

    def write(table, name=request.param):
        WRITERS[request.param](table, tmp_path / name)
        return tmp_path / name

    return write


@pytest.fixture(params=[False, True], ids=["whole", "in pieces"])
def pieces(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(stored_tables, "PIECE_BYTES", 4000)
        monkeypatch.setattr(table_conversion, "_PIECE_BYTES", 8 * 14 * 100)


def names_of(path):
    with h5py.File(path) as file:
        return json.loads(file.attrs["feature_names"])


def test_a_mixed_table_is_what_pandas_makes_of_it(table_file, tmp_path, pieces):
    frame = mixed()
    path = table_file(frame.drop(columns="label"))
    result = convert(path, tmp_path / "o.h5", targets=["pay"])
    theirs = expected(frame, frame)
    with h5py.File(tmp_path / "o.h5") as file:
        np.testing.assert_allclose(file["X"][:], theirs, rtol=1e-13, atol=1e-9)
        np.testing.assert_array_equal(file["y"][:], frame["pay"])
    kept = [name for name in theirs if name[:3] not in ("sin", "cos") or name.startswith("since")]
    assert [name for name in names_of(tmp_path / "o.h5") if " of " not in name] == kept
    assert result["n_features"] == 14
    assert result["missing_rows"] == 0
    assert result["columns"]["city"] == "4 categories"


def test_later_rows_become_inputs_by_the_recipe_of_the_first(table_file, tmp_path, pieces):
    first, later = mixed(), mixed(300, seed=1)
    later.loc[5, "city"] = "Lugano"
    convert(table_file(first), tmp_path / "o.h5", targets=["pay"], drop=["label"])
    theirs = expected(later, first)
    shuffled = later[["works", "since", "city", "age"]].assign(more="x")
    path = table_file(shuffled, f"later{''.join(table_file(first).suffixes)}")
    convert(path, tmp_path / "later.h5", targets=None, like=tmp_path / "o.h5")
    with h5py.File(tmp_path / "later.h5") as file:
        np.testing.assert_allclose(file["X"][:], theirs, rtol=1e-13, atol=1e-9)
        assert "y" not in file
    recipe = read_recipe(tmp_path / "o.h5")
    np.testing.assert_allclose(recipe.transform(later), theirs, rtol=1e-13, atol=1e-9)
    source = open_hdf5([tmp_path / "o.h5", tmp_path / "later.h5"], y=None)
    assert source.n_samples == 900


def test_labels_are_texts_of_fixed_length_and_rows_without_one_are_left_out(
    table_file, tmp_path, pieces
):
    frame = mixed()
    frame.loc[[3, 500], "label"] = None
    path = table_file(frame.drop(columns="pay"))
    result = convert(path, tmp_path / "o.h5", targets=["label"])
    labelled = frame.dropna(subset="label")
    with h5py.File(tmp_path / "o.h5") as file:
        assert h5py.check_string_dtype(file["y"].dtype) == ("utf-8", len("<=50K é".encode()))
        assert file["y"].asstr()[:].tolist() == labelled["label"].tolist()
        np.testing.assert_array_equal(file["X"][:, -1], labelled["works"])
    assert (result["rows"], result["unlabelled_rows"]) == (598, 2)
    later = pd.DataFrame({"label": ["<=50K é", "no"]})
    with pytest.raises(DataError, match="target 'label' is 'no' in a row, but was one of '<=50K"):
        read_recipe(tmp_path / "o.h5").read_targets(later)


def test_columns_without_names_are_numbered(tmp_path):
    (tmp_path / "t.csv").write_text("39, Private, <=50K\n50, ?, >50K\n28, State-gov, <=50K\n")
    convert(tmp_path / "t.csv", tmp_path / "o.h5", targets=["2"], header=False)
    assert names_of(tmp_path / "o.h5") == ["0", "1=Private", "1=State-gov", "1 is missing"]
    (tmp_path / "n.csv").write_text("40, Private\n")
    convert(tmp_path / "n.csv", tmp_path / "p.h5", targets=None, like=tmp_path / "o.h5")
    with h5py.File(tmp_path / "p.h5") as file:
        np.testing.assert_array_equal(file["X"][:], [[40, 1, 0, 0]])


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("a,a,y\nu,1,2\nv,2,3\n", {}, "two columns 'a'; rename one"),
        ("a,y\nu,2\nv,3\n", {"drop": ["c"]}, "'c' is no column of .*t.csv; its columns are a"),
        ("a,y\nu,2\nv,3\n", {"drop": ["y"]}, "'y' is a target of"),
        ("a,b,y\nu,1,2\nv,x,3\n", {}, "t.csv: column 'b' holds numbers .'1'. and text .'x'."),
    ],
)
def test_a_table_that_has_no_rule_is_refused_and_leaves_nothing(tmp_path, text, options, why):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=why):
        convert(tmp_path / "t.csv", tmp_path / "o.h5", targets=["y"], **options)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_options_of_tables_are_for_tables(tmp_path):
    with pytest.raises(ParameterError, match=r"t\.npz is no CSV or Parquet"):
        convert(tmp_path / "t.npz", tmp_path / "o.h5", impute=True)
    with pytest.raises(ParameterError, match="like takes all from another recipe"):
        convert(tmp_path / "t.csv", tmp_path / "o.h5", like=tmp_path / "o.h5", drop=["a"])


def test_a_file_without_a_recipe_is_no_pattern(tmp_path):
    write(tmp_path / "o.h5", np.zeros((3, 2)))
    with pytest.raises(DataError, match=r"o\.h5 has no recipe of a table"):
        read_recipe(tmp_path / "o.h5")
    with pytest.raises(DataError, match=r"none\.h5 does not exist"):
        read_recipe(tmp_path / "none.h5")
    model = streamkern.RandomFeatureRidge(n_components=4, alpha=1.0)
    model.fit(np.arange(6.0).reshape(3, 2), np.arange(3.0)).save(tmp_path / "m.h5")
    assert streamkern.load(tmp_path / "m.h5").recipe_ is None
    with pytest.raises(ModelFileError, match="was not fitted to a table"):
        read_recipe(tmp_path / "m.h5")


def converted(path, frame, **options):
    """Convert a data frame by way of a CSV beside the file of rows."""
    frame.to_csv(path.with_suffix(".csv"), index=False)
    return convert(path.with_suffix(".csv"), path, **options)


@pytest.fixture
def fitted(tmp_path):
    """The folder of a mixed table, its rows in HDF5, and a model fitted to them."""
    converted(tmp_path / "t.h5", mixed(), targets=["pay"], drop=["label"])
    model = streamkern.RandomFeatureRidge("gaussian", n_components=64, alpha=0.1)
    model.fit(open_hdf5(tmp_path / "t.h5")).save(tmp_path / "m.h5")
    return tmp_path


def test_moments_keep_the_recipe_where_all_rows_have_the_same(fitted):
    model = streamkern.RandomFeatureRidge(n_components=16, alpha=0.1)
    moments = model.moments(open_hdf5(fitted / "t.h5"))
    converted(fitted / "n.h5", mixed(100, seed=3), like=fitted / "t.h5")
    both = moments.merge(model.moments(open_hdf5(fitted / "n.h5"), like=moments))
    both.save(fitted / "both.h5")
    assert read_recipe(fitted / "both.h5") == read_recipe(fitted / "t.h5")
    assert model.solve(both).recipe_ == read_recipe(fitted / "t.h5")


def test_the_file_of_a_model_keeps_the_recipe_and_checks_it(fitted):
    model = streamkern.RandomFeatureRidge(n_components=16, alpha=0.1)
    model.fit(open_hdf5(fitted / "t.h5")).save(fitted / "o.h5")
    recipe = read_recipe(fitted / "t.h5")
    assert model.recipe_ == streamkern.load(fitted / "o.h5").recipe_ == recipe
    assert read_recipe(fitted / "o.h5") == recipe
    fewer = replace(recipe, columns=recipe.columns[1:])
    model.report_["data"]["recipe"] = fewer.as_dict()
    model.save(fitted / "n.h5")
    with pytest.raises(ModelFileError, match=r"damaged .*a recipe of \d+ inputs for \d+"):
        streamkern.load(fitted / "n.h5")


def test_files_by_different_recipes_are_no_data_set(fitted):
    converted(fitted / "n.h5", mixed(100, seed=3), targets=["pay"], drop=["label"])
    with pytest.raises(DataError, match=r"by the same recipe, but those of .* differ; .*--like"):
        open_hdf5([fitted / "t.h5", fitted / "n.h5"])


@pytest.mark.parametrize("where", ["t.h5", "m.h5"])
def test_a_recipe_that_was_tampered_with_is_told_in_a_sentence(fitted, where):
    data = (fitted / where).read_bytes()
    damaged = data.replace(b'"categories"', b'"catego\xffies"')
    (fitted / where).write_bytes(damaged)
    assert damaged != data
    with pytest.raises((DataError, ModelFileError), match=f"{where} (has|is) .*; (give|copy)"):
        read_recipe(fitted / where)
    with pytest.raises((DataError, ModelFileError), match="damaged"):
        (open_hdf5 if where == "t.h5" else streamkern.load)(fitted / where)


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01"])
def test_days_far_from_1970_are_seconds_too(tmp_path, day):
    days = [f"2020-01-{i:02}" for i in range(1, 20)] + [day]
    frame = pd.DataFrame({"a": range(20), "day": days, "y": range(20)})
    converted(tmp_path / "o.h5", frame, targets=["y"])
    with h5py.File(tmp_path / "o.h5") as file:
        assert file["X"][-1, 1] == np.datetime64(day, "s").astype(float)


@pytest.mark.parametrize("name", ["y_pred", "y_std", "y_proba", "classes", "X", "a/b"])
def test_an_id_of_a_file_may_not_be_called_as_one_of_an_option_may_not(name, fitted):
    frame = mixed().assign(number=np.arange(len(mixed())))
    with pytest.raises(ParameterError, match=f"id may not be called '{name}'"):
        converted(fitted / "n.h5", frame, targets=["pay"], ids=[name])
    converted(fitted / "n.h5", frame, targets=["pay"], drop=["label"], ids=["number"])
    model = streamkern.RandomFeatureRidge("gaussian", n_components=16, alpha=0.1)
    model.fit(open_hdf5(fitted / "n.h5"))
    for ids in ([name], ["number", "number"]):
        with h5py.File(fitted / "n.h5", "r+") as file:
            recipe = json.loads(file["streamkern-recipe"][()])
            del file["streamkern-recipe"]
            file["streamkern-recipe"] = np.bytes_(json.dumps(recipe | {"ids": ids}))
            if name not in file:
                file[name] = np.zeros(len(frame))
        with pytest.raises(
            DataError, match=r"n\.h5 has damaged headers \((an id called|a recipe of no)"
        ):
            model.predict_to_hdf5(fitted / "n.h5", fitted / "p.h5")
        assert not (fitted / "p.h5").exists()
