"""Graphs that take the columns of a table, against the models that they stand for."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from commandline import refused, report_of
from harvests import ridge, smooth_rows

import streamkern
from streamkern import Linear, RandomFeatureClassifier
from streamkern.errors import ParameterError


def farm(n, seed, is_new=False):
    """Rows of every kind of column, with cells that are missing, and new ones where asked for."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "rain": rng.standard_normal(n),
            "height": 5e4 + 1e3 * rng.standard_normal(n),
            "crop": rng.choice(["hay", "oats", "late oats", "Grünkohl"], n),
            "village": [f"v{int(each)}" for each in rng.exponential(25, n)],  # more than are kept
            "organic": rng.random(n) < 0.4,
            "grade": pd.Categorical(rng.choice([*"SML"], n), [*"SML"], ordered=True),
            "soil": pd.Categorical(rng.choice([1.0, 2.5, 7.0], n)),
            "sown": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 3 * 365 * 86400, n), unit="s"),
        }
    )
    for name in ("rain", "crop", "grade", "soil", "sown"):
        frame.loc[rng.random(n) < 0.05, name] = None
    y = frame.rain.fillna(0) + (frame.crop == "hay") + frame.organic + np.sin(frame.height / 1e3)
    y += 0.2 * (frame.soil == 7.0) + 0.1 * rng.standard_normal(n)
    if is_new:
        frame.loc[::3, "height"] = np.nan
        frame.loc[::5, "village"] = "far away"
        frame.loc[::7, "crop"] = "rye"
        frame.loc[::11, "crop"] = "n/a"
        frame["soil"] = frame.soil.astype(float).where(frame.index % 4 > 0, 9.0)
        frame["grade"] = frame.grade.astype(object).where(frame.index % 4 > 0, "XL")
    return frame, y


def answers(path, frame):
    session = onnxruntime.InferenceSession(path)
    given = {}
    for each in session.get_inputs():
        cells = frame[each.name]
        if each.type == "tensor(string)":
            values = cells.astype(object).where(cells.notna(), "").to_numpy(dtype=object)
        elif cells.dtype.kind == "M":
            values = (cells - pd.Timestamp(0)).dt.total_seconds().to_numpy()
        else:
            values = cells.to_numpy(dtype=np.float32 if "float" in each.type else np.float64)
        given[each.name] = values[:, None]
    return session.run(None, given)


@pytest.mark.filterwarnings("ignore:the table has cells")
@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        ({"precision": "double", "alpha": "cv"}, 1e-9),
        ({"precision": "single", "alpha": "cv"}, 1e-4),
        ({"feature_map": "identity", "kernel": Linear(), "alpha": "cv"}, 1e-6),
    ],
)
def test_columns_become_what_the_recipe_makes_of_them(options, tolerance, tmp_path):
    model = ridge(n_components=64, **options).fit(*farm(1500, seed=0))
    columns = model.recipe_.as_dict()["columns"]
    assert [each["levels"][-1] for each in columns if each["name"] == "soil"] == [7.0]
    kinds = {each["kind"] for each in columns}
    assert kinds == {"numbers", "categories", "ordinal", "times"}
    new, _ = farm(300, seed=1, is_new=True)
    how = {"return_std": True, "interval": 0.8}
    streamkern.to_onnx(model, tmp_path / "model.onnx", table=True, **how)
    found = answers(tmp_path / "model.onnx", new)
    predicted, deviations, ends = model.predict(new, **how)
    for one, other in zip(found, (predicted, deviations, *ends.T), strict=True):
        assert np.abs(one - other).max() < tolerance
    model.save(tmp_path / "model.h5")
    out = "--out", tmp_path / "again.onnx", "--table"
    assert report_of("export", tmp_path / "model.h5", *out)["output"] == "y_pred"
    assert np.array_equal(answers(tmp_path / "again.onnx", new)[0], found[0])


@pytest.mark.filterwarnings("ignore:the table has cells")
def test_classes_of_tables_have_graphs(tmp_path):
    frame, y = farm(1500, seed=0)
    labels = np.where(y > y.median(), "good", "bad")
    model = RandomFeatureClassifier("gaussian", n_components=64, precision="double").fit(
        frame, labels
    )
    streamkern.to_onnx(model, tmp_path / "model.onnx", table=True)
    new, _ = farm(300, seed=1, is_new=True)
    (found,) = answers(tmp_path / "model.onnx", new)
    assert np.abs(found - model.predict_proba(new)).max() < 1e-9


def test_no_table_is_refused(tmp_path):
    frame, y = farm(300, seed=0)
    named = ridge().fit(frame.rename(columns={"rain": "y_pred"}), y)
    with pytest.raises(ParameterError, match="gives y_pred, as a column"):
        streamkern.to_onnx(named, tmp_path / "model.onnx", table=True)
    model = ridge().fit(*farm(300, seed=0))
    model.save(tmp_path / "model.h5")
    out = "--out", tmp_path / "model.c", "--table"
    assert "write ONNX" in refused("export", tmp_path / "model.h5", *out, status=2)
    with pytest.raises(ParameterError, match="of no table"):
        streamkern.to_onnx(ridge().fit(*smooth_rows()), tmp_path / "model.onnx", table=True)
