"""Choosing kernel and length scale on a sample: what is found, and what it is worth."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import dask
import naive
import numpy as np
import pytest

import streamkern
from streamkern import Gaussian, Laplacian, Linear, Matern, Periodic, RandomFeatureRidge
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.features import RandomFourierFeatures
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.plan import _LARGE_SAMPLE, large_sample
from streamkern.tune.trials import Attempt, Trial

P = 3
# A function of this length scale, where the median distance says four times as much or as little.
LENGTH_SCALES = {"short": 0.6, "long": 10.0}


def drawn_from_a_kernel(length_scale, n, p=P, seed=0):
    """Rows, and a function drawn from the Gaussian kernel."""
    rng = np.random.default_rng(0)
    frequencies, phases = rng.standard_normal((p, 500)) / length_scale, rng.uniform(0, 7, 500)
    amplitudes = rng.standard_normal(500) / np.sqrt(250)
    X = np.random.default_rng([1, seed]).standard_normal((n, p))
    return X, np.cos(X @ frequencies + phases) @ amplitudes


def smooth(n=1200, q=None, length_scale=1.0):
    X, y = drawn_from_a_kernel(length_scale, n)
    y = np.stack([y, 5 + 100 * np.sin(X[:, 0] / length_scale)], axis=1)
    y = y + [0.1, 10.0] * np.random.default_rng(1).standard_normal(y.shape)
    return X, y[:, 0] if q is None else y[:, :q]


def ridge(**options):
    kernel = options.pop("kernel", Gaussian("median"))
    return RandomFeatureRidge(kernel, **{"n_components": 64} | options)


@pytest.fixture
def few_components(monkeypatch):
    """Let the rungs have an eighth, a quarter and a half of the features, however few these are."""
    monkeypatch.setattr("streamkern.tune.halving._FEWEST_COMPONENTS", 8)


class Stopped(Exception):  # noqa: N818  no error
    """The search is over, and nothing is to be fitted."""


def same_bits(one, other):
    return one.coef_.tobytes() == other.coef_.tobytes()


# What is found.


@pytest.mark.parametrize("kind", list(LENGTH_SCALES))
@pytest.mark.parametrize("D", [64, 256])
def test_a_function_of_another_length_scale_than_the_median_is_fitted_better(kind, D):
    X, y = drawn_from_a_kernel(LENGTH_SCALES[kind], 4000)
    y = y + 0.05 * y.std() * np.random.default_rng(1).standard_normal(len(y))
    median, tuned = ridge(n_components=D).fit(X, y), ridge(n_components=D).tune(X, y)
    moved = tuned.kernel_.length_scale / median.kernel_.length_scale
    assert moved <= 1 / 2 if kind == "short" else moved >= 2
    assert tuned.report_["cv_rmse"] < median.report_["cv_rmse"]
    new = drawn_from_a_kernel(LENGTH_SCALES[kind], 4000, seed=1)
    assert tuned.score(*new) > median.score(*new)


@pytest.mark.parametrize("kernel", [Gaussian("median"), Matern("median"), Laplacian("median")])
@pytest.mark.parametrize("budget", [None, 30])
@pytest.mark.filterwarnings("ignore::streamkern.errors.StreamkernWarning")
def test_a_median_of_a_tight_cluster_is_left_behind(kernel, budget):
    rng = np.random.default_rng(0)
    # Nine rows in ten are within a thousandth of each other, and the others say what y depends on.
    X = rng.standard_normal((1200, 2)) * np.where(rng.random(1200) < 0.9, 1e-3, 1.0)[:, None]
    y = np.sin(2 * X[:, 0]) + np.cos(X[:, 1]) + 0.1 * rng.standard_normal(1200)
    options = {"kernels": kernel, "maps": "orthogonal"} if budget else {}
    tuned = ridge(kernel=kernel, n_components=128).tune(X, y, budget=budget, **options)
    median = ridge(kernel=kernel, n_components=128).fit(X, y)
    right = ridge(kernel=kernel.with_length_scale(4.0), n_components=128).fit(X, y)
    assert tuned.report_["cv_rmse"] < 1.25 * right.report_["cv_rmse"]
    assert right.report_["cv_rmse"] < 0.6 * median.report_["cv_rmse"]
    assert tuned.kernel_.length_scale > 50 * median.kernel_.length_scale
    assert budget is None or tuned.report_["tuning_passes"] <= budget


OFFERS = [
    {},
    {"budget": 12, "kernels": Gaussian("median"), "maps": "orthogonal"},
    {"maps": ["orthogonal", "iid"]},
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", OFFERS)
def test_what_is_found_was_compared_with_a_plain_fit_as_that_is_validated(
    options, seed, few_components
):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 3))
    y = np.sin(1.5 * X).sum(axis=1) + 0.3 * rng.standard_normal(400)
    plain, tuned = ridge(n_components=128).fit(X, y), ridge(n_components=128).tune(X, y, **options)
    assert tuned.report_["cv_rmse"] <= plain.report_["cv_rmse"] * (1 + 1e-6)
    last = [a for a in tuned.report_["tuning"] if a["n_components"] == 128]
    if tuned.kernel_ == plain.kernel_:
        return
    same = [
        a
        for a in last
        if (a["kernel"], a["feature_map"], a["length_scale"])
        == ("gaussian", "orthogonal", plain.kernel_.length_scale)
    ]
    assert [a["n_folds"] for a in same] == [5]
    assert same[0]["relative_mse"] == pytest.approx(
        plain.report_["cv_rmse"] ** 2 / y.var(), rel=5e-3
    )


@pytest.mark.parametrize("times", [1 / 4, 4.0])
def test_a_median_that_is_wrong_by_four_is_put_right(times):
    X, y = smooth(3000)
    right = ridge(kernel=Gaussian(1.0), n_components=128).fit(X, y).report_["cv_rmse"]
    wrong = ridge(kernel=Gaussian(times), n_components=128).fit(X, y).report_["cv_rmse"]
    tuned = ridge(kernel=Gaussian(times), n_components=128).tune(X, y)
    assert wrong > 1.1 * right
    assert tuned.report_["cv_rmse"] <= 1.02 * right
    assert 0.5 <= tuned.kernel_.length_scale <= 2.0


def test_the_chosen_length_scale_is_near_the_best_of_all_that_are_offered():
    X, y = smooth(1500)
    tuned = ridge(kernel=Gaussian(1.0), n_components=128).tune(X, y)
    each = [
        ridge(kernel=Gaussian(2.0**octave), n_components=128).fit(X, y).report_["cv_rmse"]
        for octave in np.arange(-6, 7) / 2
    ]
    # The search knows the errors to one part in 20, by their standard error.
    assert tuned.report_["cv_rmse"] <= 1.1 * min(each)


def test_a_rough_function_gets_the_rough_kernel():
    X = np.random.default_rng(0).standard_normal((3000, 4))
    y = np.abs(X).sum(axis=1)  # with an edge along every axis
    found = ridge(n_components=256).tune(X, y, kernels=[Gaussian(), Matern(nu=2.5), Laplacian()])
    assert found.kernel_.name == "laplacian"
    assert found.report_["kernel"] == "laplacian"


@pytest.mark.filterwarnings("ignore:the error still falls:streamkern.errors.StreamkernWarning")
def test_a_smooth_function_gets_the_smooth_kernel():
    X, y = drawn_from_a_kernel(1.5, 3000, p=2)
    found = ridge(n_components=256).tune(X, y, kernels=[Laplacian(), Gaussian()])
    assert found.kernel_.name == "gaussian"


def test_one_kernel_has_the_score_that_it_has_among_several():
    X, y = smooth()
    alone = ridge().tune(X, y, kernels=[Matern()]).report_["tuning"]
    among = ridge().tune(X, y, kernels=[Gaussian(), Matern()]).report_["tuning"]
    first_rung = [attempt for attempt in among if attempt["kernel"] == "matern32"][:13]
    assert first_rung == alone[:13]


# What was tried.


def test_the_report_names_every_attempt(few_components):
    X, y = smooth()
    kernels = [Gaussian(2.0), Matern(), Laplacian(3.0)]
    model = ridge(n_components=100).tune(X, y, kernels=kernels)
    attempts = model.report_["tuning"]
    rungs = {}
    for attempt in attempts:
        assert attempt.keys() == {
            "metric", "feature_map", "kernel", "length_scale", "n_rows", "n_components",
            "relative_mse", "standard_error", "alpha", "n_folds",
        }  # fmt: skip
        assert attempt["n_rows"] == len(X)
        assert attempt["standard_error"] >= 0
        assert 0 < attempt["relative_mse"] <= 1.1
        assert attempt["alpha"] > 0
        rungs.setdefault(attempt["n_components"], []).append(attempt)
    # An eighth, a quarter and a half of D, made even, and D.
    assert list(rungs) == [12, 24, 50, 100]
    assert {a["n_folds"] for rung in (12, 24, 50) for a in rungs[rung]} == {3}
    assert {a["n_folds"] for a in rungs[100]} == {5}
    names = ["gaussian", "matern32", "laplacian"]
    assert [a["kernel"] for a in rungs[12][:39]] == [n for n in names for _ in range(13)]
    factors = 2.0 ** (np.arange(-6, 7) / 2)
    scales = [a["length_scale"] for a in rungs[12][:13]]
    assert scales == pytest.approx(2.0 * factors, rel=1e-12)
    assert json.loads(json.dumps(attempts)) == attempts


def test_the_best_of_the_last_attempts_is_what_is_fitted(few_components):
    X, y = smooth()
    model = ridge(n_components=128).tune(X, y, kernels=[Gaussian(), Matern()])
    by_rung = {16: [], 32: [], 64: [], 128: []}
    for attempt in model.report_["tuning"]:
        by_rung[attempt["n_components"]].append(attempt)
    # 13 of each kernel; four about the best of each; two about the best of all that are left; and
    # the best with what a plain fit takes.
    assert [len(rung) for rung in by_rung.values()] == [26, 8, 4, 2]
    best = min(by_rung[128], key=lambda attempt: attempt["relative_mse"])
    assert model.kernel_.name == best["kernel"]
    assert model.kernel_.length_scale == best["length_scale"]


def test_the_model_is_that_of_a_fit_with_the_chosen_kernel():
    X, y = smooth()
    model = ridge().tune(X, y)
    fitted = ridge(kernel=model.kernel_).fit(X, y)
    assert same_bits(model, fitted)
    assert model.report_["cv_rmse"] == fitted.report_["cv_rmse"]
    assert model.get_params()["kernel"] == Gaussian("median")


def test_the_report_counts_the_search():
    model = ridge().tune(*smooth())
    seconds = model.report_["seconds"]
    assert seconds["search"] > 0
    assert seconds["total"] >= seconds["search"] + seconds["pass"] + seconds["solve"]
    assert "tuning" not in ridge().fit(*smooth()).report_


def test_a_tuned_model_survives_a_file(tmp_path):
    X, y = smooth()
    model = ridge().tune(X, y, kernels=[Gaussian(), Matern((1.0, 2.0, 3.0))])
    model.save(tmp_path / "model.h5")
    loaded = streamkern.load(tmp_path / "model.h5")
    assert loaded.report_["tuning"] == model.report_["tuning"]
    assert loaded.kernel_ == model.kernel_
    assert np.array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("D", "rungs"), [(4096, [512, 1024, 2048, 4096]), (600, [128, 150, 300, 600]), (64, [64])]
)
def test_a_rung_has_128_features_or_all_where_an_eighth_is_fewer(D, rungs, monkeypatch):
    tried = []

    def never_mind(trial, X, y, factors, *rest):
        tried.append(trial.n_components)
        return [
            Attempt(
                "plain", "iid", "gaussian", factor, len(y), trial.n_components, factor, 0.1, 1.0
            )
            for factor in factors
        ]

    def no_pass(source, options, *rest, **named):
        raise Stopped(options.kernel.length_scale)

    monkeypatch.setattr(Trial, "__call__", never_mind)
    monkeypatch.setattr("streamkern.models.tuned_fit.moments_pass", no_pass)
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(Stopped) as caught,
    ):
        ridge(n_components=D, kernel=Gaussian(8.0)).tune(*smooth(100))
    assert list(dict.fromkeys(tried)) == rungs
    # The least factor had the least error: a sixteenth at first, the nearest that is within a
    # standard error of the best, then one and half an octave less.
    assert caught.value.args == (pytest.approx(8.0 / 16 / 2 / 2**0.5),)


# What may be asked for.


def test_length_scales_of_inputs_are_stretched_together():
    X, y = smooth()
    scales = np.array([1.0, 2.0, 4.0])
    model = ridge().tune(X, y, kernels=[Gaussian(tuple(scales))])
    factors = np.array(model.kernel_.length_scale) / scales
    assert np.ptp(factors) == pytest.approx(0, abs=1e-12)
    assert 2 * np.log2(factors[0]) == pytest.approx(round(2 * np.log2(factors[0])), abs=1e-12)
    first = [np.array(attempt["length_scale"]) / scales for attempt in model.report_["tuning"][:13]]
    expected = 2.0 ** (np.arange(-6, 7) / 2)
    assert np.array(first) == pytest.approx(np.tile(expected[:, None], 3), rel=1e-12)


@pytest.mark.parametrize("scales", [(1.0, 2.0), (1.0, 2.0, 3.0, 4.0)])
def test_length_scales_for_other_inputs_are_refused(scales):
    with pytest.raises(ParameterError, match=f"one per input, 3 here, not {len(scales)}"):
        ridge().tune(*smooth(300), kernels=[Gaussian(), Gaussian(scales)])
    with pytest.raises(ParameterError, match=f"one per input, 3 here, not {len(scales)}"):
        ridge(kernel=Gaussian(scales)).tune(*smooth(300))


def test_a_constant_column_changes_nothing():
    X, y = smooth()
    wide = np.insert(X, 1, 7.0, axis=1)
    for kernel, with_column in (
        (Gaussian(), Gaussian()),
        (Gaussian((1.0, 2.0, 3.0)), Gaussian((1.0, 99.0, 2.0, 3.0))),
    ):
        expected = ridge(kernel=kernel).tune(X, y)
        with pytest.warns(StreamkernWarning, match="1 constant column"):
            model = ridge(kernel=with_column).tune(wide, y)
        assert model.kernel_ == expected.kernel_
        assert model.report_["tuning"] == expected.report_["tuning"]
        assert np.array_equal(model.predict(wide), expected.predict(X))


def test_several_targets_count_alike_whatever_their_units():
    X, y = smooth(q=2)
    together = ridge().tune(X, y)
    rescaled = ridge().tune(X, y * [1e-6, 1e6] + [1e3, -1e9])
    assert together.kernel_.length_scale == rescaled.kernel_.length_scale
    for one, other in zip(
        together.report_["tuning"], rescaled.report_["tuning"], strict=True
    ):  # fmt: skip
        assert one["relative_mse"] == pytest.approx(other["relative_mse"], rel=1e-3)
    alone = [ridge().tune(X, y[:, j]).report_["tuning"][:13] for j in range(2)]
    for attempt, *each in zip(together.report_["tuning"][:13], *alone, strict=True):
        # One penalty for both is no better than one for each.
        mean = np.mean([single["relative_mse"] for single in each])
        assert attempt["relative_mse"] >= 0.999 * mean


def test_a_target_that_is_constant_is_no_hindrance():
    X, y = smooth(q=2)
    y[:, 1] = 3.0
    model = ridge().tune(X, y)
    assert model.kernel_ == ridge().tune(X, y[:, :1]).kernel_


OPTIONS = {
    "phases": {"paired": False},
    "an odd number of phases": {"paired": False, "n_components": 63},
    "one phase": {"paired": False, "n_components": 1},
    "one pair": {"n_components": 2},
    "independent frequencies": {"feature_map": "iid"},
    "independent phases": {"feature_map": "iid", "paired": False},
    "double": {"precision": "double"},
    "without an intercept": {"fit_intercept": False},
    "inputs as they are": {"standardize": False},
    "a penalty": {"alpha": 0.5},
    "evidence": {"alpha": "evidence"},
    "a number of features to choose": {"n_components": "auto"},
}


@pytest.mark.parametrize("case", list(OPTIONS))
def test_the_search_takes_the_options_of_the_fit(case, monkeypatch):
    monkeypatch.setattr("streamkern.parameters.parameters.AUTO_COMPONENTS", 128)
    X, y = smooth(600)
    model = ridge(**OPTIONS[case]).tune(X, y)
    assert same_bits(model, ridge(**OPTIONS[case] | {"kernel": model.kernel_}).fit(X, y))
    if OPTIONS[case].get("n_components", 64) not in (1, 2):
        best = min(attempt["relative_mse"] for attempt in model.report_["tuning"])
        worst = max(attempt["relative_mse"] for attempt in model.report_["tuning"])
        assert best < 0.5 * worst


def test_single_and_double_precision_find_the_same():
    X, y = smooth()
    single, double = (ridge(precision=name).tune(X, y) for name in ("single", "double"))
    assert single.kernel_.length_scale == pytest.approx(double.kernel_.length_scale, rel=1e-6)
    scores = [
        np.array([attempt["relative_mse"] for attempt in model.report_["tuning"]])
        for model in (single, double)
    ]
    assert scores[0].min() == pytest.approx(scores[1].min(), rel=1e-2)
    # Smaller penalties than single precision allows do better for long length scales only.
    assert (scores[0] >= 0.99 * scores[1]).all()


def test_a_combination_is_searched_with_the_scale_of_every_part_and_without_constant_columns():
    X, y = smooth(400)
    wide = np.insert(X, 1, 7.0, axis=1)
    kernel = Gaussian("median").on([0, 2]) * Laplacian("median").on([1]) + Matern("median")
    with pytest.warns(StreamkernWarning, match="constant"):
        model = ridge().tune(wide, y, kernels=[kernel, Gaussian()])
    names = {attempt["kernel"] for attempt in model.report_["tuning"]}
    assert names == {"gaussian[0,1]+matern32", "gaussian"}
    both = Gaussian("median").on([0, 1]) + Matern("median")
    expected = ridge().tune(X, y, kernels=[both, Gaussian()])
    assert same_bits(model, expected)
    assert model.kernel_ == expected.kernel_


def test_length_scales_of_a_combination_at_the_edge_are_said_for_columns_that_are_left(monkeypatch):
    monkeypatch.setattr("streamkern.tune.candidates._FARTHEST", 3)
    X, y = smooth(400)
    wide = np.insert(X, 0, 7.0, axis=1)
    kernel = Gaussian(1.0).on([0]) + Gaussian(1e3).on([1]) * Laplacian(1e3).on([2])
    with pytest.warns(StreamkernWarning, match="constant"):
        model = ridge(kernel=kernel).tune(wide, y)
    assert "and those in proportion to it, are at the edge" in model.report_["note"]


def test_a_periodic_kernel_is_searched_though_its_frequencies_do_not_stretch():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 10.0, (1500, 1))
    y = np.exp(np.sin(2 * np.pi * X[:, 0])) + 0.1 * rng.standard_normal(1500)
    kernel = Periodic("median", period=1.0)
    tuned = ridge(kernel=kernel, standardize=False).tune(X, y)
    scales = {a["length_scale"] for a in tuned.report_["tuning"]}
    assert len(scales) >= 13
    assert tuned.report_["cv_rmse"] < 0.12
    fitted = ridge(kernel=tuned.kernel_, standardize=False).fit(X, y)
    assert same_bits(tuned, fitted)


@pytest.mark.parametrize(
    ("options", "kernels", "match"),
    [
        ({"kernel": Linear()}, None, "not the linear kernel or the identity map"),
        ({"feature_map": "identity"}, None, "not the linear kernel or the identity map"),
        ({}, [Gaussian(), Linear()], r"kernels that have a length scale, not Linear\(\)"),
        ({}, [3.0], "kernel must be a kernel such as .*, not 3.0"),
        ({}, [], "a search needs a kernel with a length scale"),
    ],
)
def test_a_search_without_a_length_scale_is_refused(options, kernels, match):
    with pytest.raises(ParameterError, match=match):
        ridge(**options).tune(*smooth(100), kernels=kernels)


def test_kernels_may_be_named_by_a_text():
    X, y = smooth(100)
    by_name = ridge(kernel="gaussian").tune(X, y, kernels=["matern32", "laplacian"])
    assert same_bits(by_name, ridge().tune(X, y, kernels=[Matern(), Laplacian()]))


def test_kernels_that_are_named_count_whatever_the_model_has():
    X, y = smooth(100)
    searched = ridge(kernel=Linear()).tune(X, y, kernels=[Gaussian("median")])
    assert same_bits(searched, ridge().tune(X, y))


def test_bad_rows_are_refused_or_left_out():
    X, y = smooth(600)
    expected = ridge().tune(X[2:], y[2:])
    X[0, 1], y[1] = np.nan, np.inf
    with pytest.raises(DataError, match="2 of 600 rows"):
        ridge().tune(X, y)
    model = ridge(on_bad_rows="skip").tune(X, y)
    assert model.report_["skipped_rows"] == 2
    assert model.kernel_.length_scale == pytest.approx(expected.kernel_.length_scale, rel=0.5)


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_rows_are_refused(n):
    X, y = smooth(10)
    with pytest.raises((ParameterError, DataError), match=r"rows|1 sample|every y equals|constant"):
        ridge(kernel=Gaussian(1.0), alpha=1.0).tune(X[:n], y[:n])


def test_the_sample_is_bounded_in_rows_and_bytes():
    assert large_sample(10) == _LARGE_SAMPLE
    assert large_sample(2000) * 2000 * 8 <= 128 << 20
    assert 256 <= large_sample(10**6) <= 512
    X, y = drawn_from_a_kernel(1.0, _LARGE_SAMPLE + 1000, p=1)
    model = ridge(n_components=16).tune(X, y)
    assert {attempt["n_rows"] for attempt in model.report_["tuning"]} == {_LARGE_SAMPLE}
    assert model.report_["rows"] == _LARGE_SAMPLE + 1000


def test_rows_are_read_twice():
    X, y = smooth(600)
    read = []

    class Counted(streamkern.sources.arrays.ArraySource):
        def reader(self, shard):
            read.append(shard.n_rows)
            return super().reader(shard)

    ridge().tune(Counted(X, y))
    assert sum(read) == 2 * 600


# The same wherever it runs.


@pytest.fixture(scope="module")
def here():
    X, y = smooth(1000, q=2)
    return X, y, ridge().tune(X, y, kernels=[Gaussian(), Matern()])


def test_the_same_search_finds_the_same_bits(here):
    X, y, model = here
    again = ridge().tune(X, y, kernels=[Gaussian(), Matern()])
    assert again.report_["tuning"] == model.report_["tuning"]
    assert same_bits(again, model)
    other = ridge(random_state=1).tune(X, y, kernels=[Gaussian(), Matern()])
    assert other.report_["tuning"] != model.report_["tuning"]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_bit(here, threads):
    X, y, model = here
    scheduler = "threads" if threads > 1 else "synchronous"
    with dask.config.set(scheduler=scheduler, num_workers=threads):
        again = ridge().tune(X, y, kernels=[Gaussian(), Matern()])
    assert again.report_["tuning"] == model.report_["tuning"]
    assert same_bits(again, model)


@pytest.mark.cluster
def test_a_cluster_changes_no_bit(here, external_scheduler):
    X, y, model = here
    with streamkern.connect(scheduler=external_scheduler):
        again = ridge().tune(X, y, kernels=[Gaussian(), Matern()])
    assert again.report_["tuning"] == model.report_["tuning"]
    assert same_bits(again, model)


# What one attempt is worth.


def tried(X, y, kernel, D, factors, **options):
    model = ridge(kernel=kernel, n_components=D, precision="double", **options)
    fit_options = Parameters.of(model).passes()
    return Trial(replace(fit_options, n_folds=1), D)(X, y, factors)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0**1.5])
@pytest.mark.parametrize(
    "kernel", [Gaussian(1.3), Laplacian(2.0), Matern((1.0, 2.0, 3.0))], ids=repr
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"paired": False},
        {"feature_map": "iid"},
        {"fit_intercept": False},
        {"random_state": 3},
    ],
    ids=str,
)
def test_an_attempt_is_a_cross_validation_of_the_kernel_itself(kernel, options, factor):
    """Compare with fits on explicit features, each to two thirds of the rows."""
    n, D = 120, 16
    X, y = smooth(n, q=2)
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    # With others before and after it, since projections are shared.
    *_, attempt, _ = tried(X, y, kernel, D, [4.0, factor, 0.1], **options)
    scale = np.array(kernel.length_scale) * factor
    stretched = kernel.with_length_scale(tuple(scale) if scale.ndim else float(scale))
    Phi = RandomFourierFeatures(
        stretched,
        D,
        orthogonal=options.get("feature_map") != "iid",
        paired=options.get("paired", True),
        random_state=options.get("random_state", 0),
    ).fit(X).transform(X)  # fmt: skip
    cuts = [0, 40, 80, 120]
    scores = []
    for start, stop in pairwise(cuts):
        held = (np.arange(n) >= start) & (np.arange(n) < stop)
        intercept = options.get("fit_intercept", True)
        sse = naive.error_without(Phi, y, np.ones(n), attempt.alpha, held, intercept=intercept)
        scores.append(sse.mean() / 40)
    assert attempt.relative_mse == pytest.approx(np.mean(scores), rel=1e-6)
    error = np.std(scores, ddof=1) / np.sqrt(3)
    assert attempt.standard_error == pytest.approx(error, rel=1e-5)
    assert attempt.kernel == kernel.name
    assert attempt.length_scale == pytest.approx(stretched.length_scale, rel=1e-12)
    assert (attempt.n_rows, attempt.n_components) == (n, D)
    for other in (attempt.alpha / 3, attempt.alpha * 3):
        worse = [
            naive.error_without(Phi, y, np.ones(n), other, held, intercept=intercept).sum()
            for held in (np.arange(n) // 40 == k for k in range(3))
        ]
        assert sum(worse) >= 0.99 * 40 * 2 * sum(scores)


def test_an_attempt_does_not_depend_on_those_beside_it():
    X, y = smooth(300, q=1)
    together = tried(X, y, Gaussian(1.0), 16, [0.25, 1.0, 2.0])
    alone = [tried(X, y, Gaussian(1.0), 16, [factor])[0] for factor in (0.25, 1.0, 2.0)]
    assert together == alone


def test_many_rows_are_cross_validated_in_blocks():
    n = 10_000
    X, y = smooth(n, q=1)
    (attempt,) = tried(X, y, Gaussian(1.0), 8, [1.0])
    Phi = RandomFourierFeatures(Gaussian(1.0), 8).fit(X).transform(X)
    cuts = np.linspace(0, n, 4).astype(int)
    total = 0.0
    for start, stop in pairwise(cuts):
        held = (np.arange(n) >= start) & (np.arange(n) < stop)
        total += naive.error_without(Phi, y, np.ones(n), attempt.alpha, held, intercept=True).sum()
    assert attempt.relative_mse == pytest.approx(total / n, rel=1e-6)


def test_the_edge_of_the_search_is_noted(monkeypatch):
    monkeypatch.setattr("streamkern.tune.candidates._FARTHEST", 3)
    X, _ = smooth(400)
    inner = ridge().tune(X, np.sin(2 * X[:, 0]))
    assert "at the edge" not in inner.report_["note"]
    outer = ridge(kernel=Gaussian(0.05)).tune(X, np.sin(2 * X[:, 0]))
    assert f"--length-scale {outer.kernel_.length_scale:.4g}" in outer.report_["note"]
