"""Rows dealt to folds, and the statistic of every fold."""

from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.features import Identity
from streamkern.sources import Shard
from streamkern.statistics import FoldStatistics, Moments, RowFolds, block_folds, shard_folds

N, P, K = 47, 3, 5
every_number = pytest.mark.parametrize("K", [1, 2, 3, 5, 10])


def shards(lengths) -> tuple[Shard, ...]:
    ends = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    return tuple(Shard(i, a, b) for i, (a, b) in enumerate(pairwise(ends)))


def rules(n_folds=K, seed=0):
    """Every rule with the fold that the formula gives every row."""
    cut, n_rows = shards([7, 1, 9, 2, 3, 8, 4, 5, 6, 2]), N
    of_shards = naive.folds_of_shards([shard.n_rows for shard in cut], n_folds, seed)
    return {
        "rows": (
            RowFolds(n_folds, seed),
            [naive.fold_of_row(i, n_folds, seed) for i in range(n_rows)],
        ),
        "shards": (
            shard_folds(cut, n_folds, seed),
            [fold for shard, fold in zip(cut, of_shards, strict=True) for _ in range(shard.n_rows)],
        ),
        "blocks": (
            block_folds(n_rows, n_folds),
            [naive.fold_of_block(i, n_rows, n_folds) for i in range(n_rows)],
        ),
    }


KINDS = list(rules())
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@every_number
@pytest.mark.parametrize("seed", [0, 1, 2**32])
def test_every_row_is_in_the_fold_of_the_formula(kind, K, seed):
    rule, expected = rules(n_folds=K, seed=seed)[kind]
    assert rule.at(np.arange(N)).tolist() == expected
    assert rule.n_folds == K


@every_number
@naive.quick
@given(group=st.integers(0, 10**15), seed=st.integers(0, 2**40))
def test_each_group_of_as_many_rows_as_folds_has_one_in_every_fold(K, group, seed):
    folds = RowFolds(K, seed).at(np.arange(group * K, (group + 1) * K))
    assert sorted(folds.tolist()) == list(range(K))


def table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, P)), rng.standard_normal((N, 2)), rng.random(N) + 0.1


def of_moments(rule) -> FoldStatistics:
    empty = Moments(Identity().draw(P), 2, precision="double", feature_shift=np.ones(P))
    return FoldStatistics(rule, empty)


def assert_folds(statistic, expected, X, y, s) -> None:
    """Every fold has the moments of its rows, by the formula."""
    folds = np.array(expected)
    assert sorted(statistic.parts) == sorted(set(expected))
    for fold, part in statistic.parts.items():
        rows = folds == fold
        assert part.n_rows == rows.sum()
        centred = part.centred()
        for name, values in naive.moments(X[rows], y[rows], s[rows], intercept=True).items():
            assert_close(naive.array_of(centred, name), values, size=20.0 * N)


@every_kind
@naive.quick
@given(cuts=naive.cuts(N), chance=st.randoms(use_true_random=False))
def test_every_fold_has_the_statistic_of_its_rows_however_they_are_cut(kind, cuts, chance):
    X, y, s = table()
    rule, expected = rules()[kind]
    cut = naive.blocks(X, y, cuts, s)
    for statistic in (
        naive.accumulated(of_moments(rule), cut),
        naive.merged(of_moments(rule), cut, chance),
    ):
        assert_folds(statistic, expected, X, y, s)


@every_kind
def test_rows_that_were_left_out_change_the_fold_of_no_other(kind):
    X, y, s = table()
    rule, expected = rules()[kind]
    good = np.random.default_rng(1).random(N) < 0.7
    cut = [block.where(good[block.places()]) for block in naive.blocks(X, y, [3, 20], s)]
    kept = [fold for fold, is_good in zip(expected, good, strict=True) if is_good]
    statistic = naive.accumulated(of_moments(rule), cut)
    assert_folds(statistic, kept, X[good], y[good], s[good])


def test_a_fold_without_rows_has_no_statistic():
    X, y, _ = table()
    rule, expected = rules()["blocks"]
    cut = naive.blocks(X, y, [12])
    statistic = naive.accumulated(of_moments(rule), cut[:1])
    assert sorted(statistic.parts) == sorted(set(expected[:12])) == [0, 1]
    both = statistic.merge(naive.accumulated(of_moments(rule), cut[1:]))
    assert sorted(both.parts) == list(range(K))


def test_statistics_with_other_numbers_of_folds_do_not_merge():
    left, right = (of_moments(RowFolds(k, 0)) for k in (3, 4))
    with pytest.raises(ParameterError, match="only with as many folds, not 3 and 4; compute both"):
        left.merge(right)
