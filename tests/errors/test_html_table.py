"""Tables of objects in notebooks: what they say, and that no text in them is more than text."""

import numpy as np
import pandas as pd
import pytest
from pages import Page

import streamkern
from streamkern.errors.html_table import html_table
from streamkern.parameters.plan import plan_system
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
    html = html_table(HOSTILE, [(text, text) for text in texts])
    page = Page(html)
    assert {tag for tag, _ in page.elements} == {"div", "table", "tr", "th", "td"}
    assert HOSTILE in page.text
    assert page.rows == [[text] * 2 for text in (HOSTILE, r"a\x1b[2J", "https://...@host/a.h5")]


def test_a_source_says_how_large_it_is_and_a_plan_is_a_table(rows):
    source = as_source(*rows)
    assert repr(source) == "ArraySource(300 rows, 2 inputs, 1 target, float64)"
    plan = plan_system(source, 64, n_folds=5)
    assert [tuple(row) for row in tables(plan).rows] == plan.rows()


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
