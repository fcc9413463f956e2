"""`streamkern show`: the card of a model."""

import json

import h5py
import pytest
from commandline import invoke, streamkern

from streamkern import load
from streamkern.storage.untrusted import fixed

pytestmark = pytest.mark.usefixtures("folder")


def fit(*options):
    small = ("--components", 32, "--kernel", "gaussian", "--quiet")
    streamkern("fit", "data.h5", "--out", "model.h5", *small, *options)
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
    assert "data data.h5" in said
    assert "numpy" in said


DEEP = '{"a":' * 900 + "1" + "}" * 900
VALUES = [10**400, -1, "x", None, {}, [[None]], 1e400, json.loads(DEEP)]
PLACES = {
    ("model.h5", "report"): ("rows", "n_components", "alpha", "nearly_constant_columns", "data"),
    ("model.h5", "map_parameters"): ("n_features", "inner"),
    ("model.h5",): ("options", "versions", "feature_names"),
    ("m.h5", "report"): ("projected_worker_bytes", "dropped_columns", "seconds"),
    ("m.h5",): ("options", "n_folds"),
}


@pytest.mark.parametrize("place", list(PLACES))
def test_values_of_other_types_and_sizes_in_a_card_are_told_in_one_sentence(place):
    name, *within = place
    fit()
    streamkern("moments", "data.h5", "--out", "m.h5", "--components", 8, "--quiet")
    with h5py.File(name) as file:
        text = file["card"][()]
    second = ("predict", name, "data.h5") if name == "model.h5" else ("solve", name)
    for k, key in enumerate(PLACES[place]):
        for value in VALUES[k % 4 :: 4]:
            card = json.loads(text)
            part = card[within[0]] if within else card
            part[key] = value
            with h5py.File(name, "r+") as file:
                del file["card"]
                file["card"] = fixed(json.dumps(card))
            for command in (("show", name), (*second, "--out", "out.h5", "--force", "--quiet")):
                result = invoke(*command)
                assert result.exit_code in (0, 1), result.output
                assert "unexpected" not in result.output
                assert result.exit_code == result.stderr.count("Error: "), (key, value)
