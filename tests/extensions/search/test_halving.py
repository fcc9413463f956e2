"""Choosing kernel and length scale on a sample: what is found, and what it is worth."""

import json
from dataclasses import replace

import dask
import naive
import numpy as np
import pytest
from harvests import same_bits

import streamkern
from streamkern import Gaussian, Laplacian, Linear, Matern, Periodic, RandomFeatureRidge
from streamkern.choice import cross_validated_fit
from streamkern.choice.cross_validated_fit import CrossValidatedFit, Result
from streamkern.choice.held_out_fit import far_steps
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.features import RandomFourierFeatures
from streamkern.parameters.fit_options import _LARGE_SAMPLE, large_sample
from streamkern.parameters.parameters import Parameters

P = 3
# No more is chosen than the length scale.
NAMED = {"kernels": "gaussian"}


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


@pytest.fixture(scope="module")
def here():
    X, y = smooth(1000, q=2)
    return X, y, ridge().tune(X, y, kernels=[Gaussian(), Matern()])


# What is found.


@pytest.mark.parametrize(("length_scale", "D"), [(0.6, 256), (10.0, 64)])
def test_a_function_of_another_length_scale_than_the_median_is_fitted_better(length_scale, D):
    X, y = drawn_from_a_kernel(length_scale, 4000)
    y = y + 0.05 * y.std() * np.random.default_rng(1).standard_normal(len(y))
    median = ridge(n_components=D).fit(X, y)
    tuned = ridge(n_components=D).tune(X, y, **NAMED)
    moved = tuned.kernel_.length_scale / median.kernel_.length_scale
    assert moved <= 1 / 2 if length_scale < 1 else moved >= 2
    assert tuned.report_["cv_rmse"] < median.report_["cv_rmse"]
    new = drawn_from_a_kernel(length_scale, 4000, seed=1)
    assert tuned.score(*new) > median.score(*new)


@pytest.mark.filterwarnings("ignore:the error still falls:streamkern.errors.StreamkernWarning")
@pytest.mark.parametrize("expected", ["laplacian", "gaussian"])
def test_a_rough_function_gets_the_rough_kernel_and_a_smooth_one_the_smooth(expected):
    X, y = drawn_from_a_kernel(1.5, 2000, p=3)
    y = np.abs(X).sum(axis=1) if expected == "laplacian" else y  # with an edge along every axis
    found = ridge(n_components=256).tune(X, y, kernels=[Gaussian(), Laplacian()])
    assert found.kernel_.name == found.report_["kernel"] == expected


@pytest.mark.parametrize("options", [NAMED, {"maps": ["orthogonal", "iid"]}])
def test_what_is_found_was_compared_with_a_plain_fit_as_that_is_validated(options, few_components):
    rng = np.random.default_rng(len(options))
    X = rng.standard_normal((400, 3))
    y = np.sin(1.5 * X).sum(axis=1) + 0.3 * rng.standard_normal(400)
    plain, tuned = ridge(n_components=128).fit(X, y), ridge(n_components=128).tune(X, y, **options)
    assert tuned.report_["cv_rmse"] <= plain.report_["cv_rmse"] * (1 + 1e-6)
    (same,) = [
        a
        for a in tuned.report_["tuning"]
        if (a["n_components"], a["feature_map"], a["length_scale"])
        == (128, "orthogonal", plain.kernel_.length_scale)
    ]
    assert same["n_folds"] == 5
    expected = plain.report_["cv_rmse"] ** 2 / y.var()
    assert same["relative_mse"] == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize(
    ("kernel", "budget"),
    [
        (Gaussian("median"), None),
        (Gaussian("median"), "20s"),
        (Matern("median"), None),
        (Laplacian("median"), None),
    ],
)
@pytest.mark.filterwarnings("ignore::streamkern.errors.StreamkernWarning")
def test_a_median_of_a_tight_cluster_is_left_behind(kernel, budget):
    rng = np.random.default_rng(0)
    # Nine rows in ten are within a thousandth of each other, and the others say what y depends on.
    X = rng.standard_normal((1200, 2)) * np.where(rng.random(1200) < 0.9, 1e-3, 1.0)[:, None]
    y = np.sin(2 * X[:, 0]) + np.cos(X[:, 1]) + 0.1 * rng.standard_normal(1200)
    options = {"kernels": kernel, "maps": "orthogonal"}
    tuned = ridge(kernel=kernel, n_components=128).tune(X, y, budget=budget, **options)
    median = ridge(kernel=kernel, n_components=128).fit(X, y)
    right = ridge(kernel=kernel.with_length_scale(4.0), n_components=128).fit(X, y)
    assert tuned.report_["cv_rmse"] < 1.25 * right.report_["cv_rmse"]
    assert right.report_["cv_rmse"] < 0.6 * median.report_["cv_rmse"]
    assert tuned.kernel_.length_scale > 50 * median.kernel_.length_scale


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
    # Four about the best of each; two about the best two; the best with what a plain fit takes.
    assert [len(rungs[size]) for size in (24, 50, 100)] == [12, 4, 2]
    assert {a["n_folds"] for rung in (12, 24, 50) for a in rungs[rung]} == {3}
    assert {a["n_folds"] for a in rungs[100]} == {5}
    best = min(rungs[100], key=lambda attempt: attempt["relative_mse"])
    found = model.kernel_.name, model.kernel_.length_scale
    assert found == (best["kernel"], best["length_scale"])
    names = ["gaussian", "matern32", "laplacian"]
    assert [a["kernel"] for a in rungs[12][:39]] == [n for n in names for _ in range(13)]
    factors = 2.0 ** (np.arange(-6, 7) / 2)
    scales = [a["length_scale"] for a in rungs[12][:13]]
    assert scales == pytest.approx(2.0 * factors, rel=1e-12)
    assert json.loads(json.dumps(attempts)) == attempts


@pytest.mark.parametrize(
    ("D", "rungs"), [(4096, [512, 1024, 2048, 4096]), (600, [128, 150, 300, 600]), (64, [64])]
)
def test_a_rung_has_128_features_or_all_where_an_eighth_is_fewer(D, rungs, monkeypatch):
    tried = []

    def never_mind(fit, kernel, X, y, *rest):
        tried.append(fit.n_components)
        size = len(y), fit.n_components
        return Result(kernel, *size, kernel.length_scale / 8.0, 0.1, 1.0)

    def no_pass(rows, *rest, **named):
        raise RuntimeError(rows.options.kernel.length_scale)

    monkeypatch.setattr(CrossValidatedFit, "cross_validated", never_mind)
    monkeypatch.setattr("streamkern.fit.sum_features", no_pass)
    with dask.config.set(scheduler="synchronous"), pytest.raises(RuntimeError) as caught:
        ridge(n_components=D, kernel=Gaussian(8.0)).tune(*smooth(100))
    assert list(dict.fromkeys(tried)) == rungs
    # The least factor had the least error: a sixteenth at first, the nearest that is within a
    # standard error of the best, then one and half an octave less.
    assert caught.value.args == (pytest.approx(8.0 / 16 / 2 / 2**0.5),)


@pytest.mark.parametrize(
    "options",
    [
        {"paired": False, "n_components": 63},
        {"paired": False, "n_components": 1},
        {"n_components": 2, "feature_map": "iid"},
        {"feature_map": "iid", "paired": False, "precision": "double"},
        {"fit_intercept": False, "alpha": 0.5},
        {"standardize": False, "alpha": "evidence"},
        {"n_components": "auto"},
    ],
    ids=str,
)
def test_the_search_takes_the_options_of_the_fit_and_the_model_is_that_of_one(options, monkeypatch):
    monkeypatch.setattr("streamkern.parameters.parameters.AUTO_COMPONENTS", 128)
    X, y = smooth(600)
    model = ridge(**options).tune(X, y, **NAMED)
    fitted = ridge(**options | {"kernel": model.kernel_}).fit(X, y)
    assert same_bits(model, fitted)
    assert model.report_["cv_rmse"] == fitted.report_["cv_rmse"]
    assert model.get_params()["kernel"] == Gaussian("median")
    if options.get("n_components", 64) not in (1, 2):
        errors = [attempt["relative_mse"] for attempt in model.report_["tuning"]]
        assert min(errors) < 0.5 * max(errors)
    seconds = model.report_["seconds"]
    assert seconds["search"] > 0
    assert seconds["total"] >= seconds["search"] + seconds["pass"] + seconds["solve"]
    assert "tuning" not in fitted.report_


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


def test_a_constant_column_changes_nothing():
    X, y = smooth()
    wide = np.insert(X, 1, 7.0, axis=1)
    for kernel, with_column in (
        (Gaussian(), Gaussian()),
        (Gaussian((1.0, 2.0, 3.0)), Gaussian((1.0, 99.0, 2.0, 3.0))),
    ):
        expected = ridge(kernel=kernel).tune(X, y, maps="orthogonal")
        with pytest.warns(StreamkernWarning, match="1 constant column"):
            model = ridge(kernel=with_column).tune(wide, y, maps="orthogonal")
        assert model.kernel_ == expected.kernel_
        assert model.report_["tuning"] == expected.report_["tuning"]
        assert np.array_equal(model.predict(wide), expected.predict(X))


def test_several_targets_count_alike_whatever_their_units(here):
    X, y, together = here
    rescaled = ridge().tune(X, y * [1e-6, 1e6] + [1e3, -1e9], kernels=[Gaussian(), Matern()])
    assert together.kernel_.length_scale == rescaled.kernel_.length_scale
    errors, others, *alone = (
        np.array([a["relative_mse"] for a in model.report_["tuning"][:13]])
        for model in (together, rescaled, *(ridge().tune(X, y[:, j], **NAMED) for j in range(2)))
    )
    assert others == pytest.approx(errors, rel=1e-3)
    # One penalty for both is no better than one for each.
    assert (errors >= 0.999 * np.mean(alone, axis=0)).all()
    # A target that is constant has no say.
    constant = np.column_stack([y[:, 0], np.full(len(y), 3.0)])
    first = ridge().tune(X, y[:, :1], **NAMED)
    assert ridge().tune(X, constant, **NAMED).kernel_ == first.kernel_


def test_a_length_scale_at_the_edge_is_said(monkeypatch):
    monkeypatch.setattr("streamkern.extensions.search.settings._FARTHEST", 3)
    X, _ = smooth(400)
    assert "at the edge" not in ridge().tune(X, np.sin(2 * X[:, 0]), **NAMED).report_["note"]
    outer = ridge(kernel=Gaussian(0.05)).tune(X, np.sin(2 * X[:, 0]))
    assert f"length_scale {outer.kernel_.length_scale:.4g}" in outer.report_["note"]


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
        ({}, [Gaussian(), Gaussian((1.0, 2.0))], "one per input, 3 here, not 2"),
        ({"kernel": Gaussian((1.0,) * 4)}, None, "one per input, 3 here, not 4"),
        ({"kernel": Linear()}, None, "not the linear kernel or the identity map"),
        ({"feature_map": "identity"}, None, "not the linear kernel or the identity map"),
        ({}, [Gaussian(), Linear()], r"kernels that have a length scale, not Linear\(\)"),
        ({}, [3.0], "kernel must be a kernel such as .*, not 3.0"),
        ({}, [], "a search needs a kernel with a length scale"),
    ],
)
def test_a_search_without_a_length_scale_for_these_rows_is_refused(options, kernels, match):
    with pytest.raises(ParameterError, match=match):
        ridge(**options).tune(*smooth(100), kernels=kernels)
    for n in (1, 2):  # of any kernel
        with pytest.raises(
            (ParameterError, DataError), match=r"rows|1 sample|every y equals|const"
        ):
            ridge(kernel=Gaussian(1.0), alpha=1.0).tune(*(each[:n] for each in smooth(10)))


def test_kernels_that_are_named_by_text_count_whatever_the_model_has():
    X, y = smooth(100)
    by_name = ridge(kernel=Linear()).tune(X, y, kernels=["matern32", "laplacian"])
    assert same_bits(by_name, ridge().tune(X, y, kernels=[Matern(), Laplacian()]))


def test_bad_rows_are_refused_or_left_out():
    X, y = smooth(600)
    expected = ridge().tune(X[2:], y[2:], **NAMED)
    X[0, 1], y[1] = np.nan, np.inf
    with pytest.raises(DataError, match="2 of 600 rows"):
        ridge().tune(X, y, **NAMED)
    model = ridge(on_bad_rows="skip").tune(X, y, **NAMED)
    assert model.report_["skipped_rows"] == 2
    assert model.kernel_.length_scale == pytest.approx(expected.kernel_.length_scale, rel=0.5)


def test_the_sample_is_bounded_in_rows_and_bytes():
    assert large_sample(10) == _LARGE_SAMPLE
    assert large_sample(2000) * 2000 * 8 <= 128 << 20
    assert 256 <= large_sample(10**6) <= 512
    X, y = drawn_from_a_kernel(1.0, _LARGE_SAMPLE + 1000, p=1)
    model = ridge(n_components=16).tune(X, y, **NAMED)
    assert {attempt["n_rows"] for attempt in model.report_["tuning"]} == {_LARGE_SAMPLE}
    assert model.report_["rows"] == _LARGE_SAMPLE + 1000


def test_rows_are_read_twice():
    X, y = smooth(600)
    read = []

    class Counted(streamkern.sources.arrays.ArraySource):
        def reader(self, shard):
            read.append(shard.n_rows)
            return super().reader(shard)

    ridge().tune(Counted(X, y), **NAMED)
    assert sum(read) == 2 * 600


# The same wherever it runs.


def assert_same(here, again):
    assert again.report_["tuning"] == here[2].report_["tuning"]
    assert same_bits(again, here[2])


def test_the_seed_and_no_threads_change_the_bits(here):
    X, y, model = here
    for scheduler, threads in (("synchronous", 1), ("threads", 5)):
        with dask.config.set(scheduler=scheduler, num_workers=threads):
            assert_same(here, ridge().tune(X, y, kernels=[Gaussian(), Matern()]))
    other = ridge(random_state=1).tune(X, y, kernels=[Gaussian(), Matern()])
    assert other.report_["tuning"] != model.report_["tuning"]


@pytest.mark.cluster
def test_a_cluster_changes_no_bit(here, external_scheduler):
    with streamkern.connect(scheduler=external_scheduler):
        assert_same(here, ridge().tune(*here[:2], kernels=[Gaussian(), Matern()]))


# What one attempt is worth.


def tried(X, y, kernel, D, factors, **options):
    model = ridge(kernel=kernel, n_components=D, precision="double", **options)
    fit_options = Parameters.of(model).pass_options()
    fit = CrossValidatedFit(replace(fit_options, n_folds=1), D, len(X))
    return [fit.cross_validated(kernel.stretched(factor), X, y) for factor in factors]


@pytest.mark.parametrize(
    ("n", "kernel", "factor", "options"),
    [
        (120, Gaussian(1.3), 0.5, {}),
        (120, Laplacian(2.0), 1.0, {"paired": False}),
        (120, Matern((1.0, 2.0, 3.0)), 2.0**1.5, {"feature_map": "iid"}),
        (120, Gaussian(1.3), 1.0, {"fit_intercept": False}),
        (9000, Laplacian(2.0), 2.0**1.5, {"random_state": 3, "feature_map": "iid"}),  # in blocks
    ],
    ids=str,
)
def test_an_attempt_is_a_cross_validation_of_the_kernel_itself(n, kernel, factor, options):
    D, intercept = 16, options.get("fit_intercept", True)
    X, y = smooth(n, q=2)
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    # With others before and after it.
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

    def errors(alpha):
        held = [np.arange(n) // (n // 3) == k for k in range(3)]
        of_folds = [
            naive.error_without(Phi, y, np.ones(n), alpha, fold, intercept=intercept).mean()
            / fold.sum()
            for fold in held
        ]
        return np.mean(of_folds), np.std(of_folds, ddof=1) / np.sqrt(3)

    score, error = errors(attempt.alpha)
    assert attempt.relative_mse == pytest.approx(score, rel=1e-6)
    assert attempt.standard_error == pytest.approx(error, rel=1e-5)
    assert attempt.kernel.length_scale == pytest.approx(stretched.length_scale, rel=1e-12)
    assert (attempt.n_rows, attempt.n_components) == (n, D)
    assert min(errors(other)[0] for other in (attempt.alpha / 3, attempt.alpha * 3)) >= 0.99 * score


def test_length_scales_far_from_that_of_a_tight_cluster_are_tried():
    rows = np.array([[0.0], [0.001], [-0.001], [0.002], [5.0]])
    apart = np.sqrt(2.0) * rows.std()
    octaves = np.log2(apart / 0.01 * np.array([0.5, 1.0, 2.0, 4.0]))
    assert far_steps(Gaussian(0.01), rows) == np.rint(2.0 * octaves).tolist()
    for kernel in (Gaussian(1.0), Gaussian((0.01,)), Linear()):
        assert far_steps(kernel, rows) == []
    assert far_steps(Gaussian(0.01), 1e160 * rows) == []


def test_of_many_features_penalties_near_the_best_are_enough(monkeypatch):
    X, y = smooth(q=1)
    parameters = Parameters(kernel=Matern(1.5, nu=2.5), precision="double")
    tried, errors_of = [], cross_validated_fit.held_out_errors
    monkeypatch.setattr(
        cross_validated_fit,
        "held_out_errors",
        lambda *some: (tried.append(some[-1]), errors_of(*some))[1],
    )

    def attempt():
        tried.clear()
        fit = CrossValidatedFit(parameters.pass_options(), 100, len(X))
        made = fit.cross_validated(parameters.kernel, X, y)
        return made, sum(map(len, tried)) / 3

    expected, every = attempt()
    monkeypatch.setattr(cross_validated_fit, "_MANY", 2)
    found, few = attempt()
    assert few < every == 30
    assert found.alpha == expected.alpha
    assert found.relative_mse == pytest.approx(expected.relative_mse, rel=1e-9)
