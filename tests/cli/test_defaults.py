"""What a command does when nothing is asked for is what Python does by default."""

from __future__ import annotations

import importlib
from inspect import signature

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import streamkern
from streamkern.boosting import BoostedModel
from streamkern.classifier import ClassifierModel
from streamkern.cli import main
from streamkern.cli.model_options import kernel_named
from streamkern.errors import DataError
from streamkern.kernels import KERNELS
from streamkern.model import RidgeModel
from streamkern.ridgeoptions import RidgeOptions


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call a command, and return what it handed to the function of some module, or class."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    with h5py.File("data.h5", "w") as file:
        file["X"] = rng.standard_normal((60, 3))
        file["y"], file["label"] = rng.standard_normal(60), rng.integers(0, 2, 60)

    def run(line, owner, name):
        calls = []

        def called(*given, **named):
            calls.append((given, named))
            raise DataError("that was all.")

        monkeypatch.setattr(owner, name, called)
        found = CliRunner().invoke(main, line.split())
        assert "that was all" in found.output
        return calls[0]

    return run


def shown(model):
    """The parameters of a model, those of its estimator among them."""
    values = {name: getattr(model, name) for name in signature(type(model)).parameters}
    if "estimator" in values:
        values["estimator"] = shown(model._ridge())
    return values


@pytest.mark.parametrize(
    ("line", "model_class", "method"),
    [
        ("fit data.h5 --out m.h5", RidgeModel, "fit"),
        ("fit data.h5 --out m.h5 --classify --y label", ClassifierModel, "fit"),
        ("fit data.h5 --out m.h5 --classify --y label --boost 10", BoostedModel, "fit"),
        ("tune data.h5 --out m.h5", RidgeModel, "tune"),
        ("tune data.h5 --out m.h5 --classify --y label", ClassifierModel, "tune"),
        ("moments data.h5 --out m.h5", RidgeModel, "moments"),
    ],
)
def test_a_model_has_the_same_defaults(run, line, model_class, method):
    by_default = signature(getattr(RidgeModel, method)).parameters
    (model, _), named = run(line, model_class, method)
    assert type(model) is model_class
    assert shown(model) == shown(model_class())
    if method == "tune":  # the kernel and the map of the model, by their names
        assert named.pop("kernels") == [model.kernel]
        assert named.pop("maps") == [model.feature_map]
    assert named == {name: by_default[name].default for name in named}


def test_principal_components_have_the_same_defaults(run):
    fitting = importlib.import_module("streamkern.fitting")
    (_, options), _ = run("pca data.h5 --out pca.h5", fitting, "fit_moments")
    pca = streamkern.RandomFeaturePCA()
    assert options == pca._options()
    principal = importlib.import_module("streamkern.principal")
    (wanted,), _ = run("pca data.h5 --out pca.h5", principal, "checked_number")
    assert wanted == pca.n_components


def test_a_comparison_has_the_same_defaults(run):
    comparison = importlib.import_module("streamkern.comparison")
    by_default = signature(comparison.compare).parameters
    (_, model), named = run("compare data.h5 --out found", comparison, "compare")
    assert shown(model) == shown(streamkern.RandomFeatureRidge())
    found = {name: tuple(v) if isinstance(v, list) else v for name, v in named.items()}
    assert found == {name: by_default[name].default for name in named}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_the_same_by_its_name_alone_and_on_the_command_line(name):
    assert KERNELS[name] == kernel_named(name, "median")
    model = streamkern.RandomFeatureRidge(name, feature_map="nystroem")
    assert RidgeOptions(model).passes().kernel == KERNELS[name]
    assert model.get_params()["kernel"] == name
