"""What every statistic promises, and several statistics in one reading.

A new statistic is one row in `STATISTICS`.
"""

import copy
import pickle
from dataclasses import replace
from functools import partial
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from streamkern.features import Identity, RandomFourierFeatures, Standardized, Standardizer
from streamkern.kernels import Gaussian
from streamkern.predict.deviation import Deviation, LeaveOneOut
from streamkern.predict.evaluation import Evaluation, FoldPredictors, PredictionErrors
from streamkern.predict.gradients import GradientOuterProduct
from streamkern.predict.predictor import Predictor
from streamkern.registry import extension
from streamkern.runtime.scratch import Scratch
from streamkern.statistics import (
    ColumnStatistics,
    Composite,
    FoldStatistics,
    Moments,
    RowFolds,
    RowSample,
    Triangle,
)

N, P, Q = 30, 3, 3


def fourier() -> RandomFourierFeatures:
    return RandomFourierFeatures(Gaussian(1.0), 6).draw(P)


def predictor() -> Predictor:
    return Predictor(fourier(), np.arange(6.0 * Q).reshape(6, Q) % 5, np.zeros(Q))


def by_fold() -> FoldPredictors:
    return FoldPredictors(RowFolds(2, 1), {0: predictor(), 1: replace(predictor(), flat=False)})


def deviation() -> Deviation:
    weights, noise = np.ones((6, 1)), np.ones(Q)
    return Deviation(fourier(), np.zeros(6), 0.3 * np.eye(6), weights, 0.1, noise, np.ones(1))


def gradients() -> GradientOuterProduct:
    standardizer = Standardizer(np.arange(P), np.zeros(P), np.ones(P), P)
    return GradientOuterProduct(
        replace(predictor(), feature_map=Standardized(standardizer, fourier()))
    )


def of_ensemble(name: str, *more: Any) -> Any:
    module = extension("classes", "ensemble")
    ensemble = module.Ensemble("gentle", Q).grown(predictor(), module.Step(0.1, 0.9))
    return getattr(module, name)(ensemble, *more)


def of_classes(factors: Any = None) -> Any:
    rules, labels = extension("classes", "class_rule"), extension("classes", "class_labels")
    rule = rules.ClassRule(labels.Classes(np.arange(Q)), rules.PlainRule())
    return extension("classes", "class_errors").ClassErrors(rule, factors)


def scores() -> Any:
    return extension("classes", "class_errors").ScoreTable(np.zeros(Q), np.ones(Q))


def bins() -> Any:
    counts = extension("report", "pair_counts").PairCounts
    return counts.about(np.zeros(2), np.ones(2), np.ones(2))


STATISTICS: dict[str, Any] = {
    "columns": lambda: ColumnStatistics(P + Q),
    "sample": lambda: RowSample(7, 3),
    "moments": lambda: Moments(fourier(), Q, precision="double", feature_shift=np.ones(6)),
    "moments-single": lambda: Moments(Identity().draw(P), Q),
    "errors": lambda: Evaluation(predictor(), PredictionErrors(Q), bins()),
    "scores": lambda: Evaluation(by_fold(), scores()),
    "classes": lambda: Evaluation(by_fold(), of_classes(np.arange(1.0, Q + 1))),
    "leave-one-out": lambda: Evaluation(predictor(), LeaveOneOut(deviation(), 4)),
    "gradients": gradients,
    "round": lambda: Evaluation(predictor(), of_ensemble("RoundErrors", 0.1)),
    "stages": lambda: of_ensemble("StagedErrors"),
    "folds": lambda: FoldStatistics(RowFolds(3, 0), Moments(fourier(), Q)),
    "together": lambda: Composite(ColumnStatistics(P + Q), RowSample(7), Moments(fourier(), Q)),
}
every_statistic = pytest.mark.parametrize("made", list(STATISTICS.values()), ids=list(STATISTICS))


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, P)), rng.standard_normal((N, Q)), rng.random(N) + 0.1


def said(sums: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """Every number that `detached` gives, by name."""
    if isinstance(sums, (int, float, np.ndarray)):
        return {prefix: np.array(sums)}
    if isinstance(sums, Triangle):
        return {prefix: sums.dense()}
    parts = sums.items() if isinstance(sums, dict) else enumerate(sums or ())
    numbers = [said(part, f"{prefix}.{name}") for name, part in parts]
    return {name: value for each in numbers for name, value in each.items()}


def assert_alike(one: Any, two: Any, *, exact: bool = False) -> None:
    left, right = said(one.detached()), said(two.detached())
    assert left.keys() == right.keys()
    for name, values in left.items():
        if exact or values.dtype.kind in "iub":
            assert np.array_equal(values, right[name]), name
        else:
            size = max(10.0 * N, np.abs(right[name]).max(initial=0.0))
            assert_close(values, right[name], dtype=np.float32, size=size)


assert_same = partial(assert_alike, exact=True)


@every_statistic
@naive.quick
@given(cuts=naive.cuts(N), chance=st.randoms(use_true_random=False))
def test_what_is_said_does_not_depend_on_cuts_or_the_order_of_merges(made, cuts, chance):
    X, y, s = rows()
    whole = naive.accumulated(made(), naive.blocks(X, y, [], s))
    cut = naive.blocks(X, y, cuts, s)
    assert_alike(naive.accumulated(made(), cut), whole)
    assert_alike(naive.merged(made(), cut, chance), whole)


@every_statistic
def test_zero_is_the_statistic_of_no_rows_whatever_it_was_made_from(made):
    X, y, _ = rows()
    statistic = naive.accumulated(made(), naive.blocks(X, y))
    assert_same(statistic.zero(), made().zero())
    assert_same(naive.accumulated(statistic, naive.blocks(X, y)), statistic)


@every_statistic
def test_sums_of_no_rows_have_the_dtype_and_shape_of_those_of_rows(made):
    some = said(naive.accumulated(made(), naive.blocks(*rows()[:2])).detached())
    for name, nothing in said(made().zero().detached()).items():
        values = some[name]
        assert nothing.dtype == values.dtype, name
        if made is STATISTICS["leave-one-out"]:  # whose deviation only workers have
            assert nothing.shape in {(), (0,), (0, 0)}, name
        elif 0 in nothing.shape:  # grows with the rows
            assert nothing.ndim == values.ndim, name
        else:
            assert nothing.shape == values.shape, name


@every_statistic
def test_empty_blocks_change_nothing(made):
    X, y, s = rows()
    statistic = naive.accumulated(made(), naive.blocks(X, y, [9], s))
    empty = naive.blocks(X[:0], y[:0], [], s[:0])
    padded = naive.accumulated(made(), [*empty, *naive.blocks(X, y, [9], s), *empty])
    assert_same(padded, statistic)


@every_statistic
def test_merging_leaves_both_as_they_are_and_zero_changes_nothing(made):
    cut = naive.blocks(*rows()[:2], [9])
    left, right = (naive.accumulated(made(), [block]) for block in cut)
    for zero in (made().zero(), naive.accumulated(made(), [])):
        assert_same(zero.merge(right), right)
        assert_same(right.merge(zero), right)
        parts = left, right, zero
        before = copy.deepcopy(parts)
        for both in (left.merge(right), right.merge(zero), zero.merge(right)):
            both.update(cut)
        for part, as_before in zip(parts, before, strict=True):
            assert_same(part, as_before)


def test_errors_of_classes_are_without_the_factors_of_their_weights():
    X, y, _ = rows()
    factors, codes = np.arange(1.0, Q + 1), y.argmax(axis=1)
    weighted = Evaluation(predictor(), of_classes(factors))
    weighted.update(naive.blocks(X, y, [9], factors[codes]))
    plain = naive.accumulated(Evaluation(predictor(), of_classes()), naive.blocks(X, y, [9]))
    assert_alike(weighted, plain)
    assert np.array_equal(weighted.measures[0].confusion.sum(axis=1), np.bincount(codes))


@every_statistic
def test_updates_add_up_leave_the_rows_and_need_each_block_no_longer_than_its_turn(made):
    table = rows()
    before, cut = copy.deepcopy(table), naive.blocks(*table[:2], [9, 20], table[2])
    once, twice = naive.accumulated(made(), cut), naive.accumulated(made(), cut[:1])
    assert all(np.array_equal(a, b) for a, b in zip(table, before, strict=True))
    twice.update(cut[1:])
    reused = made().zero()
    reused.update(naive.overwritten(cut))
    for other in (twice, reused):
        assert_same(other, once)


def test_statistics_together_say_what_each_says_alone():
    X, y, s = rows()
    cut = naive.blocks(X, y, [9, 9, 20], s)
    together = naive.accumulated(Composite(*(made() for made in STATISTICS.values())), cut)
    for part, made in zip(together.parts, STATISTICS.values(), strict=True):
        assert_same(part, naive.accumulated(made(), cut))


def test_different_numbers_of_statistics_do_not_merge():
    with pytest.raises(ValueError, match="zip"):
        Composite(RowSample(3)).merge(Composite(RowSample(3), RowSample(3)))


@every_statistic
def test_sums_travel_without_parameters_and_are_whole_again_with_them(made):
    statistic = naive.accumulated(made(), naive.blocks(*rows()[:2], [9]))
    sent = pickle.loads(pickle.dumps(statistic.detached()))  # noqa: S301
    assert_same(pickle.loads(pickle.dumps(made())).attached(sent), statistic)  # noqa: S301
    assert_same(made().attached(sent).merge(made().zero()), statistic)


def test_a_map_does_not_travel_with_the_sums():
    large = Moments(RandomFourierFeatures(Gaussian(1.0), 64).draw(5000), Q)
    folds = FoldStatistics(RowFolds(3, 0), large)
    folds.update(naive.blocks(np.ones((6, 5000)), np.ones((6, Q))))
    assert len(pickle.dumps(large)) > 1_000_000
    assert len(pickle.dumps(Composite(folds, large).detached())) < 300_000


@every_statistic
def test_lent_memory_is_used_again_and_not_kept(made):
    cut = naive.blocks(*rows()[:2], [9, 20])
    lent, alone = made().zero(), naive.accumulated(made(), cut)
    lent.scratch = Scratch()
    lent.update(cut)
    lent.scratch = None
    assert_same(lent, alone)
    assert b"Scratch" not in pickle.dumps(lent.detached())
