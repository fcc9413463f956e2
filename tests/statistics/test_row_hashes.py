"""Rows known again by their values, and sampled by their places, however they were cut."""

import struct
from collections import Counter

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkern.errors import ParameterError
from streamkern.sources import Block
from streamkern.statistics import RowFolds, RowIndex, RowSample

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
N = 60


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, (n, 3)).astype(float), rng.standard_normal((n, 2))


def index_of(X, y, weights=None, rule=None):
    blocks = naive.blocks(X, y, weights=weights)
    return naive.accumulated(RowIndex(rule), blocks)


def hash_of(values):
    """The hash as it is defined, in whole numbers of Python."""
    mixed, total = naive.split_mixed, 0
    for j, value in enumerate(values, start=1):
        (word,) = struct.unpack("<Q", struct.pack("<d", value + 0.0))
        total += (mixed((j * GOLDEN) & MASK) | 1) * mixed(word)
    return mixed(total & MASK)


def test_the_hash_is_the_one_that_files_hold():
    X, y = rows()
    weights = np.random.default_rng(1).random(len(X))
    expected = [hash_of([*x, *t, s]) for x, t, s in zip(X, y, weights, strict=True)]
    assert index_of(X, y, weights).hashes.tolist() == expected


def test_rows_are_known_by_value_whatever_they_are_stored_as():
    X, y = rows()
    expected = index_of(X, y, np.ones(len(X))).hashes.tolist()
    for kind in (np.float32, np.float64, np.int8, np.int64, np.uint16):
        assert index_of(X.astype(kind), y).hashes.tolist() == expected
    assert index_of(np.where(X == 0, -0.0, X), y).hashes.tolist() == expected


def test_a_value_in_another_place_makes_another_row():
    X = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 1.0, 2.0], [1.0, 2.0, 1e-300]])
    y = np.zeros((4, 1))
    y[3] = 1e-300
    assert len(set(index_of(X, y).hashes.tolist())) == 4


def test_small_whole_numbers_do_not_collide_and_fill_every_bit():
    side = np.arange(48.0)
    X = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)
    hashes = index_of(X, np.zeros((len(X), 1))).hashes
    assert len(np.unique(hashes)) == len(X)
    bits = (hashes[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(len(X))


@naive.quick
@given(cuts=naive.cuts(60), chance=st.randoms(use_true_random=False))
@pytest.mark.parametrize("rule", [None, RowFolds(3, 7)])
def test_any_cuts_and_any_order_give_the_same_index(rule, cuts, chance):
    X, y = rows()
    whole = index_of(X, y, rule=rule).in_order()
    blocks = list(naive.blocks(X, y, cuts))
    parts = naive.merged(RowIndex(rule), blocks, chance).in_order()
    assert parts.hashes.tolist() == whole.hashes.tolist()
    assert parts.labels.tolist() == whole.labels.tolist()


def test_places_are_kept_without_a_rule_and_folds_with_one():
    X, y = rows(5)
    block = Block(X, y, 0, rows=np.array([3, 10, 11, 12, 40]))
    by_place, by_fold = RowIndex(), RowIndex(RowFolds(3, 7))
    by_place.update([block])
    by_fold.update([block])
    assert by_place.labels.tolist() == [3, 10, 11, 12, 40]
    assert by_fold.labels.tolist() == RowFolds(3, 7).at(block.places()).tolist()


@pytest.mark.parametrize(("n_folds", "n_bytes"), [(1, 1), (5, 1), (256, 1), (257, 2)])
def test_a_fold_takes_as_few_bytes_as_it_can(n_folds, n_bytes):
    X, y = rows()
    assert index_of(X, y, rule=RowFolds(n_folds, 0)).labels.itemsize == n_bytes


small = st.lists(st.integers(0, 6), max_size=12)


@naive.quick
@given(held=small, asked=small)
def test_every_row_is_found_as_often_as_it_is_there(held, asked):
    held, asked = np.sort(held).astype(np.uint64), np.sort(asked).astype(np.uint64)
    index = RowIndex.of(held, np.arange(len(held)))
    positions = index.positions(asked)
    found = positions[positions >= 0]
    assert len(set(found.tolist())) == len(found)
    assert held[found].tolist() == asked[positions >= 0].tolist()
    both = Counter(held.tolist()) & Counter(asked.tolist())
    assert Counter(asked[positions >= 0].tolist()) == both


def test_the_first_of_equal_rows_is_found_first():
    index = RowIndex.of(np.array([4, 9, 9, 9], dtype=np.uint64), np.arange(4))
    assert index.positions(np.array([9, 9], dtype=np.uint64)).tolist() == [1, 2]


@pytest.mark.parametrize("other", [RowIndex(), RowIndex(RowFolds(4, 0))])
def test_indices_of_another_kind_do_not_merge(other):
    with pytest.raises(ParameterError, match="merge only with as many folds each, or places"):
        RowIndex(RowFolds(3, 0)).merge(other)


# Samples: which rows, and how evenly.


def numbered(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    X = np.arange(2.0 * n).reshape(n, 2)
    return X, -X[:, :1]


def assert_holds(sample, places, X, y) -> None:
    assert sample.places.tolist() == list(places)
    assert np.array_equal(sample.X, X[sample.places])
    assert np.array_equal(sample.y, y[sample.places])
    assert sample.X.dtype == X.dtype


@pytest.mark.parametrize("k", [1, 7, 59, 60, 100])
@naive.quick
@given(cuts=naive.cuts(N), seed=st.integers(0, 2**40), chance=st.randoms(use_true_random=False))
def test_any_cuts_and_merges_hold_the_rows_of_the_smallest_hashes(k, cuts, seed, chance):
    X, y = (each.astype(np.float32 if seed % 2 else float) for each in numbered())
    cut = naive.blocks(X, y, cuts)
    expected = naive.smallest_hashes(range(N), k, seed)
    assert_holds(naive.accumulated(RowSample(k, seed), cut), expected, X, y)
    assert_holds(naive.merged(RowSample(k, seed), cut, chance), expected, X, y)


def test_rows_that_were_left_out_are_not_sampled_and_do_not_move_the_others():
    X, y = numbered()
    kept = np.flatnonzero(np.arange(N) % 3)
    block = Block(X[kept], y[kept], 0, None, kept)
    sample = naive.accumulated(RowSample(9, 5), [block])
    assert_holds(sample, naive.smallest_hashes(kept.tolist(), 9, 5), X, y)


def test_places_beyond_32_bits_are_hashed_whole():
    X, y = numbered(20)
    sample = naive.accumulated(RowSample(5, 1), [Block(X, y, 2**40)])
    assert sample.places.tolist() == naive.smallest_hashes(range(2**40, 2**40 + 20), 5, 1)
