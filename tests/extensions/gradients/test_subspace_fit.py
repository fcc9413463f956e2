"""Conjugate gradients find what the D x D system has: the penalty, errors and predictions."""

import os

import dask
import h5py
import numpy as np
import pytest
from dask.callbacks import Callback
from hearing import killer_of_workers
from threadpoolctl import threadpool_limits

import streamkern
from streamkern import Gaussian, Matern
from streamkern.errors import ModelFileError, ParameterError, StreamkernWarning
from streamkern.estimators.problems import Regression
from streamkern.extensions.gradients import gram, preconditioner
from streamkern.extensions.gradients.feature_stores import FeatureStore
from streamkern.extensions.gradients.iterative_plan import vectors_at_once
from streamkern.features.base import stream
from streamkern.models.report_rows import fit_rows
from streamkern.registry import extension
from streamkern.runtime.events import observed
from streamkern.sources import ArraySource

N, P = 800, 3
# A map, a kernel for it, and inputs.
MAPS = {
    "orthogonal": ("gaussian", 3),
    "iid": ("matern32", 3),
    "sorf": ("gaussian", 3),
    "qmc": ("gaussian", 3),
    "grid": ("gaussian", 2),
    "nystroem": ("matern52", 3),
    "identity": ("linear", 3),
}


# In which errors have one minimum.
GRID = tuple(np.geomspace(0.01, 1000.0, 16).tolist())


def rows(n=N, p=P, q=None, seed=0):
    rng = stream(seed)
    X = rng.standard_normal((n, p))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + rng.standard_normal(n)
    return X, y if q is None else np.column_stack([y, X[:, 1] ** 2 - y][:q])


def ridge(feature_map="orthogonal", kernel="gaussian", **options):
    usual = {"n_components": 128, "precision": "double", "solver": "cg"}
    if "alpha" not in options:
        usual["alphas"] = GRID
    return streamkern.RandomFeatureRidge(kernel, feature_map=feature_map, **(usual | options))


def both(rows_, **options):
    """Return the models of conjugate gradients and of the D x D system."""
    return [ridge(**options, solver=solver).fit(*rows_) for solver in ("cg", "direct")]


def check_alike(found, expected, X, y, tolerance=1e-5):
    report, other = found.report_, expected.report_
    assert np.allclose(report["alpha"], other["alpha"], rtol=1e-4)
    if other["cv_rmse"] is not None:
        assert np.allclose(report["cv_rmse"], other["cv_rmse"], rtol=1e-4)
    apart = (found.predict(X) - expected.predict(X)) / np.std(y, axis=0)
    assert np.sqrt(np.mean(apart**2)) < tolerance
    assert np.allclose(report["noise"], other["noise"], rtol=0.01)
    assert np.allclose(report["effective_dof"], other["effective_dof"], rtol=0.1)
    assert report["solver"] == "cg" != other["solver"]
    assert report["note"] == other["note"]
    assert report["n_components"] == other["n_components"]


@pytest.mark.parametrize("name", list(MAPS))
def test_every_map_has_the_penalty_the_errors_and_the_predictions_of_the_system(name):
    kernel, p = MAPS[name]
    X, y = rows(p=p)
    found, expected = both((X, y), feature_map=name, kernel=kernel)
    check_alike(found, expected, *rows(300, p, seed=1))
    curve, whole = found.report_["alpha_curve"], expected.report_["alpha_curve"]
    last = len(curve["alphas"])
    assert np.allclose(curve["values"], whole["values"][-last:], rtol=1e-3)


def test_one_small_penalty_is_solved_though_bounds_do_not_fall_at_every_step():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 6))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(1500)
    options = {"kernel": Gaussian(1.5), "n_components": 256, "alpha": 1e-4}
    found, expected = both((X, y), **options)
    check_alike(found, expected, X, y, tolerance=1e-3)


@pytest.mark.parametrize("seed", [5, 7])
def test_errors_that_fall_again_far_below_a_minimum_are_found(seed):
    X = np.random.default_rng(seed).standard_normal((200, 1))
    y = np.sin(X[:, 0]) + np.sin(6.0 * X[:, 0])
    options = {"kernel": Gaussian(1.0), "feature_map": "nystroem", "alphas": None}
    found, expected = both((X, y), **options)
    assert found.alpha_ == pytest.approx(expected.alpha_, rel=1e-6)
    assert found.report_["cv_rmse"] < 0.1 * y.std()


def asked_products(monkeypatch):
    """Return a list to which every product adds what it is for, and the number of vectors."""
    asked, products = [], gram.ByPasses.products

    def watched(way, vectors, label, **how):
        asked.append((label.split("-")[0], vectors.shape[1]))
        return products(way, vectors, label, **how)

    monkeypatch.setattr(gram.ByPasses, "products", watched)
    return asked


def test_a_sketch_is_multiplied_by_passes_of_few_vectors(monkeypatch):
    X, y = rows()
    options = {"alpha": 1e-3, "n_components": 512}
    expected = ridge(**options).fit(X, y)
    asked = asked_products(monkeypatch)
    monkeypatch.setattr(preconditioner, "_FIRST", 8)
    monkeypatch.setattr(preconditioner, "_AT_ONCE", 8 * 512 * 20)
    found = ridge(**options).fit(X, y)
    sketched = [n for what, n in asked if what == "sketch"]
    assert max(sketched) == 20
    assert sum(sketched) == found.report_["gradients"]["sketch"] >= 64
    assert np.allclose(found.predict(X), expected.predict(X), atol=1e-5)


def test_a_sketch_of_few_rows_has_no_more_vectors_and_tells_all_directions():
    few = rows(100)
    found, expected = both(few, n_components=1024, alpha=1e-5)
    check_alike(found, expected, *few)
    assert found.report_["gradients"]["sketch"] == 100
    assert found.report_["iterations"] <= 3


def test_a_pass_has_no_more_vectors_than_are_planned(monkeypatch):
    asked = asked_products(monkeypatch)
    X, _ = rows()
    y = np.column_stack(
        [np.sin(k * X[:, 0]) + k * stream(k).standard_normal(N) for k in range(1, 7)]
    )
    model = ridge(per_target=True, n_folds=3, n_components=512).fit(X, y)
    n_alphas = len(set(model.alpha_))
    assert n_alphas > 3
    assert max(n for what, n in asked if what == "vectors") <= vectors_at_once(n_alphas, 6)


@pytest.mark.filterwarnings("ignore::streamkern.errors.StreamkernWarning")
def test_the_smallest_penalty_of_single_precision_keeps_every_direction():
    X, _ = rows(3000)
    y = np.sin(2.0 * X[:, 0]) * X[:, 1]
    options = {"kernel": "matern52", "precision": "single", "alpha": "cv", "n_components": 256}
    found, expected = both((X, y), **options)
    assert expected.report_["alpha"] == expected.report_["precision_floor"]
    assert found.report_["note"].startswith("the error still falls at the smallest alpha")
    X, _ = rows(300, seed=1)
    assert np.std(found.predict(X) - expected.predict(X)) < 0.02 * y.std()
    deviations, others = (each.predict(X, return_std=True)[1] for each in (found, expected))
    assert np.allclose(deviations, others, rtol=0.2)


def test_the_usual_penalties_are_those_of_the_system():
    options = {"kernel": "laplacian", "alpha": "cv"}
    found, expected = both(rows(), **options)
    check_alike(found, expected, *rows(300, seed=1))
    curve, whole = (each.report_["alpha_curve"]["alphas"] for each in (found, expected))
    assert len(whole) == 30
    assert 5 < len(curve) < 30
    assert np.allclose(curve, whole[-len(curve) :], rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.3},
        {"alphas": [0.1, 1.0, 10.0]},
        {"fit_intercept": False},
        {"one_standard_error": True},
        {"precision": "single"},
        {"paired": False, "standardize": False},
        {"metric": "learn:1"},
        {"feature_map": "nystroem", "fit_intercept": False, "fold_by": "blocks"},
    ],
    ids=str,
)
def test_options_are_kept(options):
    found, expected = both(rows(), **options)
    check_alike(found, expected, *rows(300, seed=1), tolerance=1e-4)


@pytest.mark.parametrize(
    ("p", "options"),
    [
        (1, {"precision": "single"}),
        (1, {"fold_by": "blocks", "n_folds": 3}),
        (2, {"n_components": 201, "kernel": "matern32"}),
        (2, {"alpha": 0.3, "fit_intercept": False}),
        (3, {"precision": "single"}),
        (3, {"fold_by": "blocks", "n_folds": 3}),
    ],
    ids=str,
)
def test_waves_are_solved_without_reading_rows_again(p, options):
    X, y = rows(p=p, q=None if p == 2 else 1) if p > 1 else rows_of_one_input()
    weights = stream(2).integers(0, 3, N).astype(float)
    found, expected = both((X, y, weights), **{"feature_map": "grid"} | options)
    check_alike(found, expected, X, y, tolerance=1e-4)
    assert found.report_["passes"] == 2
    assert "by transforms of sums" in dict(fit_rows(found.report_))["iterations"]


def rows_of_one_input():
    rng = stream(1)
    X = rng.uniform(-2.0, 2.0, (N, 1))
    return X, np.sin(3.0 * X[:, 0]) + 0.3 * rng.standard_normal(N)


def test_waves_beyond_the_block_take_few_iterations(monkeypatch):
    monkeypatch.setattr(gram, "LEADING", 128)
    X = stream(3).random((20_000, 2))
    y = np.cos(2.0 * np.pi * (X @ [4.0, 3.0])) + 0.1 * stream(4).standard_normal(len(X))
    found, expected = both(
        (X, y), kernel=Matern(0.5), n_components=400, feature_map="grid", alpha=30.0
    )
    check_alike(found, expected, X, y, tolerance=1e-4)
    assert found.report_["iterations"] <= 20


def test_waves_of_several_targets_are_solved_with_a_penalty_each(tmp_path):
    X, y = rows(p=2, q=2)
    y[:, 1] += 5.0 * stream(6).standard_normal(N)
    found, expected = both((X, y), feature_map="grid", per_target=True)
    check_alike(found, expected, X, y)
    assert len(set(found.report_["alpha"])) == 2
    deviations = check_deviations(found, expected, X)
    found.save(tmp_path / "waves.h5")
    loaded = streamkern.load(tmp_path / "waves.h5")
    assert np.array_equal(loaded.predict(X, return_std=True)[1], deviations)
    for damage, words in ((damaged, "is a damaged model"), (of_samples, "28 November 2026")):
        with h5py.File(tmp_path / "waves.h5", "r+") as file:
            damage(file["equations"])
        with pytest.raises(ModelFileError, match=words):
            streamkern.load(tmp_path / "waves.h5")


def damaged(equations):
    mean = equations["leading/feature_mean"][:-1]
    del equations["leading/feature_mean"]
    equations["leading/feature_mean"] = mean


def of_samples(equations):
    equations["samples/alphas"] = np.ones(1)


def check_deviations(found, expected, X, least=0.99, most=1.01):
    """Compare deviations with those of the whole system, and return them."""
    _, deviations = found.predict(X, return_std=True)
    ratio = deviations / expected.predict(X, return_std=True)[1]
    assert ((ratio > least) & (ratio < most)).all()
    return deviations


def test_waves_beyond_the_block_make_deviations_larger_in_gaps_too(monkeypatch):
    monkeypatch.setattr(gram, "LEADING", 128)
    X = stream(3).random((3000, 2))
    X = X[(np.abs(X - 0.5) > 0.15).any(axis=1)]
    y = np.cos(2.0 * np.pi * (X @ [4.0, 3.0])) + 0.1 * stream(4).standard_normal(len(X))
    options = {"feature_map": "grid", "kernel": Matern(0.3, nu=0.5), "n_components": 800}
    found, expected = (
        ridge(alpha=[0.1, 0.2], solver=solver, **options).fit(X, y, keep_moments=True)
        for solver in ("cg", "direct")
    )
    dof, whole = (each.report_["effective_dof"] for each in (found, expected))
    assert whole < dof < 1.5 * whole
    gap = 0.4 + 0.2 * stream(5).random((500, 2))
    check_deviations(found, expected, X, 1.0, 2.0)
    check_deviations(found, expected, gap, 1.0, 2.0)
    said = dict(fit_rows(found.report_))["deviations"]
    assert said == "of 128 leading features, of others the prior's"
    # Those without the folds of rows are told by those of all rows.
    validated = extension("report", "validation_pass").validated
    told, of_system = (validated(each.model_, ArraySource(X, y)) for each in (found, expected))
    ratio = told.standardized.std() / of_system.standardized.std()
    assert 0.5 < ratio < 1.0


def test_waves_are_planned_where_all_that_is_searched_has_them():
    source = ArraySource(*rows(p=2))
    given = ridge(n_components=20_000, feature_map="grid", alpha=1.0)._parameters()
    for kernels, maps, waves in (
        ("gaussian", "grid", True),
        (["gaussian", "laplacian"], "grid", False),
        ("gaussian", ["grid", "orthogonal"], False),
    ):
        searched = {"kernels": kernels, "maps": maps, "budget": None, "checkpoint": None}
        job = extension("search", "tuned_fit").search_job(Regression(), given, **searched)
        found = job.plan(source)
        assert (found.solves_by_passes, found.sums_waves) == (True, waves)
        assert bool(found.stored_bytes) is not waves
    few, source = ridge(n_components=200, alpha=1.0), ArraySource(*rows(200, 2))
    for maps in (["grid", "orthogonal"], ["orthogonal", "grid"]):
        assert few.tune(source, kernels="matern12", maps=maps).report_["solver"] == "cg"


def test_deviations_are_those_of_the_system_and_files_keep_them(tmp_path):
    X, y = rows()
    for name, kernel, alpha in (
        ("orthogonal", "gaussian", 1.0),
        ("orthogonal", "matern32", 0.01),
        ("nystroem", "matern12", 0.1),
    ):
        options = {"n_components": 512, "feature_map": name, "kernel": kernel, "alpha": alpha}
        found, expected = both((X, y), **options)
        _, deviations = found.predict(X, return_std=True)
        ratio = deviations / expected.predict(X, return_std=True)[1]
        assert np.median(ratio) == pytest.approx(1.0, abs=0.05)
        assert ((ratio > 0.97) & (ratio < 1.6)).all()
        assert dict(fit_rows(found.report_))["deviations"].startswith("of the directions that matt")
        found.save(tmp_path / f"{kernel}.h5")
        loaded = streamkern.load(tmp_path / f"{kernel}.h5")
        assert np.array_equal(loaded.predict(X), found.predict(X))
        assert np.array_equal(loaded.predict(X, return_std=True)[1], deviations)
        assert np.allclose(found.transform(X) @ found.coef_ + found.intercept_, found.predict(X))


def test_more_features_than_a_system_holds_are_solved_by_gradients_as_they_come():
    X, y = rows(400)
    model = streamkern.RandomFeatureRidge("gaussian", n_components=8200, alpha=1.0).fit(X, y)
    assert model.report_["solver"] == "cg"
    assert model.report_["n_components"] == 8200
    kept = streamkern.RandomFeatureRidge(n_components=8200, alpha="gcv")._parameters()
    assert not any(kept.solution_by_passes(kept.pass_options()).values())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": "auto"}, "the number of components is chosen from"),
        ({"sparse": 8}, "a sparse model is chosen from"),
        ({"alpha": "gcv"}, "alpha 'gcv' is chosen from"),
        ({"alpha": "loo"}, "alpha 'loo' is chosen from"),
        ({"precision": "int8"}, "precision 'int8' is for"),
        ({"alpha": 0}, "alpha 0 is solved by"),
    ],
    ids=str,
)
def test_what_needs_the_system_is_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        ridge(**options).fit(*rows(50))


def test_moments_of_all_features_are_refused():
    for use in (ridge().moments, ridge().partial_fit):
        with pytest.raises(ParameterError, match="are what conjugate gradients do without"):
            use(*rows(50))
    for solver in ("lu", None):
        with pytest.raises(ParameterError, match="solver must be one of auto, direct, cg"):
            ridge(solver=solver).fit(*rows(50))


def test_a_residual_that_does_not_fall_is_told_with_what_to_do(monkeypatch):
    monkeypatch.setattr("streamkern.extensions.gradients.gram.ByPasses.patience", 1)
    monkeypatch.setattr("streamkern.extensions.gradients.conjugate_gradients._PATIENT_VECTORS", 1)
    with pytest.warns(StreamkernWarning, match="solutions may still move predictions"):
        model = ridge(alpha=1e-6).fit(*rows())
    assert model.report_["note"].endswith("hardly falls any more; take larger penalties.")


def solution(source, **options):
    model = ridge(alpha=[0.1, 1.0], precision="single", **options).fit(source)
    return model.model_.predictor.form.coef.tobytes(), model.report_


def test_an_interrupted_fit_goes_on_at_its_iteration(small_shards, tmp_path):
    source = ArraySource(*rows())
    expected, _ = solution(source)
    model = ridge(alpha=[0.1, 1.0], precision="single")
    with dask.config.set(scheduler="synchronous"):
        for phase in ("sketch", "vectors", "probes"):

            def before(*_, phase=phase):
                if [*(tmp_path / "saved").glob(f"{phase}-*.h5")]:
                    raise KeyboardInterrupt

            with Callback(pretask=before), pytest.raises(KeyboardInterrupt):
                model.fit(source, checkpoint=tmp_path / "saved")
        model.fit(source, checkpoint=tmp_path / "saved")
    assert model.model_.predictor.form.coef.tobytes() == expected
    assert model.report_["resumed_shards"] > 0


@pytest.mark.cluster
def test_workers_that_are_killed_leave_the_same_bits(small_shards):
    from dask.distributed import Client

    source = ArraySource(*rows())
    with dask.config.set(scheduler="synchronous"):
        expected, _ = solution(source)
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        killer, victims = killer_of_workers(client, "sketch-64")
        with observed(killer):
            found, report = solution(source)
        assert found == expected
        assert not victims & set(client.run(lambda: __import__("os").getpid()).values())
        assert report["rows"] == N


def test_features_that_are_kept_change_no_bit(small_shards, monkeypatch):
    source, of_store = ArraySource(*rows()), "streamkern.extensions.gradients.feature_stores"
    with dask.config.set({"streamkern.feature-store": False}):
        expected, _ = solution(source)
    pread, read, made = os.preadv, [], []

    def preadv(*args):
        read.append(pread(*args))
        return read[-1] * (len(read) % 7 > 0)  # now and then the disk fails

    def store(name, most_bytes):
        made.append(FeatureStore(name, min(most_bytes, room)))
        return made[-1]

    monkeypatch.setattr(f"{of_store}.os.preadv", preadv)
    monkeypatch.setattr(f"{of_store}.FeatureStore", store)
    for room in (1 << 40, 100 * 1000):  # for all blocks, or for some
        read.clear()
        assert solution(source)[0] == expected
        assert sum(read) > 2 * min(room, N * 128 * 4)
        assert made[-1]._taken <= room
    monkeypatch.setattr(f"{of_store}.os.pwritev", lambda *_: 0)  # the disk is full
    room = 1 << 40
    read.clear()
    assert solution(source)[0] == expected

    def no_folder(**_):
        raise FileNotFoundError

    monkeypatch.setattr(f"{of_store}.tempfile.TemporaryFile", no_folder)
    assert solution(source)[0] == expected
    assert not read


def test_the_number_of_cores_changes_no_bit():
    source = ArraySource(*rows())
    found = []
    for n_threads in (2, 1):
        with threadpool_limits(n_threads):
            found.append(solution(source, n_components=1024)[0])
    assert found[0] == found[1]


def test_penalties_go_on_until_the_error_of_every_target_has_risen():
    X, _ = rows()
    smooth = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.3 * stream(4).standard_normal(N)
    Y = np.column_stack([smooth, *stream(3).standard_normal((3, N))])
    options = {"alpha": "cv", "alphas": None, "precision": "single", "n_components": 512}
    for of_each in ({"per_target": True}, {"n_components": 256}):
        targets = Y if of_each.get("per_target") else smooth
        found, expected = both((X, targets), **(options | of_each))
        assert np.allclose(found.report_["cv_rmse"], expected.report_["cv_rmse"], rtol=0.02)
        first = found.report_["gradients"]["tried_from"]
        assert found.report_["alpha_curve"]["alphas"][0] == first <= np.min(found.report_["alpha"])


def test_moments_of_combinations_take_no_rows_and_no_other_penalty(tmp_path):
    X, y = rows()
    model = ridge(alpha=1.0).fit(X, y, keep_moments=True)
    moments = model.moments_
    for use in (
        lambda: model.set_params(solver="auto").partial_fit(X, y),
        lambda: streamkern.RandomFeatureRidge(128).solve(moments),
        lambda: moments.merge(moments, repeated_rows=True),
        lambda: moments.forget(X, y),
        lambda: moments.save(tmp_path / "moments.h5"),
        lambda: streamkern.RandomFeatureRidge(128).fit(X, y, like=moments),
    ):
        with pytest.raises(ParameterError, match="conjugate gradients"):
            use()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ParameterError, match="leverages need the D x D system"):
        model.diagnose(X, y)


def test_searches_and_memory_that_is_short_are_planned_with_gradients(monkeypatch):
    source = ArraySource(*rows())
    given = ridge(n_components=65_536, feature_map="orthogonal")._parameters()
    job = extension("search", "tuned_fit").search_job(
        Regression(), given, kernels="gaussian", maps=None, budget=None, checkpoint=None
    )
    found = job.plan(source)
    assert found.solves_by_passes
    assert found.client_bytes < 8 << 30
    for module in ("plan", "planning"):
        name = f"streamkern.parameters.{module}.available_bytes"
        monkeypatch.setattr(name, lambda *_: 4 << 30)
    for solver, by_passes in (("auto", True), ("direct", False)):
        job = Regression().job(ridge(n_components=8000, solver=solver)._parameters())
        assert job.plan(source).solves_by_passes == by_passes
