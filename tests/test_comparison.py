"""Exact kernel ridge against random features, on the same rows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from streamkern import ExactKernelRidge, Gaussian, Linear, Matern, RandomFeatureRidge, compare
from streamkern.errors import DataError, ParameterError
from streamkern.sources.arrays import ArraySource


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


@pytest.fixture(scope="module")
def found():
    source, test = ArraySource(*rows()), ArraySource(*rows(200, seed=1))
    return compare(source, model(), n_components=(8, 64, 1024), n_train=1000, test=test)


def test_the_exact_model_comes_first_then_the_linear_one_then_features_by_their_number(found):
    assert [trial.method for trial in found.trials] == [
        "exact",
        "linear",
        *["random features"] * 3,
    ]
    assert [trial.n_components for trial in found.trials] == [None, 2, 8, 64, 1024]
    assert (found.n_train, found.n_test) == (300, 200)


@pytest.mark.parametrize("q", [None, 2])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_exact_row_is_exact_kernel_ridge_fitted_by_hand(q, standardize, intercept):
    (X, y), (X_test, y_test) = rows(q=q), rows(200, seed=1, q=q)
    options = {"standardize": standardize, "fit_intercept": intercept}
    found = compare(
        ArraySource(X, y),
        model(**options),
        n_components=(8,),
        n_train=1000,
        test=ArraySource(X_test, y_test),
    )
    mean, deviation = (X.mean(axis=0), X.std(axis=0)) if standardize else (0.0, 1.0)
    exact = ExactKernelRidge(Gaussian(1.0), alpha=0.1, fit_intercept=intercept)
    exact.fit((X - mean) / deviation, y)
    errors = exact.predict((X_test - mean) / deviation) - y_test
    assert found.trials[0].test_rmse == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-8)
    assert found.trials[0].relative_rmse == 1.0
    assert found.trials[0].kernel_error is None
    assert found.target_deviation == pytest.approx(np.sqrt(y_test.var(axis=0).mean()))


def test_the_linear_row_is_linear_ridge_fitted_by_hand(found):
    (X, y), (X_test, y_test) = rows(), rows(200, seed=1)
    linear = model(Linear()).fit(X, y)
    errors = linear.predict(X_test) - y_test
    assert found.trials[1].test_rmse == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-8)
    assert found.trials[1].relative_rmse > 2


def test_the_last_row_is_a_model_fitted_by_hand(found):
    (X, y), (X_test, y_test) = rows(), rows(200, seed=1)
    errors = model(n_components=1024).fit(X, y).predict(X_test) - y_test
    assert found.trials[-1].test_rmse == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-6)


def test_random_features_come_nearer_to_the_exact_model_the_more_there_are(found):
    features = found.trials[2:]
    apart = [abs(trial.relative_rmse - 1) for trial in features]
    assert apart[0] > apart[1] > apart[2]
    assert apart[2] < 0.1
    errors = [trial.kernel_error for trial in features]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 2 / np.sqrt(1024)


def test_ratios_are_over_the_error_of_the_exact_model(found):
    for trial in found.trials:
        assert trial.relative_rmse == trial.test_rmse / found.trials[0].test_rmse


def test_matrices_are_counted_by_their_order(found):
    sizes = [trial.matrix_bytes for trial in found.trials]
    assert sizes == [8 * order**2 for order in (300, 2, 8, 64, 1024)]


def test_a_comparison_is_json(found):
    said = json.loads(json.dumps(found.as_dict()))
    assert said["trials"][0]["method"] == "exact"
    assert said["kernel"] == {"name": "gaussian", "length_scale": 1.0}
    assert said["alpha"] == 0.1
    assert said["n_train"] == 300


def test_without_test_rows_a_fifth_is_held_out():
    found = compare(ArraySource(*rows(100)), model(), n_components=(8,))
    assert (found.n_train, found.n_test) == (80, 20)


def test_at_most_as_many_rows_are_fitted_as_asked_for():
    found = compare(ArraySource(*rows(1000)), model(), n_components=(8,), n_train=40)
    assert (found.n_train, found.n_test) == (40, 10)


def test_rows_are_fitted_or_tested_and_never_both():
    # Noise alone: whoever has seen the test rows predicts them.
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
    found = compare(ArraySource(X, y), model(Gaussian(0.01), alpha=1e-6), n_components=(512,))
    assert found.trials[0].test_rmse > 0.7 * found.target_deviation


def test_the_median_length_scale_is_resolved_once_for_all_models():
    found = compare(ArraySource(*rows()), model(Matern("median", nu=2.5)), n_components=(8, 16))
    assert found.kernel["name"] == "matern52"
    assert found.kernel["nu"] == 2.5
    assert 0.5 < found.kernel["length_scale"] < 5


def test_the_same_seed_gives_the_same_errors():
    first, second, other = (
        compare(ArraySource(*rows()), model(random_state=seed), n_components=(8,))
        for seed in (0, 0, 1)
    )
    errors = [[trial.test_rmse for trial in found.trials] for found in (first, second, other)]
    assert errors[0] == errors[1]
    assert errors[0] != errors[2]


def test_the_linear_kernel_is_refused():
    with pytest.raises(ParameterError, match="linear kernel has no random features"):
        compare(ArraySource(*rows()), model(Linear()))


def test_too_few_rows_are_refused():
    with pytest.raises(DataError, match="a comparison needs 10 rows, but there are 9"):
        compare(ArraySource(*rows(9)), model())


def test_no_number_of_features_is_refused():
    with pytest.raises(ParameterError, match="at least one number of features"):
        compare(ArraySource(*rows()), model(), n_components=())


@pytest.mark.parametrize("where", ["X", "y"])
def test_a_row_that_is_not_finite_is_named(where):
    X, y = rows(100)
    if where == "X":
        X[17, 1] = np.nan
    else:
        y[17] = np.inf
    with pytest.raises(DataError, match=r"1 of 100 rows .* row 17;"):
        compare(ArraySource(X, y), model(), n_components=(8,))


def test_rows_that_are_not_finite_can_be_skipped():
    X, y = rows(100)
    X[17, 1] = np.nan
    found = compare(ArraySource(X, y), model(on_bad_rows="skip"), n_components=(8,))
    assert np.isfinite(found.trials[0].test_rmse)
    assert found.n_train + found.n_test == 99
