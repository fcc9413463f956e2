"""A metric that is learnt: the directions that matter, on any scheduler, never for the worse."""

import json
from dataclasses import replace
from itertools import pairwise, product

import dask
import numpy as np
import pytest
from tolerances import assert_close

import streamkern
from streamkern import (
    Cauchy,
    ExactKernelRidge,
    Gaussian,
    Laplacian,
    Linear,
    Periodic,
    Polynomial,
    RandomFeatureRidge,
    Sum,
)
from streamkern.choice.held_out_fit import HeldOutFit, HeldOutResult
from streamkern.errors import CheckpointError, DataError, ParameterError
from streamkern.features import Standardizer
from streamkern.kernels import KERNELS, ShiftInvariantKernel
from streamkern.parameters.parameters import Parameters

P = 8
# Two directions, not orthogonal to the axes nor along them.
DIRECTIONS = np.linalg.qr(np.random.default_rng(7).standard_normal((P, 2)))[0].T
NOISE = 0.1


def of_two_directions(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P))
    y = np.sin(2.0 * X @ DIRECTIONS[0]) + (X @ DIRECTIONS[1]) ** 2
    return X, y + NOISE * rng.standard_normal(n)


def of_two_inputs(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P))
    return X, np.sin(2.0 * X[:, 1]) + X[:, 4] ** 2 + NOISE * rng.standard_normal(n)


def ridge(metric="learn", **options):
    return RandomFeatureRidge(**{"n_components": 128, "metric": metric} | options)


def kept_of(model):
    """Return the round that was kept."""
    metric = model.report_["metric"]
    return metric["rounds"][metric["kept"]]


@pytest.fixture(scope="module")
def learnt():
    return ridge().fit(*of_two_directions())


# What is found.


@pytest.mark.parametrize("feature_map", ["orthogonal", "nystroem"])
def test_the_directions_of_a_function_are_found_and_it_is_fitted_better(feature_map, learnt):
    rows, new = of_two_directions(), of_two_directions(seed=1)
    model = learnt
    if feature_map == "nystroem":
        model = ridge("learn:2", feature_map=feature_map).fit(*rows)
    within = np.trace(DIRECTIONS @ model.metric_ @ DIRECTIONS.T) / np.trace(model.metric_)
    assert within > 0.99
    plain = ridge(None, feature_map=feature_map).fit(*rows).evaluate(*new)["rmse"]
    error = model.evaluate(*new)["rmse"]
    assert error < (1.5 * NOISE if model is learnt else 0.7 * plain)
    assert error < 0.7 * plain
    assert {each["feature_map"] for each in model.report_["metric"]["rounds"]} == {feature_map}


@pytest.mark.parametrize("n", [80, 400])
def test_plain_distances_are_kept_where_rows_are_few_or_no_metric_predicts_better(n):
    X, y = of_two_directions(n)
    y = np.random.default_rng(1).standard_normal(n) if n == 400 else y
    learnt = ridge("learn:2").fit(X, y)
    assert learnt.report_["metric"]["kept"] == 0
    assert np.array_equal(learnt.metric_, np.eye(P))
    assert (len(learnt.report_["metric"]["rounds"]) == 1) == (n == 80)


def test_rounds_stop_at_the_first_that_does_no_better_and_plain_ones_are_in_the_search():
    X, y = of_two_directions(600)
    y = np.cos(np.linalg.norm(X, axis=1)) + 0.5 * y
    report = ridge("learn:4").tune(X, y, kernels=[Laplacian("median"), Gaussian("median")]).report_
    rounds = report["metric"]["rounds"]
    begun = [(each["kernel"], each["is_weighted"]) for each in rounds]
    assert set(begun) == {("gaussian", False), ("laplacian", False), ("laplacian", True)}
    numbers = []
    for beginning in set(begun):
        errors = [rounds[i]["relative_mse"] for i, each in enumerate(begun) if each == beginning]
        assert all(later < before for before, later in pairwise(errors[:-1]))
        if len(errors) > 1:
            assert len(errors) == 5 or errors[-1] >= errors[-2]
        numbers.append(len(errors))
    assert sum(number > 1 for number in numbers) >= 2
    (chosen,) = (each for each in report["frontier"] if each["is_chosen"])
    kept = rounds[report["metric"]["kept"]]
    assert (kept["number"] == 0) == (chosen["metric"] == "isotropic")
    assert kept["kernel"] == chosen["kernel"] == report["kernel"]


def test_weights_of_inputs_find_inputs_and_no_directions():
    learnt = ridge("diagonal").fit(*of_two_inputs(800))
    assert np.array_equal(learnt.metric_, np.diag(np.diagonal(learnt.metric_)))
    assert set(np.argsort(np.diagonal(learnt.metric_))[-2:]) == {1, 4}
    report = learnt.report_["metric"]
    assert sum(report["importance"][j] for j in (1, 4)) > 0.8
    assert report["kind"] == "diagonal"


def test_the_round_that_predicts_rows_held_out_best_is_kept(learnt):
    metric = learnt.report_["metric"]
    errors = [each["relative_mse"] for each in metric["rounds"]]
    assert metric["kept"] == int(np.argmin(errors)) > 0
    assert errors[metric["kept"]] < errors[0]
    assert [each["number"] for each in metric["rounds"]] == list(range(len(errors)))
    assert learnt.kernel_.length_scale == metric["rounds"][metric["kept"]]["length_scale"]
    json.dumps(metric, allow_nan=False)


def tried(squares, weights=None) -> HeldOutResult:
    weights = np.ones(len(squares)) if weights is None else np.array(weights)
    mean = float(np.average(squares, weights=weights))
    return HeldOutResult(Gaussian(1.0), mean, 1.0, np.zeros((2, 1)), np.array(squares), weights)


def test_one_fit_beats_another_by_a_standard_error_of_the_difference_of_rows():
    rng = np.random.default_rng(0)
    other = rng.random(50)
    # Rows that are all better by as much say so, however different they are.
    assert tried(other - 1e-3).beats(tried(other))
    assert not tried(other).beats(tried(other))
    noisy = rng.standard_normal(50)
    noisy -= noisy.mean()
    error = noisy.std() / np.sqrt(50)
    assert not tried(other - noisy - 0.9 * error).beats(tried(other))
    assert tried(other - noisy - 1.1 * error).beats(tried(other))
    weighted = tried(other, np.where(np.arange(50) < 25, 1.0, 0.0))
    assert tried(other - np.where(np.arange(50) < 25, 0.1, -9.0), weighted.weights).beats(weighted)


def test_targets_of_any_size_share_the_metric():
    X, _ = of_two_inputs()
    both = np.stack([np.sin(2.0 * X[:, 1]), 1e4 * X[:, 4] ** 2], axis=1)
    learnt = ridge("learn:2").fit(X, both)
    heaviest = np.argsort(learnt.report_["metric"]["importance"])[-2:]
    assert set(heaviest) == {1, 4}
    scaled = ridge("learn:2").fit(X, both * [1e3, 1e-3])
    assert_close(scaled.metric_, learnt.metric_, dtype=np.float32, steps=1e4)


def test_a_search_compares_plain_distances_and_learnt_ones(learnt):
    X, y = of_two_directions()
    tuned = ridge().tune(X, y, kernels="gaussian")
    report, rounds = tuned.report_, tuned.report_["metric"]["rounds"]
    assert {each["metric"] for each in report["tuning"]} == {"isotropic", "learnt"}
    (chosen,) = (each for each in report["frontier"] if each["is_chosen"])
    assert chosen["metric"] == "learnt"
    assert rounds[report["metric"]["kept"]]["number"] > 0
    errors = {
        name: min(each["relative_mse"] for each in report["frontier"] if each["metric"] == name)
        for name in ("isotropic", "learnt")
    }
    assert errors["learnt"] < 0.3 * errors["isotropic"]
    assert tuned.evaluate(*of_two_directions(seed=1))["rmse"] < 1.5 * NOISE


def test_of_many_kernels_the_best_of_each_kind_have_a_metric_with_every_map():
    tuned, maps = ridge("learn:1"), ["orthogonal", "nystroem"]
    tuned.tune(*of_two_directions(600), kernels="auto", maps=maps)
    plain = (each for each in tuned.report_["metric"]["rounds"] if each["number"] == 0)
    pairs = [(each["kernel"], each["feature_map"]) for each in plain]
    # A smooth function of rows without noise, so the smoothest of the kernels of a distance.
    kernels, maps = ("gaussian", "laplacian"), ("orthogonal", "nystroem")
    assert sorted(pairs) == sorted(product(kernels, maps))


def test_features_that_are_all_equal_are_no_obstacle():
    X = np.zeros((100, 1))
    X[80:, 0] = 1.0  # where rows are held out, some at least
    ridge("learn:1", kernel=Gaussian(1e-3)).fit(X, np.arange(100.0))
    fit = HeldOutFit.of(
        Parameters.of(ridge(None)).pass_options(),
        Standardizer(np.arange(1), np.zeros(1), np.ones(1), 1),
        100,
    )
    tried = fit.held_out(Gaussian(1.0), np.zeros((100, 1)), np.arange(100.0)[:, None])
    assert np.isfinite(tried.relative_mse)


def test_a_metric_of_either_kind_is_the_better_of_both():
    X, y = of_two_directions(600)
    along, of_columns = ridge("auto:1").fit(X, y), ridge("auto:1").fit(*of_two_inputs(600))
    assert np.abs(along.metric_ - np.diag(np.diagonal(along.metric_))).max() > 0.1
    assert not (of_columns.metric_ - np.diag(np.diagonal(of_columns.metric_))).any()
    for model, rows in ((along, (X, y)), (of_columns, of_two_inputs(600))):
        for kind in ("learn:1", "diagonal:1"):
            assert kept_of(model)["relative_mse"] <= kept_of(ridge(kind).fit(*rows))["relative_mse"]


def test_columns_that_are_left_out_have_no_part_in_the_metric():
    X, y = of_two_inputs(1500)
    X = np.insert(X, 3, 5.0, axis=1)
    with pytest.warns(streamkern.errors.StreamkernWarning, match="constant column"):
        learnt = ridge("learn:1").fit(X, y)
    assert learnt.metric_.shape == (P + 1, P + 1)
    assert not learnt.metric_[3].any()
    assert set(np.argsort(np.diagonal(learnt.metric_))[-2:]) == {1, 5}


# Metrics that are given.


def test_a_given_metric_is_that_of_rows_that_are_turned():
    X, y = of_two_directions(500)
    metric = DIRECTIONS.T @ DIRECTIONS + 0.01 * np.eye(P)
    given = ridge(metric, standardize=False, alpha=1.0, kernel=Gaussian(1.0), precision="double")
    given.fit(X, y)
    values, vectors = np.linalg.eigh(metric)
    turned = X @ (vectors * np.sqrt(values)) @ vectors.T
    plain = ridge(None, standardize=False, alpha=1.0, kernel=Gaussian(1.0), precision="double")
    plain.fit(turned, y)
    assert_close(given.predict(X), plain.predict(turned), steps=1e6)
    assert_close(given.metric_, metric)
    assert given.report_["metric"]["kind"] == "given"


def test_an_exact_model_takes_the_same_metric(learnt):
    X, y = of_two_directions(300)
    metric = learnt.metric_
    values, vectors = np.linalg.eigh(metric)
    turned = X @ (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    options = {"alpha": 0.1, "standardize": False}
    exact = ExactKernelRidge(Gaussian(2.0), metric=metric, **options).fit(X, y)
    plain = ExactKernelRidge(Gaussian(2.0), **options).fit(turned, y)
    assert_close(exact.predict(X), plain.predict(turned), steps=1e6)
    for wrong, match in (("learn", "takes a metric as a matrix"), (np.eye(2), "of 2 inputs, but")):
        with pytest.raises(ParameterError, match=match):
            ExactKernelRidge(Gaussian(2.0), metric=wrong).fit(X, y)
    for kernel in (
        Polynomial(2),
        Periodic(1.0),
        Sum(kernels=(Gaussian(1.0),), weights=(1.0,), columns=((0,),)),
    ):
        with pytest.raises(ParameterError, match=r"^a metric (is for kernels|turns)"):
            ExactKernelRidge(kernel, metric=metric).fit(X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "lern"}, "'learn:ROUNDS'"),
        ({"metric": np.eye(3)}, "of 3 inputs, but the rows have 8"),
        ({"kernel": Linear()}, "a metric is for kernels with a length scale"),
        ({"feature_map": "identity"}, "a metric is for kernels with a length scale"),
        ({"kernel": Periodic(1.0)}, "a metric turns the inputs that the parts"),
        ({"kernel": Gaussian((1.0,) * P)}, "a metric weighs the inputs, and so do length scales"),
        ({"kernel": Cauchy("median"), "feature_map": "nystroem"},
         "the map 'nystroem' of the kernel 'cauchy' does no"),
        ({}, "at least 60 rows, but there are 59"),
    ],
)  # fmt: skip
def test_metrics_that_do_not_go_with_the_rest_are_refused(options, words):
    with pytest.raises((ParameterError, DataError), match=words):
        ridge(**options).fit(*of_two_inputs(100 if options else 59))


def test_sixty_rows_are_enough_for_a_metric():
    assert ridge("learn:1").fit(*of_two_inputs(60)).report_["metric"]["rounds"]


# Wherever it runs, and whatever it is saved to.


def bits(model) -> tuple[bytes, bytes]:
    return model.coef_.tobytes(), model.metric_.tobytes()


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_a_metric_is_learnt_to_the_same_bits_on_every_scheduler(scheduler, learnt, tmp_path):
    with dask.config.set(scheduler=scheduler):
        model = ridge().fit(*of_two_directions())
    assert bits(model) == bits(learnt)
    for saved in (model, ridge(learnt.metric_).fit(*of_two_directions(300))):
        saved.save(tmp_path / "model.h5", force=True)
        back = streamkern.load(tmp_path / "model.h5")
        assert np.array_equal(back.metric_, saved.metric_)
        assert back.report_["metric"] == saved.report_["metric"]
        assert back.metric == "learn" if saved is model else np.allclose(back.metric, saved.metric)


@pytest.mark.cluster
def test_a_metric_is_learnt_to_the_same_bits_on_workers(learnt, external_scheduler):
    with streamkern.connect(scheduler=external_scheduler):
        model = ridge().fit(*of_two_directions())
        gradients = model.gradient_outer_product(of_two_directions()[0])
    assert bits(model) == bits(learnt)
    assert np.array_equal(gradients, learnt.gradient_outer_product(of_two_directions()[0]))


@pytest.mark.parametrize("metric", ["learn:2", "matrix"])
def test_moments_have_the_metric_and_merge_with_others_made_alike(metric, learnt, tmp_path):
    X, y = of_two_directions()
    model = ridge(learnt.metric_ if metric == "matrix" else metric)
    first = model.moments(X[:2000], y[:2000])
    first.save(tmp_path / "first.h5")
    more = model.moments(X[2000:], y[2000:], like=tmp_path / "first.h5")
    both = streamkern.load_moments(tmp_path / "first.h5").merge(more)
    solved = ridge(metric=None).solve(both)
    direct = model.fit(X[:2000], y[:2000])
    assert_close(solved.metric_, direct.metric_)
    new = of_two_directions(seed=1)
    assert solved.score(*new) > direct.score(*new) - 0.01
    assert both.report["metric"]["importance"] == first.report["metric"]["importance"]


def test_a_fit_that_goes_on_finds_the_same_metric(tmp_path):
    rows = of_two_directions(600)
    first, again = (ridge("learn:1").fit(*rows, checkpoint=tmp_path / "saved") for _ in range(2))
    assert again.report_["resumed_shards"] > 0
    assert bits(first) == bits(again) == bits(ridge("learn:1").fit(*rows))
    for other in ("learn:2", np.eye(P)):
        with pytest.raises(CheckpointError, match="metric"):
            ridge(other).fit(*rows, checkpoint=tmp_path / "saved")


# Gradients over all rows.


def test_gradients_of_targets_count_in_their_units(learnt):
    X, y = of_two_inputs(500)
    model = ridge(None, alpha=1.0, kernel=Gaussian()).fit(X, np.stack([y, y], axis=1))
    once = model.gradient_outer_product(X, target_unit=[1.0, 1e9])
    assert_close(model.gradient_outer_product(X), 2.0 * once, dtype=np.float32, steps=100)


@pytest.mark.parametrize("feature_map", ["orthogonal", "nystroem"])
def test_the_laplacian_kernel_keeps_its_axes(feature_map):
    X, y = of_two_inputs(600)
    along = [
        ridge(metric, kernel=Laplacian("median"), feature_map=feature_map).fit(X, y)
        for metric in ("learn:1", "diagonal:1")
    ]
    assert np.array_equal(along[0].metric_, along[1].metric_)
    assert kept_of(along[0])["number"] > 0
    assert np.array_equal(along[0].metric_, np.diag(np.diagonal(along[0].metric_)))
    assert not np.allclose(np.diagonal(along[0].metric_), 1.0, atol=0.1)
    turned = ridge("learn:1", kernel=Gaussian("median"), feature_map=feature_map).fit(X, y)
    assert np.abs(turned.metric_ - np.diag(np.diagonal(turned.metric_))).max() > 1e-6


IN_A_METRIC = [n for n, kernel in KERNELS.items() if isinstance(kernel, ShiftInvariantKernel)]


@pytest.mark.parametrize("name", sorted(set(IN_A_METRIC) - {"periodic"}))
def test_every_kernel_that_has_a_metric_learns_one(name):
    X, y = of_two_inputs(300)
    kernel = replace(KERNELS[name], length_scale="median")
    for feature_map in ("orthogonal", "nystroem")[: 1 if name == "cauchy" else 2]:
        model = ridge("learn:1", kernel=kernel, feature_map=feature_map).fit(X, y)
        off = model.metric_ - np.diag(np.diagonal(model.metric_))
        learnt = model.report_["metric"]["kept"] == 1
        assert (abs(off).max() > 0) == (learnt and not kernel.along_axes)
