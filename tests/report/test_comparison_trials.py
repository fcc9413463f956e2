"""Trials of a comparison: rows are fitted or tested, never both; runs are summed up by map."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from streamkern.errors import DataError, ParameterError
from streamkern.report.comparison_trials import (
    Comparison,
    Run,
    Trial,
    check_split,
    confidence_interval,
    sampled_split,
)
from streamkern.sources.arrays import ArraySource


def source(n, p=2, q=None):
    X = np.arange(n * p, dtype=float).reshape(n, p)
    return ArraySource(X, X[:, 0] if q is None else np.tile(X[:, :1], q))


def split(rows, test=None, n_train=4000, seed=0, *, skip=False):
    return sampled_split(rows, test, n_train, random_state=seed, skip_bad_rows=skip)


@pytest.mark.parametrize(
    ("n", "n_test", "n_train", "sizes"),
    [
        *((10, None, 4000, (8, 2)), (11, None, 4000, (8, 2)), (1000, None, 41, (41, 10))),
        *((50, None, 2, (2, 2)), (30, 7, 4000, (30, 7))),
    ],
)
def test_a_fifth_is_tested_unless_there_are_rows_to_test(n, n_test, n_train, sizes):
    test = None if n_test is None else source(n_test)
    drawn = split(source(n), test, n_train)
    assert (len(drawn.X), len(drawn.X_test)) == (len(drawn.y), len(drawn.y_test)) == sizes
    assert check_split(source(n), test, n_train, fewest=2) == sizes[0]


@pytest.mark.parametrize("q", [None, 1, 3])
def test_rows_are_fitted_or_tested_in_random_order_with_their_targets(q):
    drawn, other = split(source(100, q=q)), split(source(100, q=q), seed=1)
    assert sorted([*drawn.X[:, 0], *drawn.X_test[:, 0]]) == np.arange(0.0, 200.0, 2.0).tolist()
    assert drawn.y.shape == ((80,) if q is None else (80, q))
    assert np.array_equal(drawn.y.reshape(80, -1)[:, -1], drawn.X[:, 0])
    assert np.array_equal(drawn.y_test.reshape(20, -1)[:, -1], drawn.X_test[:, 0])
    assert (np.diff(drawn.X[:, 0]) < 0).any()
    assert np.array_equal(drawn.X, split(source(100, q=q)).X)
    assert not np.array_equal(drawn.X, other.X)


def test_skipped_rows_leave_a_fifth_of_the_others_to_test():
    X = np.arange(200.0).reshape(100, 2)
    X[:40, 1] = np.nan
    drawn = split(ArraySource(X, X[:, 0]), skip=True)
    assert (len(drawn.X), len(drawn.X_test)) == (48, 12)
    assert np.isfinite(drawn.X).all()
    X[:95] = np.nan
    with pytest.raises(DataError, match="95 of 100 rows hold NaN or infinite values, and 5 are"):
        split(ArraySource(X, np.arange(100.0)), skip=True)


@pytest.mark.parametrize(
    ("rows", "test", "n_train", "error", "sentence"),
    [
        (source(9), None, 99, DataError, "a comparison needs 10 rows to fit, but there are 9"),
        (source(30), source(1), 99, DataError, "needs 2 rows to test, but there are 1"),
        (source(100), None, 4, ParameterError, "must fit at least 5 rows, not 4; ask for more"),
        (source(30), source(30, p=3), 99, DataError, "must have 2 inputs and 1 targets"),
        (source(30), source(30, q=2), 99, DataError, "must have 2 inputs and 1 targets"),
    ],
)
def test_impossible_splits_are_refused_before_rows_are_read(rows, test, n_train, error, sentence):
    with pytest.raises(error, match=sentence):
        check_split(rows, test, n_train, fewest=5)


def run(seed, test_rmse, **values):
    given = {"alpha": 0.1, "cv_rmse": None, "loo_rmse": None, "kernel_error": 0.01}
    given |= {"precision_floor": None, "fit_seconds": 1.0, "predict_seconds": 0.1}
    given |= {"solver": "eigen", "matrix_bytes": 8 * 64**2}
    return Run(seed=seed, test_rmse=test_rmse, **given | values)


@pytest.mark.parametrize("values", [[1.0, 2.0], [5.0, 5.5, 4.0], [0.1, 0.2, 0.3, 0.4, 7.0]])
def test_the_interval_is_students(values):
    m, mean = len(values), math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (m - 1))
    expected = stats.t.interval(0.95, m - 1, loc=mean, scale=deviation / math.sqrt(m))
    assert confidence_interval(values) == pytest.approx(expected, rel=1e-12)
    assert confidence_interval(values[:1]) is None
    assert confidence_interval([None, None]) is None


def test_a_trial_holds_means_over_its_runs_and_the_median_penalty():
    runs = (
        run(3, 1.0, alpha=0.1, cv_rmse=2.0, kernel_error=0.1, fit_seconds=1.0),
        run(4, 2.0, alpha=10.0, cv_rmse=3.0, kernel_error=0.2, fit_seconds=2.0),
        run(5, 6.0, alpha=0.2, cv_rmse=7.0, kernel_error=0.6, fit_seconds=6.0),
    )
    trial = Trial.of("random features", runs, 1.5, n_components=64, map_name="iid")
    assert (trial.map, trial.n_components, trial.seeds) == ("iid", 64, (3, 4, 5))
    assert (trial.test_rmse, trial.relative_rmse, trial.cv_rmse) == (3.0, 2.0, 4.0)
    assert trial.kernel_error == pytest.approx(0.3)
    assert (trial.fit_seconds, trial.alpha, trial.loo_rmse) == (3.0, 0.2, None)
    assert trial.predict_seconds == pytest.approx(0.1)
    assert trial.matrix_bytes == 8 * 64**2
    assert trial.interval["test_rmse"] == confidence_interval([1.0, 2.0, 6.0])
    assert trial.interval["kernel_error"] == confidence_interval([0.1, 0.2, 0.6])
    assert trial.runs == runs


def test_a_single_run_has_no_interval_and_trials_are_found_by_their_maps():
    trials = [Trial.of("exact", [run(None, 2.0, kernel_error=None, loo_rmse=2.5)], 2.0)] + [
        Trial.of("random features", [run(0, 1.0)], 1.0, n_components=D, map_name=name)
        for name in ("iid", "orthogonal")
        for D in (8, 16)
    ]
    exact = trials[0]
    assert exact.interval == {"test_rmse": None, "kernel_error": None}
    assert (exact.map, exact.n_components, exact.seeds) == (None, None, ())
    assert (exact.relative_rmse, exact.loo_rmse, exact.kernel_error) == (1.0, 2.5, None)
    found = Comparison(tuple(trials), 9, 3, {"name": "gaussian"}, "cv", 1.0)
    lines = {name: [trial.n_components for trial in each] for name, each in found.by_map().items()}
    assert lines == {"iid": [8, 16], "orthogonal": [8, 16]}
    assert json.loads(json.dumps(found.as_dict()))["trials"][1]["map"] == "iid"
