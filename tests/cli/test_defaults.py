"""What a command does when nothing is asked for is what Python does by default."""

from __future__ import annotations

from inspect import signature
from unittest.mock import create_autospec

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from streamkern.models.boosting_model import BoostedModel
from streamkern.models.classifier_model import ClassifierModel
from streamkern.models.ridge_model import RidgeModel
from streamkern.models.ridge_options import RidgeOptions

import streamkern
from streamkern.cli import main
from streamkern.cli.model_options import kernel_named
from streamkern.errors import DataError
from streamkern.kernels import KERNELS, Gaussian
from streamkern.models import moments_fit
from streamkern.report import comparison


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call a command, and return what it handed to a function, whose defaults are then checked."""
    monkeypatch.chdir(tmp_path)
    with h5py.File("data.h5", "w") as file:
        file["X"], file["y"] = np.random.default_rng(0).random((60, 3)), np.arange(60) % 2

    def run(line, owner, name, **chosen):
        handed = create_autospec(getattr(owner, name), side_effect=DataError("that was all."))
        monkeypatch.setattr(owner, name, handed)
        assert "that was all" in CliRunner().invoke(main, line.split()).output
        known = signature(handed).parameters
        for key, value in handed.call_args.kwargs.items():
            if key in known:
                expected = chosen.get(key, known[key].default)
                assert type(expected)(value) == expected if expected else value == expected
        return handed.call_args.args

    return run


def shown(model):
    """The parameters of a model, with those of a round of boosting in their place."""
    values = {name: getattr(model, name) for name in signature(type(model)).parameters}
    return values | ({"estimator": shown(model._ridge())} if "estimator" in values else {})


@pytest.mark.parametrize(
    ("line", "model_class"),
    [
        ("fit data.h5 --out m.h5", RidgeModel),
        ("fit data.h5 --out m.h5 --classify", ClassifierModel),
        ("fit data.h5 --out m.h5 --classify --boost 10", BoostedModel),
        ("tune data.h5 --out m.h5", RidgeModel),
        ("tune data.h5 --out m.h5 --classify", ClassifierModel),
        ("moments data.h5 --out m.h5", RidgeModel),
    ],
)
def test_a_model_has_the_same_defaults(run, line, model_class):
    # A search names the kernel and the map of the model.
    chosen = {"kernels": [Gaussian("median")], "maps": ["orthogonal"]}
    model, _ = run(line, model_class, line.split()[0], **chosen)
    assert type(model) is model_class
    assert shown(model) == shown(model_class())


def test_principal_components_have_the_same_defaults(run):
    _, options = run("pca data.h5 --out pca.h5", moments_fit, "fit_moments", needs_targets=False)
    assert options == streamkern.RandomFeaturePCA()._options()


def test_a_comparison_has_the_same_defaults(run):
    _, model = run("compare data.h5 --out found", comparison, "compare")
    assert shown(model) == shown(streamkern.RandomFeatureRidge())


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_the_same_by_its_name_alone_and_on_the_command_line(name):
    assert KERNELS[name] == kernel_named(name, "median")
    model = streamkern.RandomFeatureRidge(name, feature_map="nystroem")
    assert RidgeOptions(model).passes().kernel == KERNELS[name]
    assert model.get_params()["kernel"] == name
