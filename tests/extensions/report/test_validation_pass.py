"""Predictions of rows that were not seen, against fits without them; and intervals that hold."""

import pickle

import naive
import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.base import clone
from tolerances import assert_close

import streamkern
from streamkern import Gaussian, RandomFeatureClassifier, RandomFeatureRidge
from streamkern.engine.scheduler import compute
from streamkern.errors import DataError, ModelFileError
from streamkern.extensions.report import validation_pass
from streamkern.extensions.report.prediction_figures import LEVELS, coverage
from streamkern.extensions.report.validation_pass import validated
from streamkern.features import RandomFourierFeatures
from streamkern.sources import as_source

N, P = 260, 3


def rows(n=N, q=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -1.0]
    smooth = np.stack([np.sin(X[:, 0]) + X[:, 1] / 10, 50 + 7 * X[:, 0] * X[:, 2]], axis=1)
    y = smooth + 0.2 * rng.standard_normal((n, 2))
    return X, y[:, 0] if q is None else y[:, :q]


def fitted(X, y, s=None, **options):
    options = {"n_components": 48, "precision": "double"} | options
    model = RandomFeatureRidge(options.pop("kernel", Gaussian(1.5)), **options)
    return model.fit(X, y, s, keep_moments=True)


def refitted(model, X, y, s=None):
    """What fits without each row's fold predict for it, with the map and penalty of all rows."""
    y, s = y.reshape(len(y), -1), np.ones(len(y)) if s is None else s
    folds = compute(model.moments_.folds).rule.at(np.arange(len(y)))
    feature_map = model.moments_.feature_map
    Phi = feature_map.transform(X)
    alphas = np.broadcast_to(model.alpha_, y.shape[1])
    predicted = np.empty_like(y)
    for k in np.unique(folds):
        held = folds == k
        for j, alpha in enumerate(alphas):
            w, mu = naive.weighted_ridge(
                Phi[~held], y[~held, j : j + 1], s[~held], alpha, intercept=model.fit_intercept
            )
            predicted[held, j] = (Phi[held] @ w + mu)[:, 0]
    return predicted


CASES = {
    "rows": {},
    "blocks": {"fold_by": "blocks"},
    "three folds": {"n_folds": 3},
    "no intercept": {"fit_intercept": False},
    "no standardising": {"standardize": False, "kernel": Gaussian(8.0)},
    "phases": {"paired": False},
    "a grid": {"alpha": [0.01, 0.1, 1.0]},
    "one standard error": {"one_standard_error": True},
    "inputs": {"feature_map": "identity", "kernel": streamkern.Linear()},
    "a penalty a target": {"per_target": True},
}


@pytest.mark.parametrize(("case", "q"), [*zip(CASES, [None, 2] * len(CASES), strict=False)])
def test_every_row_is_predicted_by_the_fit_without_its_fold(case, q):
    X, y = rows(q=q)
    s = np.random.default_rng(3).random(N) + 0.2 if case == "phases" else np.ones(N)
    model = fitted(X, y, s, **CASES[case])
    found = validated(model.model_, as_source(X, y, s))
    expected, targets = refitted(model, X, y, s), y.reshape(N, -1)
    pairs, residuals = found.measure.counted(expected, targets)
    assert np.array_equal(found.measure.pairs, pairs)
    assert np.array_equal(found.measure.residuals, residuals)
    assert (found.by_fold, found.n_rows) == (True, N)
    rmse = np.sqrt(np.average((targets - expected) ** 2, axis=0, weights=s))
    assert found.rmse == pytest.approx(rmse, rel=1e-8)
    assert found.rmse == pytest.approx(np.atleast_1d(model.report_["cv_rmse"]), rel=1e-8)
    centred = targets - np.average(targets, axis=0, weights=s)
    explained = 1 - rmse**2 / np.average(centred**2, axis=0, weights=s)
    assert found.r2 == pytest.approx(explained, rel=1e-8)


def test_the_features_of_a_sparse_model_are_chosen_without_the_fold():
    X, y = rows()
    model = fitted(X, y, sparse=7)
    found = validated(model.model_, as_source(X, y))
    # The error left out counts what choosing costs, and so does what is predicted.
    assert found.rmse[0] == pytest.approx(model.report_["cv_rmse"], rel=1e-8)
    assert found.measure.pairs.sum() == N


@pytest.mark.parametrize(
    ("alpha", "intercept", "weighted"),
    [(0.3, True, True), ("gcv", False, True), ("evidence", True, False)],
)
def test_without_folds_every_row_is_predicted_without_itself(alpha, intercept, weighted):
    X, y = rows(90, q=2)
    s = np.random.default_rng(3).random(90) + 0.2 if weighted else np.ones(90)
    model = fitted(X, y, s if weighted else None, alpha=alpha, fit_intercept=intercept)
    found = validated(model.model_, as_source(X, y, s if weighted else None))
    Phi = model.transform(X)
    errors = naive.left_out_errors(Phi, y, s, model.alpha_, intercept=intercept)
    assert (found.by_fold, found.n_rows) == (False, 90)
    expected = np.sqrt(np.average(errors**2, axis=0, weights=s))
    assert found.rmse == pytest.approx(expected, rel=1e-8)
    assert np.array_equal(found.measure.pairs, found.measure.counted(y - errors, y)[0])


def test_without_folds_the_deviations_are_those_without_the_row():
    X, y = rows(60)
    model = fitted(X, y, alpha=0.3, n_components=16)
    found = validated(model.model_, as_source(X, y))
    Phi, noise = model.transform(X), model.equations_.noise_variance[0]
    expected = []
    for i in range(60):
        others = np.arange(60) != i
        (leverage,) = naive.leverages(Phi[others], Phi[[i]], np.ones(59), 0.3, intercept=True)
        expected.append(np.sqrt(noise * (1 + leverage)))
    errors = naive.left_out_errors(Phi, y[:, None], np.ones(60), 0.3, intercept=True)[:, 0]
    # The sample has the rows in an order of its own.
    standardized = np.sort(found.standardized[:, 0])
    assert_close(standardized, np.sort(errors / np.array(expected)), steps=1e6)


def drawn_from_the_model(n, alpha, noise, seed):
    """Targets whose coefficients have the variance that the penalty says, and normal noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P))
    Phi = RandomFourierFeatures(Gaussian(1.5), 64, random_state=0).draw(P).transform(X)
    w = noise / np.sqrt(alpha) * rng.standard_normal(64)
    return X, 4.0 + Phi @ w + noise * rng.standard_normal(n)


@pytest.mark.parametrize("by_fold", [True, False])
def test_intervals_hold_as_many_rows_as_they_say_where_the_model_is_true(by_fold, monkeypatch):
    alpha, n = 0.5, 6000
    X, y = drawn_from_the_model(n, alpha, 0.3, 11)
    options = {"alpha": [alpha] if by_fold else alpha, "standardize": False}
    model = fitted(X, y, n_components=64, **options)
    found = validated(model.model_, as_source(X, y))
    m = len(found.standardized)
    assert m == validation_pass._SAMPLE_ROWS
    nominal = np.array(LEVELS)
    within = coverage(found.standardized)[:, 0]
    # Four standard errors of a binomial share; the noise is known to 1 / sqrt(2 n).
    assert (np.abs(within - nominal) < 4 * np.sqrt(nominal * (1 - nominal) / m) + 0.01).all()
    exact = ndtri((np.arange(n) + 0.5) / n)[:, None]
    assert np.abs(coverage(exact)[:, 0] - nominal).max() <= 1 / n
    # Half as wide, they would not.
    narrow = coverage(2 * found.standardized)[:, 0]
    assert (nominal - narrow > 0.04).all()


def test_other_rows_and_models_without_equations_are_refused(tmp_path):
    X, y = rows()
    model, fixed = fitted(X, y), fitted(X, y, alpha=1.0)
    classifier = RandomFeatureClassifier("gaussian", n_components=16).fit(X, y > y.mean()).model_
    wrong = [(model, X, y + np.linspace(0, 1, N)), (model, X[:200], y[:200]), (fixed, X, -y)]
    wrong = [(fit.model_, as_source(*others)) for fit, *others in wrong]
    wrong += [(classifier, classifier.source(X[::-1] + 1.0, y > y.mean(), None))]
    for fit, others in wrong:
        with pytest.raises(DataError, match="not the rows that the model was fitted on"):
            validated(fit, others)
    with pytest.raises(DataError, match="predicts 1 target, but the data has 2"):
        validated(model.model_, as_source(X, np.column_stack([y, y])))
    # A compact model that was loaded does not know enough.
    model.save(tmp_path / "model.h5", compact=True)
    with pytest.raises(ModelFileError, match="without"):
        validated(streamkern.load(tmp_path / "model.h5").model_, as_source(X, y))


def test_moments_do_not_travel_and_rows_in_parts_are_left_out_one_by_one():
    X, y = rows()
    model = fitted(X, y)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301  our own
    assert (again.moments_, again.coef_.tolist()) == (None, model.coef_.tolist())
    assert model.moments_ is not None
    assert not [name for name in vars(clone(model)) if name.endswith("_")]
    model = clone(model).partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    found = validated(model.model_, as_source(X, y))
    assert not found.by_fold
    again = pickle.loads(pickle.dumps(model))  # noqa: S301  our own
    assert validated(again.model_, as_source(X, y)).rmse == pytest.approx(found.rmse)


@pytest.mark.cluster
def test_workers_count_what_this_process_counts():
    X, y = rows(3000)
    here = validated(fitted(X, y).model_, as_source(X, y))
    with streamkern.connect(n_workers=2):
        there = validated(fitted(X, y).model_, as_source(X, y))
    assert np.array_equal(there.measure.pairs, here.measure.pairs)
    assert np.array_equal(there.measure.residuals, here.measure.residuals)
    assert_close(np.sort(there.standardized, axis=0), np.sort(here.standardized, axis=0))
    assert there.n_rows == 3000
