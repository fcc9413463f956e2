"""`model.plot`: pictures on the user's Axes, of fitted and loaded models, or what they need."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from streamkern import Gaussian, RandomFeatureClassifier, RandomFeatureRidge
from streamkern.errors import ParameterError

mpl.use("Agg")
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((300, 3)), columns=["rooms", "age", "a$b$"])
y = pd.Series(np.sin(X["rooms"]) + X["age"] + 0.1 * RNG.standard_normal(300), name="price")


@pytest.fixture(scope="module")
def model():
    return RandomFeatureRidge("gaussian", n_components=128).fit(X, y, keep_moments=True)


@pytest.fixture
def ax():
    return Figure().add_subplot()


def test_each_picture_is_drawn_on_the_axes_that_were_given(model, ax):
    pictures = {
        "Penalty α": lambda ax: model.plot.penalty(ax=ax),
        "Number of random features D": lambda ax: model.plot.sizes(ax=ax),
        "Predicted price": lambda ax: model.plot.predicted(X, y, ax=ax),
        "Fall of R²": lambda ax: model.plot.inputs(X, y, ax=ax),
        "a$b$": lambda ax: model.plot.partial_dependence(X, "a$b$", ax=ax),
        "age": lambda ax: model.plot.partial_dependence(X, 1, ax=ax),
    }
    for name, draw in pictures.items():
        axes = Figure().add_subplot()
        assert draw(axes) is axes
        assert axes.get_xlabel() == name
        axes.figure.canvas.draw()
    # Importances are in their order, by name.
    labels = [each.get_text() for each in model.plot.inputs(X, y, ax=ax).get_yticklabels()]
    assert labels == ["age", "rooms", "a$b$"]


def test_a_new_axes_is_of_pyplot(model):
    from matplotlib import pyplot as plt

    axes = model.plot.penalty()
    assert plt.gcf() is axes.figure
    plt.close("all")


def test_a_classifier_has_probabilities_and_a_kernel_that_weighs_inputs_needs_no_rows(ax):
    classes = RandomFeatureClassifier("gaussian", n_components=32).fit(
        X, np.where(y > 0, "dear", "cheap")
    )
    assert classes.plot.partial_dependence(X, "age", ax=ax).get_ylabel() == "Probability of dear"
    ax = Figure().add_subplot()
    drawn = classes.plot.predicted(X, np.where(y > 0, "dear", "cheap"), ax=ax)
    assert drawn.get_xlabel() == "Probability of dear"
    given = RandomFeatureRidge(Gaussian((1.0, 5.0, 2.0)), n_components=32).fit(X, y)
    axes = given.plot.inputs(ax=Figure().add_subplot())
    assert [each.get_text() for each in axes.get_yticklabels()] == ["rooms", "a$b$", "age"]


def test_what_a_picture_needs_is_said_in_one_sentence(ax):
    model = RandomFeatureRidge("gaussian", n_components=16, alpha=0.1).fit(X, y)
    for draw, message in {
        model.plot.penalty: r"was given, so there is no curve .* fit with alpha='cv'\.",
        model.plot.sizes: "is not known of this model; fit with alpha='cv'",
        model.plot.inputs: r"weighs all inputs alike.*model\.plot\.inputs\(X, y\)",
        RandomFeatureRidge().plot.penalty: "a picture is made of a fitted",
        lambda: model.plot.partial_dependence(X, "agee"): "did you mean 'age'",
        lambda: model.plot.partial_dependence(X, 3): "from 0 to 2, not 3",
        lambda: model.plot.predicted(X, y, target=1): "target must be from 0 to 0, not 1",
    }.items():
        with pytest.raises(ParameterError, match=message):
            draw()
