"""Exact kernel ridge against random features, over maps and seeds, on the same rows."""

import json

import naive
import numpy as np
import pytest
from rows_read import Unread
from scipy import stats

from streamkern import (
    ExactKernelRidge,
    Gaussian,
    Linear,
    RandomFeatureClassifier,
    RandomFeatureRidge,
    compare,
)
from streamkern.errors import DataError, InsufficientMemoryError, ParameterError, StreamkernWarning
from streamkern.sources import ArraySource, Block, as_source
from streamkern.statistics import RowSample

SIZES = (8, 64, 128)
MAPS = ("orthogonal", "iid")


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


def split(X, y, seed=1):
    """The rows that are fitted, and those that are tested, of a comparison of all."""
    sample = RowSample(len(X), seed)
    sample.update([Block(X, y.reshape(len(X), -1), 0)])
    y = sample.y[:, 0] if y.ndim == 1 else sample.y
    n = 4 * len(X) // 5
    return sample.X[:n], y[:n], sample.X[n:], y[n:]


ROWS = ArraySource(*rows())


@pytest.fixture(scope="module")
def found():
    return compare(ROWS, model(), n_components=(128, 8, 64), n_seeds=3, n_train=1000)


def test_trials_are_of_the_exact_model_and_then_map_by_map(found):
    trials = [(trial.method, trial.map, trial.n_components) for trial in found.trials]
    drawn = [("random features", name, D) for name in MAPS for D in SIZES]
    assert trials == [("exact", None, None), *drawn]
    assert (found.n_train, found.n_test, found.alpha) == (240, 60, 0.1)
    assert {run["alpha"] for trial in found.trials for run in trial.runs} == {0.1}
    said = json.loads(json.dumps(found.as_dict()))
    assert said["kernel"] == {"name": "gaussian", "length_scale": 1.0}
    errors = [run["test_rmse"] for run in said["trials"][1]["runs"]]
    ends = stats.t.interval(0.95, 2, np.mean(errors), stats.sem(errors))
    assert said["trials"][1]["interval"]["test_rmse"] == pytest.approx(ends)
    assert [run["seed"] for run in said["trials"][1]["runs"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("q", "standardize", "intercept"), [(None, True, True), (2, False, True), (2, True, False)]
)
def test_every_run_is_a_model_fitted_by_hand(q, standardize, intercept):
    options = {"standardize": standardize, "fit_intercept": intercept}
    sizes = {"n_components": (16,), "maps": ("iid",), "n_seeds": 2}
    found = compare(ArraySource(*rows(q=q)), model(**options), **sizes)
    X, y, X_test, y_test = split(*rows(q=q))
    mean, deviation = (X.mean(axis=0), X.std(axis=0)) if standardize else (0.0, 1.0)
    X, X_test = (X - mean) / deviation, (X_test - mean) / deviation
    options |= {"standardize": False}
    exact = ExactKernelRidge(Gaussian(1.0), alpha=0.1, leave_one_out=True, **options).fit(X, y)
    assert found.trials[0].test_rmse == pytest.approx(rmse(exact.predict(X_test) - y_test))
    assert found.trials[0].loo_rmse == pytest.approx(rmse(exact.loo_residuals_))
    assert found.target_deviation == pytest.approx(np.sqrt(y_test.var(axis=0).mean()))
    for seed, run in enumerate(found.trials[1].runs, start=1):
        drawn = {"n_components": 16, "feature_map": "iid", "random_state": seed}
        fitted = model(**drawn, **options, scale="standard").fit(X, y)
        assert run["test_rmse"] == pytest.approx(rmse(fitted.predict(X_test) - y_test), rel=1e-6)
        phi = fitted.transform(X_test)
        errors = [
            abs(float(phi[i] @ phi[j]) - naive.gaussian(X_test[i], X_test[j], (1.0, 1.0)))
            for i in range(len(X_test))
            for j in range(i)
        ]
        assert run["kernel_error"] == pytest.approx(np.mean(errors), rel=1e-6)


@pytest.mark.parametrize("alpha", ["cv", "gcv", [0.01, 1.0, 100.0]])
def test_every_model_chooses_its_penalty(alpha):
    found = compare(ROWS, model(alpha=alpha), n_components=(8, 64), n_seeds=1)
    trial, *others = found.trials
    alphas = {trial.alpha for trial in found.trials}
    assert alphas <= {0.01, 1.0, 100.0} if isinstance(alpha, list) else len(alphas) > 3
    assert found.alpha == (tuple(alpha) if isinstance(alpha, list) else alpha)
    assert trial.cv_rmse is None
    for each in others:
        assert each.loo_rmse is None
        assert (each.cv_rmse is None) == (alpha == "gcv")


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
        ("maps", ("identity",), "maps must be one of .*, not 'identity'"),
        ("maps", ("iid-phase",), "maps must be one of orthogonal, .*, not 'iid-phase'"),
        ("n_seeds", 0, "n_seeds must be a whole number of at least 1, not 0; give how often"),
        ("n_train", 4, "must fit at least 5 rows, not 4"),
        ("kernel", Linear(), "linear kernel has no random features"),
        ("per_target", True, "takes the one alpha of least error"),
    ],
)
def test_impossible_options_are_refused_before_any_row_is_read(name, value, sentence):
    of_model, others = {"alpha": "cv"}, {}
    (of_model if name in {"kernel", "per_target"} else others)[name] = value
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
    sizes = {"n_components": (512,), "maps": ("orthogonal",), "n_seeds": 1}
    by_passes, direct = (
        compare(ROWS, model(solver=solver), **sizes).trials[1] for solver in ("cg", "direct")
    )
    assert (by_passes.solver, direct.solver) == ("cg", "cholesky")
    assert by_passes.test_rmse == pytest.approx(direct.test_rmse, rel=1e-4)
    assert 0 < by_passes.matrix_bytes < direct.matrix_bytes == 8 * 512**2


def test_penalties_below_the_precision_floor_are_said_once():
    small = model(alpha=1e-12, precision="single")
    with pytest.warns(StreamkernWarning, match="4 of 4 models with random features have") as said:
        compare(ROWS, small, n_components=(128, 512), n_seeds=1)
    assert len(said) == 1


def test_too_few_rows_and_rows_that_are_not_finite_are_refused_and_others_skipped():
    X, y = rows(100)
    X[:40, 1] = np.nan
    with pytest.raises(DataError, match=r"40 of 100 rows .* row 0;"):
        compare(ArraySource(X, y), model(), n_components=(8,), n_seeds=1)
    skipping = model(on_bad_rows="skip")
    found = compare(ArraySource(X, y), skipping, n_components=(8,), n_seeds=1)
    assert (found.n_train, found.n_test) == (48, 12)
    X[:95] = np.nan
    with pytest.raises(DataError, match="needs 10 rows, but 5 of 100 are finite"):
        compare(ArraySource(X, y), skipping, n_components=(8,), n_seeds=1)
    with pytest.raises(DataError, match="needs 10 rows, but there are 9"):
        compare(Unread(*rows(9)), model())
