"""Tables of objects in notebooks: what they say, and that no text in them is more than text."""

import numpy as np
import pandas as pd
import pytest
from pages import Page
from rows_read import store

import streamkern
from streamkern import Gaussian, Matern
from streamkern.errors.html_table import html_table
from streamkern.kernels.base import DECLARED
from streamkern.parameters.plan import plan_fit
from streamkern.sources import as_source

HOSTILE = "<img src=x onerror=alert(1)>&\"'"


def tables(shown):
    return Page(shown._repr_html_())


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).standard_normal((300, 2))
    return X, X[:, 0] ** 2 + X[:, 1]


def test_every_text_is_escaped_and_secrets_are_left_out():
    texts = [HOSTILE, "a\x1b[2J", "https://user:password@host/a.h5"]
    html = html_table(HOSTILE, [(text, text) for text in texts], (HOSTILE, "value"))
    page = Page(html)
    assert {tag for tag, _ in page.elements} == {"div", "table", "tr", "th", "td"}
    assert page.rows[0] == [HOSTILE, "value"]
    assert page.rows[1:] == [[text] * 2 for text in (HOSTILE, r"a\x1b[2J", "https://...@host/a.h5")]


def test_a_file_with_hostile_names_is_shown_as_text(rows, tmp_path):
    for i in range(12):
        store(tmp_path / f"<b>{i:02}.h5", *rows, x_name=HOSTILE, chunks=(100, 2))
    source = streamkern.open_hdf5(str(tmp_path / "*.h5"), x=HOSTILE)
    page = tables(source)
    assert not page.all("img")
    assert not page.all("b")
    assert page.value_of("inputs") == f"2: {HOSTILE}"
    assert page.rows[5][0].endswith("/<b>00.h5")
    assert page.rows[5][1:4] == ["300", "chunks 100x2, uncompressed", "f8"]
    assert "12 files, the first 10" in page.text
    assert repr(source) == "HDF5Source(3,600 rows, 2 inputs, 1 target, float64)"


def test_arrays_and_plans_say_how_large_they_are(rows):
    source = as_source(*rows)
    assert repr(source) == "ArraySource(300 rows, 2 inputs, 1 target, float64)"
    assert tables(source).value_of("read as") == "float64, 4.8 kB of inputs"
    plan = plan_fit(source, 64, n_folds=5)
    assert [tuple(row) for row in tables(plan).rows] == plan.rows()


def test_every_kernel_shows_its_formula_and_its_parameters():
    for declared in DECLARED.values():
        page = tables(declared())
        assert page.value_of("k(x, x')") == declared.formula != ""
        assert {row[0] for row in page.rows[1:]} == declared().get_params().keys()
    scaled = tables(0.5 * Gaussian(2.0))
    assert dict(scaled.rows[1:]) == {"weights": "(0.5,)", "0__length_scale": "2.0"}
    parts = Gaussian(2.0).on([0]), Matern(nu=2.0)
    shown = [row[0] for row in tables(parts[0] * parts[1] + 0.5 * Gaussian(1.0)).rows]
    assert shown == [*map(repr, parts), repr(Gaussian(1.0))]


def test_a_model_shows_what_was_fitted_below_the_diagram(rows):
    model = streamkern.RandomFeatureRidge(n_components=32, alpha=0.5)
    assert "cross-validated" not in model._repr_html_()
    for each in (model.fit(*rows), model.model_):
        assert "<td" in each._repr_html_()
    html = model._repr_mimebundle_()["text/html"]
    assert html.startswith(model._repr_html_()[:20])
    page = Page(html[html.rindex("</body>") + 7 :])
    assert page.value_of("features") == "32, single precision"
    assert page.value_of("alpha") == "0.5"
    assert page.value_of("rows x inputs") == "300 x 2"
    assert "alpha: 0.5" in repr(model.model_)
    grown = streamkern.RandomFeatureRidge(n_components=32).partial_fit(*rows)
    assert "known, so they can be removed" in grown._repr_html_()
    assert grown._state._fitted is None  # nothing was solved to be shown


def test_models_of_classes_and_of_components_show_theirs(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=["a", "<b>"]).assign(city=["Rome", HOSTILE] * 150)
    labels = np.where(y > 0, HOSTILE, "no")
    classifier = streamkern.RandomFeatureClassifier(n_components=32).fit(frame, labels)
    page = tables(classifier.model_)
    assert page.value_of("classes") == f"{HOSTILE}, no"
    assert not page.all("img")
    assert tables(classifier.recipe_).rows[1:] == [*map(list, classifier.recipe_.in_words())]
    boosted = streamkern.RandomFeatureAdaBoost(n_estimators=2).fit(X, labels)
    assert tables(boosted.model_).value_of("rounds") == "2"
    components = streamkern.RandomFeaturePCA(n_components=3, n_random_features=32).fit(X)
    assert tables(components.model_).value_of("principal components") == "3"


def test_moments_show_their_rows_folds_and_size(rows):
    moments = streamkern.RandomFeatureRidge(n_components=32).moments(*rows)
    page = tables(moments)
    assert page.value_of("folds") == "5 by rows"
    assert page.value_of("features") == "32, single precision"
    assert page.value_of("kernel") == "gaussian"
    assert repr(moments).startswith("DataMoments(rows x inputs: 300 x 2, kernel: gaussian, ")
