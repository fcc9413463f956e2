"""Bottom-k sampling: which rows, and how evenly."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamkern.sources import Block
from streamkern.statistics import RowSample

N = 60


def rows(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    X = np.arange(2.0 * n).reshape(n, 2)
    return X, -X[:, :1]


def assert_holds(sample, places, X, y) -> None:
    assert sample.places.tolist() == list(places)
    assert np.array_equal(sample.X, X[sample.places])
    assert np.array_equal(sample.y, y[sample.places])


@pytest.mark.parametrize("k", [1, 7, 59, 60, 100])
@naive.quick
@given(cuts=naive.cuts(N), seed=st.integers(0, 2**40), chance=st.randoms(use_true_random=False))
def test_any_cuts_and_merges_hold_the_rows_of_the_smallest_hashes(k, cuts, seed, chance):
    X, y = rows()
    cut = naive.blocks(X, y, cuts)
    expected = naive.smallest_hashes(range(N), k, seed)
    assert_holds(naive.accumulated(RowSample(k, seed), cut), expected, X, y)
    assert_holds(naive.merged(RowSample(k, seed), cut, chance), expected, X, y)


@pytest.mark.parametrize("k", [1, 2, 7, 59])
@pytest.mark.parametrize("way", [1, -1], ids=["ascending", "descending"])
def test_rows_may_come_in_the_order_of_their_hashes(k, way):
    X, y = rows()
    places = np.array(naive.smallest_hashes(range(N), N, 3))[::way]
    cut = [Block(X[[place]], y[[place]], 0, None, np.array([place])) for place in places]
    expected = naive.smallest_hashes(range(N), k, 3)
    assert_holds(naive.accumulated(RowSample(k, 3), cut), expected, X, y)


def test_rows_that_were_left_out_are_not_sampled_and_do_not_move_the_others():
    X, y = rows()
    kept = np.flatnonzero(np.arange(N) % 3)
    block = Block(X[kept], y[kept], 0, None, kept)
    sample = naive.accumulated(RowSample(9, 5), [block])
    assert_holds(sample, naive.smallest_hashes(kept.tolist(), 9, 5), X, y)


def test_places_beyond_32_bits_are_hashed_whole():
    X, y = rows(20)
    sample = naive.accumulated(RowSample(5, 1), [Block(X, y, 2**40)])
    assert sample.places.tolist() == naive.smallest_hashes(range(2**40, 2**40 + 20), 5, 1)


def test_every_row_is_as_likely_as_any_other():
    n, k, seeds = 100, 10, 1000
    X, y = rows(n)
    counts = np.zeros(n)
    for seed in range(seeds):
        counts[naive.accumulated(RowSample(k, seed), naive.blocks(X, y)).places] += 1
    assert counts.sum() == k * seeds
    # Of k among n without replacement, each count has the variance seeds k/n (1 - k/n).
    share = k / n
    chi2 = ((counts - seeds * share) ** 2).sum() / (seeds * share * (1 - share)) * (n - 1) / n
    assert 1e-3 < stats.chi2(n - 1).cdf(chi2) < 1 - 1e-3


def test_neighbours_are_sampled_together_no_more_often_than_others():
    n, k, seeds = 50, 10, 1500
    X, y = rows(n)
    together = 0
    for seed in range(seeds):
        places = np.sort(naive.accumulated(RowSample(k, seed), naive.blocks(X, y)).places)
        together += int((np.diff(places) == 1).sum())
    expected = seeds * (n - 1) * k * (k - 1) / (n * (n - 1))
    assert abs(together - expected) < 4 * np.sqrt(expected)


def test_the_sample_keeps_the_type_of_the_rows():
    X, y = rows()
    sample = naive.accumulated(RowSample(5), naive.blocks(X.astype(np.float32), y))
    assert sample.X.dtype == np.float32
