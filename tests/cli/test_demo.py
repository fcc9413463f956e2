"""`streamkern demo`, on few rows."""

import json

import h5py
import pytest
from commandline import invoke

from streamkern import load, open_hdf5

DEMO = ["demo", "--rows", "20000", "--components", "64", "--quiet"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    result = invoke(*DEMO, "--out", folder / "out")
    assert result.exit_code == 0, result.output
    return folder / "out", result


def test_data_and_model_are_written(shown):
    folder, _ = shown
    assert sorted(path.name for path in folder.iterdir()) == ["model.h5", "test.h5", "train.h5"]
    with h5py.File(folder / "train.h5") as file:
        assert file["X"].shape == (20_000, 8)
        assert file["X"].chunks is not None
    assert load(folder / "model.h5").score(open_hdf5(folder / "test.h5")) > 0.3


def test_the_json_compares_errors(tmp_path):
    result = invoke(*DEMO, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    assert [(trial["model"], trial["rows"]) for trial in found["trials"]] == [
        ("linear ridge", 20_000),
        ("exact kernel ridge", 4000),
        ("random features", 4000),
        ("random features", 20_000),
    ]
    linear, exact, few, many = [trial["test_rmse"] for trial in found["trials"]]
    assert max(exact, few, many) < linear
    assert many < few
    assert min(exact, few, many) > 0.5
    assert found["report"]["rows"] == 20_000
    assert found["model"] == str(tmp_path / "model.h5")
