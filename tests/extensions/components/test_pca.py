"""The commands `pca` and `transform`."""

from inspect import signature

import h5py
import numpy as np
import pytest
from commandline import refused, report_of, rows, streamkern, write

import streamkern as library
from streamkern import Gaussian, RandomFeaturePCA, load
from streamkern.extensions.components.fitted_components import ComponentOptions


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "data.h5", *rows())


def test_components_and_scores_are_those_of_python(data, tmp_path):
    X, _ = rows()
    options = ("--random-features", 64, "--components", 0.8, "--length-scale", 1.5)
    report = report_of("pca", data, "--out", tmp_path / "pca.h5", *options)
    expected = RandomFeaturePCA(Gaussian(1.5), n_components=0.8, n_random_features=64).fit(X)
    found = load(tmp_path / "pca.h5")
    assert found.get_params() == expected.get_params()
    assert np.array_equal(found.components_, expected.components_)
    assert report["n_components"] == expected.n_components_
    assert report["n_random_features"] == 64
    assert report["explained_variance"] == expected.explained_variance_.tolist()
    assert report["rows"] == len(X)
    assert report["n_targets"] == 0
    told = report_of("transform", tmp_path / "pca.h5", data, "--out", tmp_path / "scores.h5")
    assert (told["rows"], told["n_components"]) == (len(X), expected.n_components_)
    with h5py.File(tmp_path / "scores.h5") as file:
        assert np.array_equal(file["X"][:], expected.transform(X))
    # Scores are inputs of the next command.
    assert report_of("pca", tmp_path / "scores.h5", "--out", tmp_path / "next.h5")["rows"] == 300


def test_moments_give_the_components_of_their_rows(data, tmp_path):
    made = ("--length-scale", 1.5)
    streamkern("moments", data, "--out", tmp_path / "m.h5", "--components", 64, *made)
    report = report_of("pca", tmp_path / "m.h5", "--out", tmp_path / "one.h5", "--components", 3)
    wanted = ("--random-features", 64, "--components", 3, *made)
    other = report_of("pca", data, "--out", tmp_path / "two.h5", *wanted)
    assert report["explained_variance"] == pytest.approx(other["explained_variance"], rel=1e-5)
    said = refused(
        "pca", tmp_path / "m.h5", "--out", tmp_path / "no.h5", "--kernel", "laplacian", status=2
    )
    assert "--kernel is decided by the moments" in said


def test_the_card_says_what_the_components_are_of(data, tmp_path):
    streamkern("pca", data, "--out", tmp_path / "pca.h5", "--random-features", 16)
    shown = streamkern("show", tmp_path / "pca.h5").stdout
    assert "principal components" in shown
    assert "300 x 3" in shown
    assert report_of("show", tmp_path / "pca.h5")["kind"] == "RandomFeaturePCA"


def test_a_dry_run_plans_without_targets(data, tmp_path):
    plan = report_of("pca", data, "--out", tmp_path / "pca.h5", "--dry-run")
    assert (plan["n_targets"], plan["n_components"]) == (0, 2048)
    assert not (tmp_path / "pca.h5").exists()


def test_principal_components_have_the_same_defaults(handed_by):
    options, _ = handed_by("pca data.h5 --out pca.h5", ComponentOptions, "fit")
    assert options == ComponentOptions()
    known = signature(library.RandomFeaturePCA).parameters
    assert {name: each.default for name, each in known.items()} == vars(options)
