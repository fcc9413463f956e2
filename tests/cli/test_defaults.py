"""What a command does when nothing is asked for is what Python does by default."""

from inspect import signature
from unittest.mock import create_autospec

import numpy as np
import pytest
from commandline import invoke, write

import streamkern
from streamkern.errors import DataError
from streamkern.estimators.classification import Classification
from streamkern.estimators.problems import Regression
from streamkern.extensions.boosting.fitted_ensemble import Boosting
from streamkern.extensions.components.fitted_components import ComponentOptions
from streamkern.parameters.parameters import Parameters
from streamkern.report import comparison


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call a command, and return what it handed to a function, whose defaults are then checked."""
    monkeypatch.chdir(tmp_path)
    write("data.h5", np.random.default_rng(0).random((60, 3)), np.arange(60) % 2)

    def run(line, owner, name, **chosen):
        handed = create_autospec(getattr(owner, name), side_effect=DataError("that was all."))
        monkeypatch.setattr(owner, name, handed)
        assert "that was all" in invoke(*line.split()).output
        known = signature(handed).parameters
        for key, value in handed.call_args.kwargs.items():
            if key in known:
                expected = chosen.get(key, known[key].default)
                assert type(expected)(value) == expected if expected else value == expected
        return handed.call_args.args

    return run


RIDGE, CLASSES = Regression(), Classification()
ROUNDS = Boosting(10)


@pytest.mark.parametrize(
    ("line", "task", "parameters"),
    [
        ("fit data.h5 --out m.h5", RIDGE, Parameters()),
        ("fit data.h5 --out m.h5 --classify", CLASSES, Parameters()),
        ("fit data.h5 --out m.h5 --classify --boost 10", ROUNDS, ROUNDS.parameters_of_a_round()),
        ("tune data.h5 --out m.h5", RIDGE, Parameters()),
        ("tune data.h5 --out m.h5 --classify", CLASSES, Parameters()),
        ("moments data.h5 --out m.h5", RIDGE, Parameters()),
    ],
)
def test_a_model_has_the_same_defaults(run, line, task, parameters):
    made, found, _ = run(line, type(task), line.split()[0])
    assert type(made) is type(task)
    assert vars(made) == vars(task)
    assert found.values() == parameters.values()


def test_principal_components_have_the_same_defaults(run):
    options, _ = run("pca data.h5 --out pca.h5", ComponentOptions, "fit")
    assert options == ComponentOptions()
    known = signature(streamkern.RandomFeaturePCA).parameters
    assert {name: each.default for name, each in known.items()} == vars(options)


def test_a_comparison_has_the_same_defaults(run):
    _, model = run("compare data.h5 --out found", comparison, "compare")
    expected = streamkern.RandomFeatureRidge(streamkern.Gaussian("median"))
    assert model.get_params() == expected.get_params()
