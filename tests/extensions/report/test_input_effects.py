"""Which columns a report shows first, and curves over one of them, against the formulas."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from pages import Page
from rows_read import sample_of

import streamkern
from streamkern import Gaussian, RandomFeatureClassifier, RandomFeatureRidge
from streamkern.extensions.report.importance import held_out_importance
from streamkern.extensions.report.input_effects import partial_dependence
from streamkern.extensions.report.validation_pass import validated
from streamkern.sources import as_source


def rows(n=400):
    X = np.random.default_rng(0).standard_normal((n, 4)) * [1.0, 100.0, 0.01, 1.0]
    return X, np.sin(X[:, 0]) + X[:, 1] / 50 + 0.0 * X[:, 3]


def fitted(**options):
    options = {"n_components": 64, "precision": "double"} | options
    return RandomFeatureRidge(Gaussian(3.0), **options).fit(*rows())


def test_a_report_ranks_columns_of_a_table_where_gradients_do_not_exist(tmp_path):
    rng, n = np.random.default_rng(0), 1500
    clarity = rng.choice(list("ABCDEFGH"), n)
    frame = pd.DataFrame({"carat": rng.random(n), "clarity": clarity})
    price = 8.0 * frame["carat"] + (clarity == "A") + 0.1 * rng.standard_normal(n)
    model = RandomFeatureRidge("laplacian", n_components=512)
    model.fit(frame, price, keep_moments=True)
    streamkern.write_report(model, tmp_path / "report.html", frame, price)
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    titles = [each["alt"] for each in page.all("img")]
    # Levels of a column are one picture.
    assert titles[titles.index("Permutation importance") :][:3][1:] == ["carat", "clarity"]


def test_importance_in_a_report_is_that_of_rows_held_out():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 3)), rng.standard_normal(400)  # nothing to be learnt
    model = RandomFeatureRidge(Gaussian(1.0), n_components=512, alpha=[1e-3, 2e-3], n_folds=4)
    model.fit(X, y, keep_moments=True)
    of_fit = streamkern.permutation_importance(model, X, y).importances_mean
    found = validated(model.model_, as_source(X, y))
    _, held_out = held_out_importance(model.model_, found.predictor, found.sample)
    assert found.by_fold
    assert (of_fit > 0.5).all()
    assert (held_out < 0.5 * of_fit).all()


def test_a_curve_is_the_mean_of_predictions_of_rows_with_one_value():
    (X, y), model = [part[:300] for part in rows()], fitted()
    found = partial_dependence(model.model_, sample_of(X), [1])
    for k in (0, 17, 40):
        same = X[:300].copy()
        same[:, 1] = found.values[k]
        predicted = model.predict(same)
        assert found.means[k, 0] == pytest.approx(predicted.mean())
        assert found.lows[k, 0] == pytest.approx(np.quantile(predicted, 0.1))
    X[:, 0] = np.arange(300) % 3
    assert partial_dependence(model.model_, sample_of(X), [0]).values.tolist() == [0, 1, 2]
    classes = RandomFeatureClassifier("gaussian", n_components=32).fit(X, y > 0)
    curve = partial_dependence(classes.model_, sample_of(X), [1])
    assert curve.means[:, 0] == pytest.approx(
        [classes.predict_proba(np.insert(X[:300, [0, 2, 3]], 1, v, axis=1))[:, 1].mean()
         for v in curve.values]
    )  # fmt: skip


def test_levels_of_a_category_are_set_together_and_shown_from_the_largest():
    rng, n = np.random.default_rng(0), 600
    frame = pd.DataFrame({"area": rng.random(n), "city": rng.choice(["Bern", "Lima", "Oslo"], n)})
    price = frame["area"] + frame["city"].map({"Bern": 1.0, "Lima": 5.0, "Oslo": 3.0})
    model = RandomFeatureRidge(Gaussian(3.0), n_components=128).fit(frame, price)
    axes = model.plot.partial_dependence(frame, "city", ax=Figure().add_subplot())
    assert [each.get_text() for each in axes.get_yticklabels()] == ["Lima", "Oslo", "Bern"]
    (marks,) = axes.get_lines()
    means = [model.predict(frame.assign(city=city)).mean() for city in ("Lima", "Oslo", "Bern")]
    assert marks.get_xdata() == pytest.approx(means, abs=0.1)  # of 300 rows
