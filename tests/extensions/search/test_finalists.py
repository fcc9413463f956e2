"""A search within seconds chooses scale, metric, kernel, map and D, no worse than a plain fit."""

from dataclasses import replace

import dask
import numpy as np
import pytest

from streamkern import RandomFeatureClassifier, RandomFeatureRidge, load
from streamkern.choice.cross_validated_fit import Result
from streamkern.choice.held_out_fit import HeldOutFit
from streamkern.errors import StreamkernWarning
from streamkern.estimators.problems import Regression
from streamkern.extensions.search import metric_beginnings, metric_learning, metric_rounds
from streamkern.extensions.search.budget import Budget
from streamkern.extensions.search.search import Search
from streamkern.extensions.search.settings import Setting
from streamkern.extensions.search.tuned_fit import SearchedFit
from streamkern.features import FAMILIES, Standardizer
from streamkern.kernels import Gaussian, Laplacian
from streamkern.parameters.parameters import Parameters
from streamkern.sources import as_source

P = 5
# So that searches end when nothing more is found, on slow machines too.
ENOUGH = "10m"


def heavy_tailed(n=450, seed=0):
    """Two of five inputs matter, each of which has values far out."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.7, (n, P))
    return X, np.sin(2.0 * np.arctan(X[:, 0])) + np.arctan(X[:, 3]) + 0.05 * rng.standard_normal(n)


def tuned(X, y, budget=ENOUGH, kernels=None, maps=None, **options):
    options = {"n_components": 128, "precision": "double"} | options
    return RandomFeatureRidge(**options).tune(X, y, budget=budget, kernels=kernels, maps=maps)


@pytest.fixture(scope="module")
def found():
    return tuned(*heavy_tailed())


def test_scale_and_metric_are_chosen_and_the_plain_fit_is_among_the_finalists(found):
    report = found.report_
    assert report["scale"] == "robust"
    weights = np.diagonal(found.metric_)
    assert set(np.argsort(weights)[-2:]) == {0, 3}
    trials = report["tuning"]
    sizes = {each["n_components"]: each["feature_map"] for each in trials}
    assert sizes.keys() == {128, P}
    assert sizes[P] == "identity"
    pairs = {(each["metric"], each["kernel"], each["feature_map"]) for each in trials}
    fit = RandomFeatureRidge(n_components=128, precision="double").fit(*heavy_tailed())
    assert ("isotropic", fit.kernel_.name, "orthogonal") in pairs
    assert ("standard scale", "linear", "identity") in pairs
    errors = [each["relative_mse"] for each in trials]
    best = trials[int(np.argmin(errors))]
    assert (best["kernel"], best["feature_map"]) == (report["kernel"], report["feature_map"])


@pytest.mark.parametrize(
    ("errors", "best"),
    [
        ([[1.0, 1.0, 100.0], [1.2, 1.2, 60.0], [0.5, 0.5, 80.0]], 2),  # by fold
        ([[1.0, 0.8, 1.0], [0.7, 0.8, 0.8], [0.75, 0.8, 0.8]], 1),  # by a standard error
        ([[1.0, 1.0, 1.0], [0.8, 0.8, 1.3]], 0),
        ([[1.0, np.nan, 1.0], [0.1, np.nan, 0.1]], 0),
    ],
)
def test_the_plain_fit_stays_unless_another_beats_it(errors, best):
    search = object.__new__(Search)
    search.tried, search.best, tried = [], None, []
    for i, each in enumerate(errors):
        mean, error = float(np.mean(each)), float(np.std(each, ddof=1) / np.sqrt(len(each)))
        setting = Setting(i, 0, Gaussian(1.0), Gaussian(1.0), "", "")
        numbers = 3, 8, mean, error, 1.0
        tried.append(Result(None, *numbers, of_folds=each, setting=setting))
    search.ranked(tried, default=tried[0].setting)
    assert search.best is tried[best]


def test_kernels_are_added_each_in_a_metric_of_its_own(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 4))
    y = (3 * X[:, 0] - 1) % 1 + np.sin(2 * X[:, 1] + X[:, 2]) + 0.05 * rng.standard_normal(600)
    model = tuned(X, y, n_components=256)
    report, kernel = model.report_, model.kernel_
    assert kernel.columns == ((0, 1, 2, 3), (4, 5, 6, 7))
    errors = [each["relative_mse"] for each in report["tuning"] if "+" not in each["kernel"]]
    best = min(report["tuning"], key=lambda each: each["relative_mse"])
    assert best["metric"] == "a metric each"
    assert best["kernel"] == report["kernel"] == kernel.name
    assert best["relative_mse"] < 0.95 * min(errors)
    cv_mse = (report["cv_rmse"] / y.std()) ** 2
    assert best["relative_mse"] == pytest.approx(cv_mse, rel=0.02)
    model.save(tmp_path / "model.h5")
    again = load(tmp_path / "model.h5")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.kernel_ == kernel
    for like in (model, tmp_path / "model.h5"):
        more = RandomFeatureRidge(precision="double").fit(X, y, like=like)
        np.testing.assert_allclose(more.predict(X), model.predict(X), atol=1e-4)


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_far_along_a_straight_line_linear_ridge_is_found(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_t(1.5, (1000, P))
    y = 0.1 * X[:, 1] + 0.3 * rng.standard_normal(1000)
    report = tuned(X, y, "1s", solver=solver).report_
    assert (report["kernel"], report["feature_map"]) == ("linear", "identity")
    assert (report["n_components"], report["scale"], report["metric"]) == (P, "standard", None)
    (trial,) = [each for each in report["tuning"] if each["kernel"] == "linear"]
    cv_mse = (report["cv_rmse"] / y.std()) ** 2
    assert trial["relative_mse"] == pytest.approx(cv_mse, rel=0.02)


def test_the_error_is_much_smaller_than_that_of_a_plain_fit(found):
    X, y = heavy_tailed(seed=1)
    plain = RandomFeatureRidge(n_components=128, precision="double").fit(*heavy_tailed())
    assert found.evaluate(X, y)["rmse"] < 0.5 * plain.evaluate(X, y)["rmse"]


@pytest.mark.parametrize(("n", "D"), [(450, 128), (80, 256)])
def test_the_error_of_a_finalist_is_that_of_its_fit_and_with_as_many_features(n, D):
    X, y = heavy_tailed(n)
    how = {"n_components": D, "kernel": "gaussian", "scale": "standard", "precision": "double"}
    trials = tuned(X, y, "0.001s", **how).report_["tuning"]
    (plain,) = [each for each in trials if each["feature_map"] == "orthogonal"][:1]
    fit = RandomFeatureRidge(**how).fit(X, y)
    expected = (fit.report_["cv_rmse"] / y.std()) ** 2
    assert plain["n_components"] == D
    assert plain["relative_mse"] == pytest.approx(float(np.ravel(expected)[0]), rel=0.02)


def test_noise_is_fitted_no_worse_than_by_a_plain_fit():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, P)), rng.standard_normal(200)
    model, fit = tuned(X, y, n_components=64), RandomFeatureRidge(n_components=64).fit(X, y)
    new = np.random.default_rng(9).standard_normal((2000, P)), np.zeros(2000)
    # Of noise the best prediction is 0: what is left is the error of the fit.
    assert model.evaluate(*new)["rmse"] < fit.evaluate(*new)["rmse"] + 0.05


def test_few_rows_and_what_was_given_are_taken_as_they_are():
    X, y = heavy_tailed(59)
    assert tuned(X, y, "1s").report_["metric"] is None
    metric = np.diag([1.0, 0.1, 0.1, 1.0, 0.1])
    model = tuned(*heavy_tailed(300), "1s", scale="robust", metric=metric)
    assert model.report_["scale"] == "robust"
    assert model.metric_ == pytest.approx(metric)


def test_features_are_as_many_as_seconds_and_rows_allow():
    def components(budget, n, D=64, **options):
        source = as_source(np.ones((n, P), np.float32), np.arange(n))
        parameters = Parameters(n_components=D, **options)
        return Budget.of(budget).components(parameters, parameters.pass_options(), source)

    assert components("1h", 10_000) == 16 * 64
    assert components("1h", 500) == 2 * 64
    assert components("1h", 100) == components("0.001s", 10_000) == 64
    # More than 8,192 are for conjugate gradients, with fewer rows a feature.
    assert components("2h", 10_000, 1025) == 2 * 1025
    assert components("2h", 20_000, 1025, n_folds=2) == 8 * 1025
    assert components("2h", 20_000, 1025, n_folds=2, alpha="gcv") == 4 * 1025


def test_a_plain_fit_is_compared_whatever_time_is_left():
    report = tuned(*heavy_tailed(300), "0.001s").report_
    assert report["metric"] is None
    trials = report["tuning"]
    assert len(trials) == 2
    assert "linear" in {each["kernel"] for each in trials if each["metric"] == "standard scale"}


@pytest.mark.skipif("grid" not in FAMILIES, reason="fields are deleted")
def test_a_field_of_two_inputs_is_searched_with_the_grid_among_the_maps():
    X = np.random.default_rng(0).uniform(size=(300, 2))
    report = tuned(X, np.sin(9.0 * X[:, 0]) * X[:, 1], kernels="gaussian").report_
    assert report["tuning_maps"] == ["orthogonal", "nystroem", "grid"]
    assert {"grid", "nystroem"} & {each["feature_map"] for each in report["tuning"]}


@pytest.mark.parametrize("scale", ["auto", "robust"])
def test_rounds_go_on_with_more_features_and_noise_stays_in_plain_distances(monkeypatch, scale):
    for name, value in {"_COMPONENTS": 64, "_MORE_COMPONENTS": 128, "_MORE_SECONDS": 0.0}.items():
        monkeypatch.setattr(f"streamkern.extensions.search.metric_learning.{name}", value)
    monkeypatch.setattr("streamkern.choice.held_out_fit._FEWEST_COMPONENTS", 64)
    X, y = heavy_tailed(400)
    y = np.random.default_rng(5).standard_normal(len(y))
    report = tuned(X, y, scale=scale, kernels="gaussian").report_
    numbers = {each["n_components"] for each in report["metric"]["rounds"]}
    assert 64 in numbers
    assert 64 < max(numbers) <= 128  # without landmarks that depend on others
    scales = {"standard", "robust", "common"} if scale == "auto" else {scale}
    assert report["scale"] in scales
    kept = report["metric"]["rounds"][report["metric"]["kept"]]
    is_plain = bool((np.asarray(report["metric"]["importance"]) == 1 / P).all())
    assert (kept["number"] == 0) == is_plain


def test_a_metric_that_was_given_stays_however_bad():
    metric = np.diag([0.0, 1.0, 1.0, 0.0, 1.0])
    model = tuned(*heavy_tailed(300), "1s", metric=metric)
    assert model.metric_ == pytest.approx(metric)


TABLES = {
    "several targets": {},
    "weights": {},
    "sparse": {},
    "int8": {"precision": "int8", "feature_map": "orthogonal"},
    "auto": {"n_components": "auto"},
    "grid": {"feature_map": "grid"},
}


@pytest.mark.parametrize("kind", TABLES)
def test_rows_of_every_kind_are_searched_within_seconds(kind):
    X, y = heavy_tailed(200)
    X, weights = np.arctan(X), None
    if kind == "several targets":
        y = np.column_stack([y, X[:, 1]])
    if kind == "weights":
        weights = np.random.default_rng(0).integers(0, 3, len(y))
    rows = pytest.importorskip("scipy.sparse").csr_array(X) if kind == "sparse" else X
    if kind == "grid":
        X = rows = X[:, [0, 3]]
    model = RandomFeatureRidge(**{"n_components": 64, "precision": "double"} | TABLES[kind])
    maps = "orthogonal" if kind == "int8" else None
    model.tune(rows, y, sample_weight=weights, budget="1s", maps=maps)
    assert model.score(X, y) > 0.9


def test_classes_are_searched_within_seconds():
    X, y = heavy_tailed(200)
    model = RandomFeatureClassifier(n_components=64, precision="double")
    model.tune(X, y > 0, budget="1s")
    assert model.score(X, y > 0) > 0.8


def test_of_many_rows_rounds_try_one_length_scale_beside_the_last(monkeypatch):
    found, calls, search, call = [], [], metric_rounds._length_scale, HeldOutFit.held_out_call
    monkeypatch.setattr(metric_learning, "_MANY_ROWS", 1)

    def watched(*some, far):
        calls.clear()
        each = search(*some, far=far)
        found.append((far, len(calls)))
        return each

    def counted(*some, **named):
        calls.append(1)
        return call(*some, **named)

    monkeypatch.setattr(HeldOutFit, "held_out_call", counted)
    monkeypatch.setattr(metric_rounds, "_length_scale", watched)
    tuned(*heavy_tailed())
    later = [n_tried for far, n_tried in found if not far]
    assert len(later) > 2
    assert set(later) == {2}
    assert all(n_tried >= 7 for far, n_tried in found if far)


@pytest.mark.slow
def test_rounds_that_have_little_time_are_of_few_rows_and_go_on_with_more(monkeypatch):
    monkeypatch.setattr(metric_beginnings, "rough_flops_per_second", lambda _: 1.0)
    monkeypatch.setattr(metric_beginnings, "_FEWEST_TIMED", 150)
    rounds = tuned(*heavy_tailed(600), kernels="gaussian").report_["metric"]["rounds"]
    first = [each["n_rows"] for each in rounds if each["number"] == 0]
    assert set(first) == {150}
    assert {150, 300, 600} >= {each["n_rows"] for each in rounds} > {150}


def test_some_rounds_begin_with_weights_and_of_many_targets_none_do(found):
    rounds = found.report_["metric"]["rounds"]
    assert {each["is_weighted"] for each in rounds} == {True, False}
    assert all(each["number"] for each in rounds if each["is_weighted"])
    X, y = heavy_tailed(200)
    model = RandomFeatureRidge(n_components=64, kernel="laplacian", metric="diagonal:1")
    for q, kinds in ((16, {True, False}), (17, {False})):
        several = np.column_stack([y + j * X[:, 1] for j in range(q)])
        rounds = model.fit(X, several).report_["metric"]["rounds"]
        assert {each["is_weighted"] for each in rounds} == kinds


def test_two_kernels_have_a_descent_each_and_one_of_two_maps_has_one():
    rows = heavy_tailed(150)
    begun = tuned(*rows, kernels=["gaussian", "matern32"], maps="orthogonal")
    rounds = begun.report_["metric"]["rounds"]
    kernels = [each["kernel"] for each in rounds if each["is_weighted"]]
    assert set(kernels) == {"gaussian", "matern32"}
    maps = ["orthogonal", "nystroem"]
    rounds = tuned(*rows, kernels="gaussian", maps=maps).report_["metric"]["rounds"]
    assert {each["feature_map"] for each in rounds if each["is_weighted"]} == {"nystroem"}
    assert {each["feature_map"] for each in rounds if not each["is_weighted"]} == set(maps)


def test_weights_have_ten_rows_each_or_no_descent():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 71))
    for p, is_weighted in ((71, False), (20, True)):
        model = tuned(X[:, :p], np.sin(X[:, 0]), kernels="gaussian", maps="orthogonal", budget="1m")
        rounds = model.report_["metric"]["rounds"]
        assert any(each["is_weighted"] for each in rounds) == is_weighted


def test_first_rounds_have_fewer_rows_and_then_features_where_there_are_few_seconds():
    options = Parameters(n_components=1024).map_options()

    def sizes(seconds, p, kernel, n_targets=1):
        plain = Standardizer(np.arange(p), np.zeros(p), np.ones(p), p)
        fit = HeldOutFit.of(options, plain, 16_000)
        rounds = [((kernel, "nystroem"), 2), ((Gaussian(), "orthogonal"), 1)]
        found = metric_beginnings._within(3e10 * seconds, fit, n_targets, rounds, 2)
        return found.n_rows, found.n_components

    assert sizes(1e4, 8, Laplacian()) == (16_000, 1024)
    n_rows, D = sizes(20.0, 8, Laplacian())
    assert (1000 < n_rows < 16_000, D) == (True, 1024)
    assert sizes(0.0, 8, Laplacian()) == (1000, 256)
    # Gradients of several targets take their time, too.
    assert sizes(20.0, 8, Laplacian(), 10) < sizes(20.0, 8, Laplacian(), 2)
    assert sizes(0.0, 240, Laplacian()) == (3200, 256)
    assert sizes(3.5, 240, Gaussian())[1] > sizes(3.5, 240, Laplacian())[1]


def test_without_seconds_descents_have_as_many_rows_whatever_there_are_of_threads(monkeypatch):
    monkeypatch.setattr(metric_beginnings, "rough_flops_per_second", lambda _: 1e8)
    monkeypatch.setattr(metric_beginnings, "_DESCENT_ROWS", (50, 3000))
    sizes, descend = [], metric_beginnings.weights_by_descent

    def watched(kernel, X, *others):
        sizes.append(len(X))
        return descend(kernel, X, *others)

    monkeypatch.setattr(metric_beginnings, "weights_by_descent", watched)
    for n_threads in (1, 4):
        with dask.config.set(num_workers=n_threads):
            tuned(*heavy_tailed(400), None, ["gaussian", "matern32"], metric="diagonal:1")
    assert len(sizes) == 4
    assert 50 < sizes[0] < 300
    assert len(set(sizes)) == 1


@pytest.mark.parametrize(("n_components", "is_kept"), [(500, True), (2, False)])
def test_a_plain_fit_of_all_rows_is_kept_where_it_is_better(monkeypatch, n_components, is_kept):
    def fit(task, parameters, *args, **how):
        return fitted(task, replace(parameters, n_components=n_components), *args, **how)

    fitted = Regression.fit
    monkeypatch.setattr(Regression, "fit", fit)
    monkeypatch.setattr(SearchedFit, "leaves_time", lambda *_: True)  # on any machine
    X = np.random.default_rng(0).normal(size=(1000, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1]
    model = RandomFeatureRidge(n_components=8, precision="double")
    report = model.tune(X, y, budget="4s").report_
    assert (report["n_components"] == n_components) is is_kept
    assert report["tuning_budget"] == "4s"
    assert np.isfinite(model.predict(X)).all()


def test_where_rows_crowd_the_guarded_kernel_is_chosen_before_what_is_compared_is_named():
    rng = np.random.default_rng(0)
    along, across = np.meshgrid(np.linspace(0.0, 10.0, 60), np.linspace(0.0, 10.0, 16))
    X = np.column_stack([along.ravel(), across.ravel()])  # dense along tracks
    waves = rng.standard_normal((2, 400)) / np.abs(rng.standard_normal(400)) / 4.0
    y = np.cos(X @ waves + rng.uniform(0.0, 7.0, 400)).mean(axis=1)
    y += 0.2 * y.std() * rng.standard_normal(len(y))
    with pytest.warns(StreamkernWarning, match="crowd"):
        report = tuned(X, y, n_components=64, scale="auto").report_
    settings = [
        tuple(each[name] for name in ("feature_map", "kernel", "length_scale", "n_components"))
        for each in report["tuning"]
    ]
    # The plain fit is the guarded one, and is not compared with itself.
    assert len(set(settings)) == len(settings)
    assert {name for name, *_ in settings} == {"nystroem"}
    assert {kernel for _, kernel, *_ in settings} == {report["kernel"]} <= {"laplacian", "matern32"}
    assert report["metric"] is None
