"""Column statistics against naive loops."""

import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.sources import Block
from streamkern.statistics import ColumnStatistics

FIELDS = ["weight", "mean", "variance", "minimum", "maximum", "n_nonfinite"]
N = 40


def rows(n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((n, 2)), 5 + rng.random((n, 1))], axis=1)
    return X, rng.standard_normal((n, 2)), rng.random(n) + 0.1


def spoilt() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, s = rows()
    X[7, 0], X[31, 2], X[31, 1], y[12, 0] = np.nan, np.inf, -np.inf, np.nan
    return X, y, s


def assert_says(statistic, X, y, s, *, size=10.0) -> None:
    columns = np.concatenate([X, y], axis=1).T.tolist()
    expected = [naive.column(column, s.tolist()) for column in columns]
    for field in FIELDS:
        values = [said[field] for said in expected]
        assert_close(getattr(statistic, field), values, size=size * (s.sum() if s.size else 1.0))


@pytest.mark.parametrize("made", [rows, spoilt], ids=["finite", "spoilt"])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
@naive.quick
@given(cuts=naive.cuts(N), chance=st.randoms(use_true_random=False))
def test_any_cuts_and_merges_say_what_the_formulas_say(made, weighted, cuts, chance):
    X, y, s = made()
    cut = naive.blocks(X, y, cuts, s if weighted else None)
    s = s if weighted else np.ones(N)
    assert_says(naive.accumulated(ColumnStatistics(5), cut), X, y, s)
    assert_says(naive.merged(ColumnStatistics(5), cut, chance), X, y, s)


def test_a_block_longer_than_is_worked_on_at_once_says_what_the_formulas_say():
    X, y, s = rows(2500)
    assert_says(naive.accumulated(ColumnStatistics(5), naive.blocks(X, y, [], s)), X, y, s)


@pytest.mark.parametrize("cuts", [[], [8], [7], [31], [13, 13, 32], list(range(1, N))], ids=str)
def test_bad_rows_are_counted_and_the_first_is_named(cuts):
    X, y, _ = spoilt()
    cut = naive.blocks(X, y, cuts)
    parts = [naive.accumulated(ColumnStatistics(5), [block]) for block in cut]
    backwards = parts[-1]
    for part in reversed(parts[:-1]):
        backwards = backwards.merge(part)
    for statistic in (naive.accumulated(ColumnStatistics(5), cut), backwards):
        assert statistic.n_bad_rows == 3
        assert statistic.first_bad_row == 7
        assert statistic.n_nonfinite.tolist() == [1, 1, 1, 1, 0]


def test_the_first_bad_row_is_a_place_in_the_source():
    X, y, _ = spoilt()
    statistic = naive.accumulated(ColumnStatistics(5), [Block(X, y, 1000)])
    assert statistic.first_bad_row == 1007
    places = np.arange(0, 10 * N, 10)
    statistic = naive.accumulated(ColumnStatistics(5), [Block(X, y, 0, None, places)])
    assert statistic.first_bad_row == 70


@naive.quick
@given(cuts=naive.cuts(1000), chance=st.randoms(use_true_random=False))
def test_a_spread_of_one_about_a_mean_of_a_thousand_million_is_kept(cuts, chance):
    X = 1e9 + np.random.default_rng(2).standard_normal((1000, 2))
    expected = [naive.column(column, [1.0] * 1000) for column in X.T.tolist()]
    statistic = naive.merged(ColumnStatistics(2), naive.blocks(X, X[:, :0], cuts), chance)
    # Each mean of a thousand is known to a few steps of 1e-7.
    assert_close(statistic.variance, [said["variance"] for said in expected], steps=8, size=1e9)
    assert_close(statistic.mean, [said["mean"] for said in expected], steps=8)


def test_a_constant_column_is_found_by_its_range_within_a_tolerance():
    X = np.full((1000, 8), [0.0, 0.1, -1e9, 1e300, 3.0, np.nan, 0.1, 0.1])
    X[500, 6:] = np.nextafter(0.1, 1), 0.2
    statistic = naive.accumulated(ColumnStatistics(8), naive.blocks(X, X[:, :0], [3, 333]))
    assert statistic.constant(0.0).tolist() == [True] * 6 + [False] * 2
    assert statistic.constant(1e-12).tolist() == [True] * 7 + [False]
    assert statistic.weight[5] == statistic.variance[5] == 0.0  # of no finite value


def test_values_whose_squares_overflow_have_no_finite_variance_and_raise_nothing():
    X = np.array([[1e200], [-1e200], [0.0]])
    statistic = naive.accumulated(ColumnStatistics(1), naive.blocks(X, X[:, :0], [1]))
    assert not math.isfinite(statistic.variance[0])
    assert statistic.maximum.tolist() == [1e200]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32, np.bool_])
def test_inputs_of_any_real_type_are_taken_as_their_values(dtype):
    X = np.array([[0, 1], [1, 1], [1, 0]] * 50, dtype=dtype) * dtype(1)
    statistic = naive.accumulated(ColumnStatistics(2), naive.blocks(X, np.zeros((150, 0))))
    assert_says(statistic, X.astype(float), np.zeros((150, 0)), np.ones(150))


def test_statistics_of_other_columns_are_refused():
    with pytest.raises(ParameterError, match="statistics of 2 and 3 columns do not merge"):
        ColumnStatistics(2).merge(ColumnStatistics(3))


@pytest.mark.parametrize(
    ("values", "constant"),
    [
        (np.arange(2000, 2016, dtype=np.float16), False),
        (np.arange(20150100, 20150114, 2, dtype=np.float32), False),
        (np.array([4e15, 4e15 + 1]), False),
        (np.array([1 - 1e-7, 1.0, 1 + 1e-7], dtype=np.float32), True),
        (np.array([2015.0, 2015.0], dtype=np.float16), True),
    ],
)
def test_whole_numbers_differ_however_large_they_are(values, constant):
    statistic = ColumnStatistics(1)
    statistic.update([Block(values[:, None], np.empty((len(values), 0)), 0)])
    assert statistic.constant(8e-7 if values.dtype == np.float32 else 8e-3).tolist() == [constant]
