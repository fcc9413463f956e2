"""Exact kernel ridge against random features, over maps and seeds, on the same rows."""

import json

import naive
import numpy as np
import pytest
from rows_read import Unread

from streamkern import (
    ExactKernelRidge,
    Gaussian,
    Linear,
    RandomFeatureClassifier,
    RandomFeatureRidge,
    compare,
)
from streamkern.errors import DataError, InsufficientMemoryError, ParameterError, StreamkernWarning
from streamkern.runtime.events import observed
from streamkern.sources import ArraySource, as_source


def rows(n=300, seed=0, q=None):
    rng = np.random.default_rng(seed)
    X = 3 + 2 * rng.standard_normal((n, 2))
    y = np.stack([np.sin(X[:, 0]) * X[:, 1], X[:, 0]], axis=1)
    y = y[:, 0] if q is None else y[:, :q]
    return X, y + 0.05 * rng.standard_normal(y.shape)


def model(kernel=Gaussian(1.0), **options):  # noqa: B008  immutable
    return RandomFeatureRidge(
        kernel, **{"alpha": 0.1, "precision": "double", "random_state": 1} | options
    )


def rmse(errors):
    return np.sqrt((errors**2).mean())


MAPS = ("orthogonal", "iid-phase")
DRAWN = [("orthogonal", ""), ("orthogonal", "-phase"), ("iid", ""), ("iid", "-phase")]


ROWS, TESTED = ArraySource(*rows()), ArraySource(*rows(200, seed=1))


@pytest.fixture(scope="module")
def found():
    sizes = {"n_components": (128, 8, 64), "n_seeds": 3, "n_train": 1000}
    return compare(ROWS, model(), maps=MAPS, test=TESTED, **sizes)


@pytest.fixture(scope="module")
def chosen():
    """A comparison in which every model chooses its alpha."""
    return compare(ROWS, model(alpha="cv"), n_components=(16, 128), n_seeds=2, test=TESTED)


def test_trials_are_of_the_exact_model_the_linear_one_and_then_map_by_map(found):
    trials = [(trial.method, trial.map, trial.n_components) for trial in found.trials]
    drawn = [("random features", name, D) for name in MAPS for D in (8, 64, 128)]
    assert trials == [("exact", None, None), ("linear", None, 2), *drawn]
    assert (found.n_train, found.n_test, found.alpha) == (300, 200, 0.1)
    assert {run.alpha for trial in found.trials for run in trial.runs} == {0.1}
    assert {trial.cv_rmse for trial in found.trials} == {None}
    said = json.loads(json.dumps(found.as_dict()))
    assert said["kernel"] == {"name": "gaussian", "length_scale": 1.0}
    assert "95% interval" in said["interval"]
    low, high = said["trials"][2]["interval"]["test_rmse"]
    assert low < said["trials"][2]["test_rmse"] < high
    assert [run["seed"] for run in said["trials"][2]["runs"]] == [1, 2, 3]


def test_the_linear_row_is_linear_ridge_fitted_by_hand(found):
    (X, y), (X_test, y_test) = rows(), rows(200, seed=1)
    linear = model(Linear()).fit(X, y)
    errors = linear.predict(X_test) - y_test
    assert found.trials[1].test_rmse == pytest.approx(rmse(errors), rel=1e-8)
    assert found.trials[1].relative_rmse > 2


@pytest.mark.parametrize(("name", "form"), DRAWN)
def test_every_run_is_a_model_fitted_by_hand_with_the_kernel_error_over_pairs(name, form):
    (X, y), (X_test, y_test) = rows(), rows(12, seed=1)
    sources = ArraySource(X, y), ArraySource(X_test, y_test)
    sizes = {"n_components": (16,), "maps": (name + form,), "n_seeds": 2}
    runs = compare(sources[0], model(), **sizes, test=sources[1]).trials[2].runs
    scaled = (X_test - X.mean(axis=0)) / X.std(axis=0)
    drawn = {"n_components": 16, "feature_map": name, "paired": not form}
    for seed, run in enumerate(runs, start=1):
        fitted = model(random_state=seed, **drawn).fit(X, y)
        phi = fitted.transform(X_test)
        errors = [
            abs(float(phi[i] @ phi[j]) - naive.gaussian(scaled[i], scaled[j], (1.0, 1.0)))
            for i in range(12)
            for j in range(i)
        ]
        assert run.kernel_error == pytest.approx(np.mean(errors), rel=1e-6)
        assert run.test_rmse == pytest.approx(rmse(fitted.predict(X_test) - y_test), rel=1e-6)


@pytest.mark.parametrize(
    ("q", "standardize", "intercept"), [(None, True, True), (2, False, True), (2, True, False)]
)
def test_the_exact_row_is_exact_kernel_ridge_fitted_by_hand(q, standardize, intercept):
    (X, y), (X_test, y_test) = rows(q=q), rows(200, seed=1, q=q)
    options = {"standardize": standardize, "fit_intercept": intercept}
    sizes = {"n_components": (8,), "n_seeds": 1, "n_train": 1000}
    test = ArraySource(X_test, y_test)
    found = compare(ArraySource(X, y), model(**options), **sizes, test=test)
    mean, deviation = (X.mean(axis=0), X.std(axis=0)) if standardize else (0.0, 1.0)
    options |= {"standardize": False, "leave_one_out": True}
    exact = ExactKernelRidge(Gaussian(1.0), alpha=0.1, **options).fit((X - mean) / deviation, y)
    errors = exact.predict((X_test - mean) / deviation) - y_test
    assert found.trials[0].test_rmse == pytest.approx(rmse(errors), rel=1e-8)
    assert found.trials[0].loo_rmse == pytest.approx(rmse(exact.loo_residuals_), rel=1e-8)
    assert found.trials[0].relative_rmse == 1.0
    assert found.trials[0].kernel_error is None
    assert found.target_deviation == pytest.approx(np.sqrt(y_test.var(axis=0).mean()))


def test_the_exact_model_chooses_its_alpha_by_leave_one_out_and_others_by_cross_validation(chosen):
    exact = ExactKernelRidge(Gaussian(1.0), alpha="loo").fit(*rows())
    trial, *others = chosen.trials
    assert trial.alpha == pytest.approx(exact.alpha_, rel=1e-8)
    assert trial.loo_rmse == pytest.approx(rmse(exact.loo_residuals_), rel=1e-8)
    assert (trial.cv_rmse, chosen.alpha) == (None, "cv")
    assert len({run.alpha for trial in others for run in trial.runs}) > 4
    for trial in others:
        assert trial.loo_rmse is None
        assert trial.cv_rmse == pytest.approx(np.mean([run.cv_rmse for run in trial.runs]))
        assert 0.5 < trial.cv_rmse / trial.test_rmse < 2


@pytest.mark.parametrize("alpha", ["gcv", "evidence", [0.01, 1.0, 100.0]])
def test_other_ways_to_choose_reach_every_model(alpha):
    found = compare(ROWS, model(alpha=alpha), n_components=(8,), n_seeds=1)
    alphas = {trial.alpha for trial in found.trials}
    assert alphas <= {0.01, 1.0, 100.0} if isinstance(alpha, list) else len(alphas) == 4
    assert found.alpha == (tuple(alpha) if isinstance(alpha, list) else alpha)
    assert (found.trials[2].cv_rmse is None) == isinstance(alpha, str)


def test_a_learnt_metric_is_that_of_all_models_that_are_compared():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 6))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.standard_normal(600)

    def exact(metric):
        model = RandomFeatureRidge(metric=metric)
        found = compare(ArraySource(X, y), model, n_components=[64], n_seeds=1, n_train=400)
        return found.trials[0].runs[0].test_rmse

    assert exact("learn:2") < 0.6 * exact(None)


def test_classes_are_not_compared():
    source = as_source(rows()[0], None)
    with pytest.raises(ParameterError, match="not of RandomFeatureClassifier; compare the regress"):
        compare(source, RandomFeatureClassifier())
    with pytest.raises(DataError, match="a comparison needs targets that are numbers"):
        compare(source, model())


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("n_components", (), "n_components must name at least one"),
        ("n_components", (8, 16, 8), "n_components must name each once"),
        ("n_components", (0,), "n_components must be at least 1"),
        ("maps", (), "maps must name at least one"),
        ("maps", ("iid", "iid"), "maps must name each once"),
        ("maps", ("sobol",), "maps must be one of orthogonal, .*, not 'sobol'; choose"),
        ("maps", ("identity",), "maps must be one of .*, not 'identity'"),
        ("n_seeds", 0, "n_seeds must be a whole number of at least 1, not 0; give how often"),
        ("n_seeds", 2.5, "n_seeds must be a whole number"),
        ("n_seeds", True, "n_seeds must be a whole number"),
        ("n_train", 4, "must fit at least 5 rows, not 4"),
        ("kernel", Linear(), "linear kernel has no random features"),
        ("per_target", True, "takes the one alpha of least error"),
        ("one_standard_error", True, "takes the one alpha of least error"),
    ],
)
def test_impossible_options_are_refused_before_any_row_is_read(name, value, sentence):
    of_model, others = {"alpha": "cv"}, {}
    is_of_model = name in {"kernel", "per_target", "one_standard_error"}
    (of_model if is_of_model else others)[name] = value
    with pytest.raises(ParameterError, match=sentence):
        compare(Unread(*rows()), model(**of_model), **others)


def test_what_does_not_fit_is_refused_before_rows_are_read_or_models_fitted(monkeypatch):
    exact = "streamkern.estimators.exact_kernel_ridge"
    with monkeypatch.context() as patch:
        patch.setattr(f"{exact}.available_bytes", lambda: 1_000_000)
        with pytest.raises(InsufficientMemoryError, match="exact kernel ridge regression on 240"):
            compare(Unread(*rows()), model())
    monkeypatch.setattr(f"{exact}.ExactKernelRidge.fit", lambda *_: pytest.fail("it was fitted"))
    with pytest.raises(InsufficientMemoryError, match="3,000,000 components need"):
        compare(ROWS, model(), n_components=(8, 3_000_000))


def test_conjugate_gradients_are_compared_too():
    solved = {
        solver: compare(
            ROWS, model(solver=solver), n_components=(512,), maps=("orthogonal",), n_seeds=1
        ).trials[2]
        for solver in ("cg", "direct")
    }
    by_passes, direct = solved["cg"], solved["direct"]
    assert (by_passes.solver, direct.solver) == ("cg", "cholesky")
    assert by_passes.test_rmse == pytest.approx(direct.test_rmse, rel=1e-4)
    assert 0 < by_passes.matrix_bytes < direct.matrix_bytes == 8 * 512**2


def test_penalties_below_the_precision_floor_are_said_once():
    small = model(alpha=1e-12, precision="single")
    with pytest.warns(StreamkernWarning, match="4 of 4 models with random features have") as said:
        compare(ROWS, small, n_components=(128, 512), n_seeds=1)
    assert len(said) == 1


def test_progress_is_told_once_for_all_models():
    told = []
    with observed(told.append):
        compare(ROWS, model(), n_components=(8, 16), n_seeds=2)
    begun = [event for event in told if event["kind"] == "pass begun"]
    assert [event["label"] for event in begun] == ["sample", "columns", "moments", "models"]
    mine = [event for event in told if event.get("pass") == begun[-1]["pass"]]
    done = [event["rows"] for event in mine if event["kind"] == "shard done"]
    assert done == [2 * 240, *[240] * 8]
    assert begun[-1]["rows"] == sum(done)


@pytest.mark.parametrize("where", ["X", "y"])
def test_a_row_that_is_not_finite_is_named(where):
    X, y = rows(100)
    {"X": X[:, 1], "y": y}[where][17] = np.nan if where == "X" else np.inf
    with pytest.raises(DataError, match=r"1 of 100 rows .* row 17;"):
        compare(ArraySource(X, y), model(), n_components=(8,), n_seeds=1)
