"""`streamkern show`: the card of a model."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

from streamkern import load
from streamkern.cli import main


def streamkern(*arguments):
    """Run a command that must succeed."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def report_of(*arguments):
    """The JSON object that a command ends with."""
    return json.loads(streamkern(*arguments, "--json", "--quiet").stdout.splitlines()[-1])


def rows(n=300, seed=0, q=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.stack([np.sin(X[:, 0]), 3 + X[:, 1] * X[:, 2]], axis=1)
    y = y[:, 0] if q is None else y[:, :q]
    return X, y + 0.1 * rng.standard_normal(y.shape)


def write(path, X, y=None, x_name="X", y_name="y"):
    with h5py.File(path, "w") as file:
        file[x_name] = X
        if y is not None:
            file[y_name] = y
    return path


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("data.h5", *rows())
    return tmp_path


def fit(*options):
    streamkern("fit", "data.h5", "--out", "model.h5", "--components", 32, "--quiet", *options)
    return load("model.h5")


def test_the_card_says_what_was_fitted_how_and_with_what_result(folder):
    model = fit("--kernel", "matern32", "--length-scale", 2.5, "--alpha", 0.375, "--seed", 77)
    said = " ".join(streamkern("show", "model.h5").stdout.split())
    assert "Model model.h5" in said
    assert "300 x 3" in said
    assert "matern32, length scale 2.5" in said
    assert "32 (single precision)" in said
    assert "alpha 0.375" in said
    assert "orthogonal, seed 77" in said
    assert f"training rmse {model.report_['train_rmse']:.5g}" in said
    assert str(folder / "data.h5").replace(" ", "") in said.replace(" ", "")
    assert "numpy" in said


def test_the_card_is_json():
    model = fit()
    card = report_of("show", "model.h5")
    assert card["report"] == model.report_
    assert card["options"]["n_components"] == 32
    assert card["report"]["data"]["files"][0]["path"].endswith("data.h5")
    assert set(card["versions"]) >= {"streamkern", "numpy", "h5py", "dask"}


def test_a_note_of_the_solver_is_shown():
    fit("--alpha", 1e-12, "--length-scale", 10)
    assert "below the precision floor" in " ".join(streamkern("show", "model.h5").stdout.split())


def test_columns_left_out_are_shown():
    X, y = rows()
    X[:, 1] = 3
    write("data.h5", X, y)
    fit()
    assert "constant columns left out 1" in " ".join(streamkern("show", "model.h5").stdout.split())


def test_a_model_fitted_to_arrays_can_be_shown():
    model = fit()
    model.fit(*rows()).save("array.h5")
    assert "array" in streamkern("show", "array.h5").stdout


def test_the_data_need_not_be_there_any_more(folder):
    fit()
    (folder / "data.h5").unlink()
    assert "300 x 3" in streamkern("show", "model.h5").stdout
