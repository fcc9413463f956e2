"""Rows to fit and rows to test: drawn once, never the same row for both."""

from __future__ import annotations

import numpy as np
import pytest

from streamkern.errors import DataError, ParameterError
from streamkern.report.comparison_trials import check_split, sampled_split
from streamkern.sources.arrays import ArraySource


def source(n, p=2, q=None):
    X = np.arange(n * p, dtype=float).reshape(n, p)
    return ArraySource(X, X[:, 0] if q is None else np.tile(X[:, :1], q))


def split(rows, test=None, n_train=4000, seed=0, *, skip=False):
    return sampled_split(rows, test, n_train, random_state=seed, skip_bad_rows=skip)


@pytest.mark.parametrize(
    ("n", "n_train", "sizes"),
    [
        (10, 4000, (8, 2)),
        (11, 4000, (8, 2)),
        (100, 4000, (80, 20)),
        (1000, 40, (40, 10)),
        (1000, 41, (41, 10)),
        (50, 2, (2, 2)),
    ],
)
def test_a_fifth_is_held_out(n, n_train, sizes):
    drawn = split(source(n), n_train=n_train)
    assert (len(drawn.X), len(drawn.X_test)) == (len(drawn.y), len(drawn.y_test)) == sizes
    assert check_split(source(n), None, n_train, fewest=2) == sizes[0]


def test_rows_are_fitted_or_tested_and_never_both():
    drawn = split(source(100))
    assert sorted([*drawn.X[:, 0], *drawn.X_test[:, 0]]) == np.arange(0.0, 200.0, 2.0).tolist()
    assert np.array_equal(drawn.y, drawn.X[:, 0])
    assert np.array_equal(drawn.y_test, drawn.X_test[:, 0])


def test_rows_come_in_random_order_and_the_seed_decides_which():
    first, again, other = (split(source(200), seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)
    assert (np.diff(first.X[:, 0]) < 0).any()


def test_test_rows_of_their_own_leave_all_others_to_fit():
    drawn = split(source(30), source(7))
    assert (len(drawn.X), len(drawn.X_test)) == (30, 7)
    assert check_split(source(30), source(7), 4000, fewest=5) == 30


@pytest.mark.parametrize("q", [None, 1, 3])
def test_targets_keep_their_shape(q):
    drawn = split(source(50, q=q))
    assert drawn.y.shape == ((40,) if q is None else (40, q))


def test_skipped_rows_leave_a_fifth_of_the_others_to_test():
    X = np.arange(200.0).reshape(100, 2)
    X[:40, 1] = np.nan
    drawn = split(ArraySource(X, X[:, 0]), skip=True)
    assert (len(drawn.X), len(drawn.X_test)) == (48, 12)
    assert np.isfinite(drawn.X).all()


def test_too_few_rows_are_refused_before_any_is_read():
    with pytest.raises(DataError, match="a comparison needs 10 rows to fit, but there are 9"):
        check_split(source(9), None, 4000, fewest=2)
    with pytest.raises(DataError, match="a comparison needs 2 rows to test, but there are 1"):
        check_split(source(30), source(1), 4000, fewest=2)


def test_fewer_rows_than_a_fit_needs_are_refused():
    with pytest.raises(ParameterError, match="must fit at least 5 rows, not 4; ask for more"):
        check_split(source(100), None, 4, fewest=5)


@pytest.mark.parametrize("other", [{"p": 3}, {"q": 2}])
def test_test_rows_of_another_kind_are_refused(other):
    with pytest.raises(DataError, match="the test rows must have 2 inputs and 1 targets"):
        check_split(source(30), source(30, **other), 4000, fewest=2)


def test_too_few_rows_that_are_finite_are_refused():
    X = np.full((100, 2), np.nan)
    X[:5] = np.arange(10.0).reshape(5, 2)
    with pytest.raises(DataError, match="95 of 100 rows hold NaN or infinite values, and 5 are"):
        split(ArraySource(X, np.arange(100.0)), skip=True)
