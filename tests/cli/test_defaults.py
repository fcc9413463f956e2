"""What a command does when nothing is asked for is what Python does by default."""

import pytest

import streamkern
from streamkern.estimators.classification import Classification
from streamkern.estimators.problems import Regression
from streamkern.parameters.parameters import Parameters
from streamkern.report import comparison

RIDGE, CLASSES = Regression(), Classification()


@pytest.mark.parametrize(
    ("line", "task", "parameters"),
    [
        ("fit data.h5 --out m.h5", RIDGE, Parameters()),
        ("fit data.h5 --out m.h5 --classify", CLASSES, Parameters()),
        ("moments data.h5 --out m.h5", RIDGE, Parameters()),
    ],
)
def test_a_model_has_the_same_defaults(handed_by, line, task, parameters):
    made, found, _ = handed_by(line, type(task), line.split()[0])
    assert type(made) is type(task)
    assert vars(made) == vars(task)
    assert found.values() == parameters.values()


def test_a_comparison_has_the_same_defaults(handed_by):
    _, model = handed_by("compare data.h5 --out found", comparison, "compare")
    expected = streamkern.RandomFeatureRidge(streamkern.Gaussian("median"))
    assert model.get_params() == expected.get_params()
