"""Choosing among maps: what suits the function is found, where it is affordable, and reported."""

import numpy as np
import pytest
from commandline import report_of, streamkern, write
from harvests import same_bits
from rows_read import Unread

import streamkern as library
from streamkern import Cauchy, Gaussian, Laplacian, Linear, Matern, Periodic, RandomFeatureRidge
from streamkern.errors import ParameterError
from streamkern.extensions.search.settings import kernels_to_try, maps_to_try
from streamkern.features import FAMILIES

D = 64


def smooth(n=600, p=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def ridge(**options):
    return RandomFeatureRidge(**{"n_components": D} | options)


# What is tried.


def test_maps_are_named_or_listed_for_the_inputs():
    assert maps_to_try(None, "iid", 2) == ["iid"]
    assert maps_to_try("iid", "orthogonal", 2) == ["iid"]
    assert maps_to_try(["orthogonal", "iid"], "iid", 9) == ["orthogonal", "iid"]
    assert maps_to_try("auto", "orthogonal", 4) == ["orthogonal", "nystroem"]
    of_few = ["grid"] * ("grid" in FAMILIES)
    assert maps_to_try("auto", "orthogonal", 3) == ["orthogonal", "nystroem", *of_few]
    assert maps_to_try("auto", "iid", 4) == ["iid", "orthogonal", "nystroem"]
    assert maps_to_try(None, "auto", 4) == ["orthogonal", "nystroem"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"maps": []}, "maps must be"),
        ({"maps": ["iid", "iid"]}, "maps must be"),
        ({"maps": ["fast"]}, "maps must be"),
        ({"maps": ["orthogonal", "identity"]}, "not the linear kernel or the identity map"),
        ({"kernels": [Gaussian(), Linear()], "maps": "auto"}, "kernels that have a length scale"),
    ],
)
def test_maps_that_cannot_be_are_refused(options, match):
    with pytest.raises(ParameterError, match=match):
        ridge().tune(*smooth(100), **options)


def test_automatic_kernels_begin_with_that_of_the_model():
    found = kernels_to_try("auto", Laplacian(3.0))
    assert found[0] == Laplacian(3.0)
    assert {kernel.name for kernel in found} == {
        "gaussian", "matern52", "matern32", "matern12", "laplacian",
    }  # fmt: skip
    assert len(found) == 5
    assert {kernel.length_scale for kernel in found} == {3.0}
    periodic = Periodic(0.3, period=2.0)
    assert {each.length_scale for each in kernels_to_try("auto", periodic)[1:]} == {"median"}
    assert kernels_to_try(None, Matern()) == [Matern()]
    with pytest.raises(ParameterError, match=r"kernel must be one of .*, not 'all'"):
        kernels_to_try("all", Gaussian())


@pytest.mark.usefixtures("few_components")
def test_every_map_goes_on_to_the_last_rung():
    report = ridge(n_components=128).tune(*smooth(), maps=["orthogonal", "iid"]).report_
    tried = {}
    for attempt in report["tuning"]:
        tried.setdefault(attempt["n_components"], []).append(attempt["feature_map"])
    assert list(tried) == [16, 32, 64, 128]
    for size, number in ((16, 13), (32, 4), (64, 2)):
        assert sorted(tried[size]) == ["iid"] * number + ["orthogonal"] * number
    # And the model of a plain fit.
    assert sorted(tried[128]) == ["iid", "orthogonal", "orthogonal"]
    last = [a for a in report["tuning"] if a["n_components"] == 128]
    best = min(last, key=lambda attempt: attempt["relative_mse"])
    assert report["feature_map"] == best["feature_map"]
    assert report["length_scale"] == best["length_scale"]


def test_a_part_of_the_rows_allows_a_quarter_as_many_features(monkeypatch):
    monkeypatch.setattr("streamkern.parameters.fit_options._LARGE_SAMPLE", 1600)
    report = ridge(n_components=512).tune(*smooth(1700), maps=["orthogonal", "iid"]).report_
    assert {a["n_components"] for a in report["tuning"]} == {128, 256, 400}
    assert {a["n_rows"] for a in report["tuning"]} == {1600}


@pytest.mark.parametrize(
    ("p", "kernels", "maps", "expected"),
    [
        (3, [Gaussian(), Laplacian()], ["sorf", "orthogonal"],
         {("gaussian", "orthogonal"), ("laplacian", "orthogonal"), ("gaussian", "sorf")}),
        (3, [Laplacian(), Gaussian()], ["orthogonal", "sorf"],
         {("gaussian", "orthogonal"), ("laplacian", "orthogonal"), ("gaussian", "sorf")}),
        (2, [Periodic(1.0, period=2.0)], "auto",  # without a density, there is no grid
         {("periodic(period=2)", "orthogonal"), ("periodic(period=2)", "nystroem")}),
    ],
)  # fmt: skip
def test_kernels_have_the_maps_that_go_with_them_in_any_order(p, kernels, maps, expected):
    report = ridge().tune(*smooth(300, p), kernels=kernels, maps=maps).report_
    assert {(each["kernel"], each["feature_map"]) for each in report["tuning"]} == expected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"feature_map": "grid"}, "a grid of frequencies is for 1 to 3 inputs, not 5"),
        ({"feature_map": "nystroem", "kernel": Cauchy("median"), "metric": "learn"},
         "a metric is learnt from gradients, which the map 'nystroem' of the kernel 'cauchy' does"),
    ],
)  # fmt: skip
def test_a_map_that_cannot_be_drawn_is_refused_before_any_row_is_read(options, sentence):
    X, y = smooth(300, p=5)
    with pytest.raises(ParameterError, match=sentence):
        ridge(**options).fit(Unread(X, y))


def test_maps_without_gradients_are_left_out_where_a_metric_is_learnt():
    X, y = smooth(600, p=4)
    model = ridge(kernel=Cauchy("median"), metric="learn:1").tune(X, y, maps="auto")
    assert {each["feature_map"] for each in model.report_["metric"]["rounds"]} == {"orthogonal"}


def clustered(n=900, p=8):
    """A level of its own in each of many small clusters."""
    rng = np.random.default_rng(0)
    centres, levels = 3.0 * rng.standard_normal((30, p)), rng.standard_normal(30)
    of = rng.integers(0, 30, n)
    return centres[of] + 0.1 * rng.standard_normal((n, p)), levels[of]


def waves(n=900, p=2):
    """A wave in every direction, of which the Fourier map has the frequencies."""
    X = np.random.default_rng(0).standard_normal((n, p))
    standardized = (X - X.mean(axis=0)) / X.std(axis=0)
    map_of = library.RandomFourierFeatures(Gaussian(0.1), 8, random_state=0).fit(standardized)
    return X, map_of.transform(standardized) @ np.random.default_rng(1).standard_normal(8)


@pytest.mark.parametrize(("rows", "expected"), [(clustered, "nystroem"), (waves, "orthogonal")])
@pytest.mark.usefixtures("few_components")
def test_the_map_that_suits_the_function_is_chosen(rows, expected):
    X, y = rows()
    kernel = Gaussian(0.1 if expected == "orthogonal" else 1.0)
    report = ridge(kernel=kernel).tune(X, y, maps=["orthogonal", "nystroem"]).report_
    assert report["feature_map"] == expected
    last = {a["feature_map"]: a["relative_mse"] for a in report["tuning"] if a["n_components"] == D}
    assert max(last.values()) > 4 * min(last.values())


# What becomes of it.


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"feature_map": "auto"}, {"maps": ["iid", "orthogonal"]}),
        ({}, {"kernels": [Laplacian("median")], "maps": "iid"}),
    ],
)
def test_a_tuned_model_is_that_of_a_fit_and_a_template_for_others(given, options, tmp_path):
    X, y = smooth()
    model = ridge(**given).tune(X, y, **options)
    chosen = model.report_["feature_map"]
    assert same_bits(model, ridge(kernel=model.kernel_, feature_map=chosen).fit(X, y))
    model.save(tmp_path / "model.h5")
    loaded = library.load(tmp_path / "model.h5")
    assert loaded.get_params()["feature_map"] == given.get("feature_map", "orthogonal")
    assert loaded.report_["tuning"] == model.report_["tuning"]
    assert np.array_equal(loaded.predict(X), model.predict(X))
    other = ridge().fit(X, y, like=tmp_path / "model.h5")
    assert other.feature_map_.equals(model.feature_map_)
    assert other.report_["feature_map"] == chosen


def test_a_search_that_is_stopped_goes_on_with_the_same_map(tmp_path, monkeypatch):
    X, y = smooth()
    with monkeypatch.context() as patched:
        patched.setattr("streamkern.fit.sum_features", None)
        with pytest.raises(TypeError, match="not callable"):
            ridge().tune(X, y, maps=["iid", "orthogonal"], checkpoint=tmp_path / "saved")
    again = ridge().tune(X, y, maps=["iid", "orthogonal"], checkpoint=tmp_path / "saved")
    assert again.report_["resumed_shards"] > 0
    assert same_bits(again, ridge().tune(X, y, maps=["iid", "orthogonal"]))
    with pytest.raises(library.errors.CheckpointError):
        ridge().tune(X, y, maps=["iid"], checkpoint=tmp_path / "saved")


# On the command line.


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("data.h5", *smooth(p=4))


TUNE = ("tune", "data.h5", "--out", "model.h5", "--components", D)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--map", "iid,orthogonal"), {"maps": ["iid", "orthogonal"]}),
        (("--map", "auto", "--kernel", "gaussian"), {"maps": "auto", "kernels": "gaussian"}),
        (("--map", "auto", "--kernel", "matern32"), {"maps": "auto", "kernels": Matern("median")}),
    ],
    ids=str,
)
@pytest.mark.usefixtures("data")
def test_a_command_is_the_call_of_python(arguments, named):
    report = report_of(*TUNE, *arguments)
    expected = ridge().tune(library.open_hdf5("data.h5"), **named)
    assert report["tuning"] == expected.report_["tuning"]
    assert report["feature_map"] == expected.report_["feature_map"]
    assert same_bits(library.load("model.h5"), expected)


@pytest.mark.usefixtures("data")
def test_the_tables_tell_maps_and_the_frontier():
    said = streamkern(*TUNE, "--map", "iid,orthogonal", "--kernel", "gaussian,laplacian").stdout
    report = library.load("model.h5").report_
    shown = streamkern("show", "model.h5").stdout
    for text in (said, shown):
        tried, _, frontier = text[text.index("Settings tried") :].partition("Error against cost")
        assert "iid" in tried
        lines = [line.split() for line in frontier.splitlines() if "chosen" in line]
        assert lines[0][1:3] == [report["feature_map"], report["kernel"]]
