"""Which penalties are tried, what a criterion says of them, and which is chosen."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import quick
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.solve import Spectrum
from streamkern.solve.cross_validation import HeldOut
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_grid import CRITERIA, checked_penalty, default_grid, even_grid


def test_a_penalty_is_a_criterion_a_float_or_an_ascending_grid_of_floats():
    for word in CRITERIA:
        assert checked_penalty(word) == word
    for number in (0, 2.5, np.float32(0.5), np.int64(3), np.array(0.25)):
        found = checked_penalty(number)
        assert (type(found), found) == (float, float(number))
    for kind in (list, tuple, np.array):
        grid = checked_penalty(kind((3.0, 1e-300, 0.5, 1e300)))
        assert grid == (1e-300, 0.5, 3.0, 1e300)
        assert {type(alpha) for alpha in grid} == {float}


NOT_PENALTIES = {
    "another word": ("CV", "must be 'cv', 'guarded', .* 'loo' or numbers, not 'CV'"),
    "a number as a word": ("0.1", "must be 'cv', 'guarded', .* 'loo' or numbers, not"),
    "negative": (-1.0, r"at least 0, not -1\.0"),
    "not a number": (math.nan, "at least 0, not nan"),
    "none": (None, "at least 0, not None"),
    "a set": ({1.0, 2.0}, "at least 0, not {"),
    "a negative in a grid": ([1.0, -2.0], r"at least 0, not -2\.0"),
    "not a number in a grid": ([1.0, math.nan], "at least 0, not nan"),
    "a word in a grid": ([1.0, "cv"], "at least 0, not 'cv'"),
    "a grid in a grid": ([[1.0, 2.0], [3.0, 4.0]], r"at least 0, not \[1\.0, 2\.0\]"),
    "nought in a grid": ([0.0, 1.0], "positive numbers only; leave out the 0, or give it alone"),
    "an empty grid": ([], "must hold a number at least"),
    "a number twice": ([1.0, 0.5, 2.0, 0.5], "alpha 0.5 is in the grid twice; name every"),
}


@pytest.mark.parametrize(("alpha", "match"), list(NOT_PENALTIES.values()), ids=list(NOT_PENALTIES))
def test_what_is_no_penalty_is_refused(alpha, match):
    with pytest.raises(ParameterError, match=match):
        checked_penalty(alpha)


def spectrum(values, *, floor: float = 1e-6, q: int = 2) -> Spectrum:
    D = len(values)
    projections = np.random.default_rng(0).standard_normal((D, q))
    return Spectrum(np.array(values), projections, np.full(q, 50.0), 40.0, floor, intercept=True)


@pytest.mark.parametrize("n_alphas", [2, 30])
def test_the_grid_goes_evenly_from_the_floor_to_the_largest_eigenvalue(n_alphas):
    usual = default_grid(spectrum([0.1, 2.0, 300.0]))
    grid = usual if n_alphas == 30 else even_grid(1e-6, 300.0, n_alphas)
    assert len(grid) == n_alphas
    assert_close(grid[[0, -1]] / [1e-6, 300.0], np.ones(2))
    ratios = grid[1:] / grid[:-1]
    assert_close(ratios / ratios[0], np.ones(n_alphas - 1))
    assert ratios[0] > 1
    # Features that never vary have a grid of one.
    assert default_grid(spectrum([0.0, 0.0], floor=0.0)).tolist() == [1.0]
    assert even_grid(0.0, 0.0, n_alphas).tolist() == [1.0]


ALPHAS = np.array([0.1, 1.0, 10.0, 100.0])
# Errors (K, A, q) of three folds of different weights; the variances of the targets.
SSE = np.array(
    [
        [[4.0, 70.0], [3.0, 60.0], [3.1, 50.0], [9.0, 55.0]],
        [[8.0, 150.0], [6.1, 130.0], [6.0, 115.0], [19.0, 120.0]],
        [[3.0, 64.0], [2.2, 66.0], [2.5, 45.0], [8.0, 65.0]],
    ]
)
WEIGHTS = np.array([10.0, 20.0, 8.0])
VARIANCE = np.array([1.0, 25.0])


def curve(sse=SSE, weights=WEIGHTS, variance=VARIANCE) -> PenaltyCurve:
    return PenaltyCurve.of_folds(ALPHAS, folds_of(sse, weights), np.array(variance))


def folds_of(sse=SSE, weights=WEIGHTS, mean=(0.0, 0.0)) -> list[HeldOut]:
    """Folds, with the error of a row of each by the mean of the others."""
    each = zip(weights, sse, strict=True)
    return [HeldOut(float(w), part, sse_of_mean=w * np.array(mean)) for w, part in each]


def mean_errors(sse=SSE, weights=WEIGHTS) -> list[list[float]]:
    """The squared error of a row, over all folds, at every penalty and of every target."""
    return [
        [math.fsum(sse[:, a, j]) / math.fsum(weights) for j in range(sse.shape[2])]
        for a in range(sse.shape[1])
    ]


@pytest.mark.parametrize("per_target", [False, True])
def test_a_guarded_choice_is_gcvs_where_folds_are_no_worse_than_the_mean_or_the_least(per_target):
    known = spectrum([0.1, 2.0, 300.0])
    for variance in (VARIANCE, 0.1 * VARIANCE, [0.25, 2.9]):
        mean = 1.1 * np.array(variance)
        own = np.square(np.log(ALPHAS[:, None] / ALPHAS[1])) * np.ones(len(variance)) + 1.0
        one = np.where(own == own.min(), own, np.inf)
        found, told, nowhere = (
            curve(variance=variance).guarded(known, folds_of(mean=mean), each)
            for each in (None, own, one)
        )
        assert np.array_equal(told.near, own)
        near = known.gcv(ALPHAS)
        assert_close(found.near, near)
        errors, scale = np.array(mean_errors()), np.array(variance)
        if not per_target:
            errors, near = ((each / scale).mean(axis=1)[:, None] for each in (errors, near))
            mean = np.array([1.1])
        expected, largest = [], []
        for j in range(errors.shape[1]):
            most = 1.1 * max(errors[:, j].min(), mean[j])
            allowed = [a for a in range(len(ALPHAS)) if errors[a, j] <= most]
            expected.append(min(allowed, key=lambda a: near[a, j]))
            # GCV is a mean of 40 squares.
            close = (1.0 + math.sqrt(2.0 / 40.0)) * near[expected[-1], j]
            largest.append(max(a for a in allowed if near[a, j] <= close))
        assert found.choose(per_target=per_target).tolist() == expected
        score, error = found.combined(found.choose())
        assert error == pytest.approx(score * math.sqrt(2.0 / 40.0))
        rule = {"per_target": per_target, "one_standard_error": True}
        assert found.choose(**rule).tolist() == largest
        # Where no error is known of what is allowed, those of folds choose.
        for j, chosen in enumerate(nowhere.choose(per_target=per_target)):
            is_allowed = errors[1, j] <= 1.1 * max(errors[:, j].min(), mean[j])
            assert chosen == (1 if is_allowed else errors[:, j].argmin())
        plain = curve(variance=variance)
        for lost in (np.inf, [1.0, np.inf]):  # of all targets, and of one
            unknown = plain.guarded(known, folds_of(mean=mean), own * lost)
            chosen = unknown.choose()
            assert unknown.combined(chosen) == plain.combined(chosen)
        # Few rows have errors of their own in the place of GCV's.
        for j, chosen in enumerate(told.choose(per_target=per_target)):
            most = 1.1 * max(errors[:, j].min(), mean[j])
            allowed = [a for a in range(len(ALPHAS)) if errors[a, j] <= most]
            assert chosen == min(allowed, key=lambda a: own[a, 0])
    # The errors that are reported are those of the folds, with those between neighbours beside.
    assert found.as_dict()["values"] == curve().as_dict()["values"]
    assert_close(np.square(found.as_dict()["near"]), known.gcv(ALPHAS))


def standard_error(errors) -> float:
    K, mean = len(errors), math.fsum(errors) / len(errors)
    return math.sqrt(math.fsum((e - mean) ** 2 for e in errors) / (K - 1) / K)


def test_scores_and_standard_errors_are_those_of_the_folds():
    made = curve()
    assert made.criterion == "cv"
    assert_close(made.scores, mean_errors())
    assert_close(made.fold_scores, SSE / WEIGHTS[:, None, None])
    each, together = made.standard_errors(), made.standard_errors(per_target=False)
    for a in range(len(ALPHAS)):
        errors = SSE[:, a] / WEIGHTS[:, None]
        assert_close(each[a], [standard_error(errors[:, j].tolist()) for j in range(2)])
        assert_close(together[a, 0], standard_error((errors / VARIANCE).mean(axis=1).tolist()))
    chosen = np.array([2, 1])
    assert_close(made.at(chosen), [mean_errors()[2][0], mean_errors()[1][1]])
    score, error = made.combined(chosen)
    at = np.stack([SSE[:, 2, 0], SSE[:, 1, 1]], axis=1) / WEIGHTS[:, None] / VARIANCE
    assert_close(score, (made.at(chosen) / VARIANCE).mean())
    assert_close(error, standard_error(at.mean(axis=1).tolist()))


def least(scores) -> int:
    return scores.index(min(scores))


def test_the_least_error_is_chosen_for_all_targets_in_units_of_their_spread_or_for_each():
    scores = [math.fsum(np.array(row) / VARIANCE) / 2 for row in mean_errors()]
    assert curve().choose().tolist() == [least(scores)]
    # The second target alone, where its unit makes it the larger one.
    assert curve(variance=[1e9, 25.0]).choose().tolist() == [2]
    assert curve(variance=[1.0, 1e9]).choose().tolist() == [1]
    each = np.array(mean_errors()).T.tolist()
    assert curve().choose(per_target=True).tolist() == [least(row) for row in each] == [1, 2]


@quick
@given(
    sse=st.lists(
        st.lists(st.floats(0.1, 10), min_size=8, max_size=8).map(
            lambda values: np.array(values).reshape(4, 2)
        ),
        min_size=2,
        max_size=5,
    ),
    per_target=st.booleans(),
)
def test_one_standard_error_never_takes_a_smaller_penalty_nor_a_worse_than_allowed(sse, per_target):
    errors = np.array(sse)
    made = curve(errors, np.full(len(errors), 7.0))
    best = made.choose(per_target=per_target)
    taken = made.choose(per_target=per_target, one_standard_error=True)
    assert (taken >= best).all()
    scores = made.scores if per_target else (made.scores / VARIANCE).mean(axis=1, keepdims=True)
    allowed = scores + made.standard_errors(per_target=per_target)
    for j, (a, b) in enumerate(zip(best, taken, strict=True)):
        assert scores[b, j] <= allowed[a, j]
        assert (scores[b + 1 :, j] > allowed[a, j]).all()


@pytest.mark.parametrize("criterion", ["gcv", "evidence"])
def test_one_standard_error_needs_folds(criterion):
    made = PenaltyCurve.of_spectrum(criterion, ALPHAS, spectrum([0.1, 2.0]))
    assert made.standard_errors() is None
    assert made.combined(np.array([0, 0]))[1] == 0.0
    with pytest.raises(ParameterError, match=f"needs folds, but the criterion is {criterion}; tak"):
        made.choose(one_standard_error=True)


def test_gcv_is_made_robust_by_the_trace_of_the_squared_hat_matrix():
    made = PenaltyCurve.of_spectrum("gcv", ALPHAS, spectrum([0.1, 2.0, 30.0]))
    gcv = spectrum([0.1, 2.0, 30.0]).gcv(ALPHAS)
    # Of an intercept the hat matrix has an eigenvalue of 1.
    traces = [1 + sum((d / (d + a)) ** 2 for d in (0.1, 2.0, 30.0)) for a in ALPHAS]
    expected = gcv * (0.2 + 0.8 * np.array(traces)[:, None] / 40.0)
    assert_close(made.scores, expected)
    assert made.choose(per_target=True).tolist() == expected.argmin(axis=0).tolist()
    # Both targets have the same spread.
    assert made.choose().tolist() == [expected.mean(axis=1).argmin()]


def test_the_evidence_of_all_targets_is_the_sum_of_their_logs():
    made = PenaltyCurve.of_spectrum("evidence", ALPHAS, spectrum([0.1, 2.0, 30.0]))
    evidence = spectrum([0.1, 2.0, 30.0]).log_evidence(ALPHAS)
    assert made.choose().tolist() == [evidence.sum(axis=1).argmax()]
    assert made.choose(per_target=True).tolist() == evidence.argmax(axis=0).tolist()
    assert made.as_dict()["values"] == evidence.tolist()


@pytest.mark.parametrize("sse", [SSE * [1.0, 0.0], SSE], ids=["no error", "an error"])
@pytest.mark.parametrize("rule", [False, True])
def test_a_target_without_spread_has_no_say_and_the_penalty_of_the_others(sse, rule):
    made = curve(sse, variance=[1.0, 0.0])
    alone = curve(SSE[:, :, :1], variance=[1.0]).choose(one_standard_error=rule).tolist()
    assert np.isfinite(made.standard_errors(per_target=False)).all()
    assert made.choose(one_standard_error=rule).tolist() == alone
    assert made.choose(per_target=True, one_standard_error=rule).tolist() == alone * 2


@pytest.mark.parametrize("criterion", ["gcv", "evidence"])
@pytest.mark.parametrize("per_target", [True, False])
def test_a_target_that_is_constant_does_not_choose_for_the_others(criterion, per_target):
    both = spectrum([0.1, 2.0, 30.0])
    alone = replace(both, projections=both.projections[:, :1], target=both.target[:1])
    both = replace(both, projections=both.projections * [1.0, 0.0], target=both.target * [1.0, 0.0])
    expected = PenaltyCurve.of_spectrum(criterion, ALPHAS, alone).choose().tolist()
    made = PenaltyCurve.of_spectrum(criterion, ALPHAS, both)
    assert made.choose(per_target=per_target).tolist() == expected * (1 + per_target)
    none = replace(both, projections=both.projections * 0.0, target=both.target * 0.0)
    assert 0 <= PenaltyCurve.of_spectrum(criterion, ALPHAS, none).choose()[0] < len(ALPHAS)


@pytest.mark.parametrize("criterion", ["gcv", "evidence"])
def test_residuals_below_what_the_precision_resolves_are_no_evidence(criterion):
    values = np.geomspace(1e-3, 1e3, 25)
    projections = np.random.default_rng(0).standard_normal((25, 2)) * np.sqrt(values)[:, None]
    projections[:-3, 0] = 0.0
    # The first target is a function of three features, of whose squares rounding left no residual.
    target = (projections**2 / values[:, None]).sum(axis=0) + np.array([-1e-6, 60.0])
    noisy = Spectrum(values, projections, target, 90.0, 1e-4, intercept=True)
    second = replace(noisy, projections=projections[:, 1:], target=noisy.target[1:])
    alphas = default_grid(noisy)
    made = PenaltyCurve.of_spectrum(criterion, alphas, noisy)
    assert np.isfinite(made.scores).all()
    # So small are squares for which this is a formula of the floor.
    (a, *_), N, least = alphas, 90.0, target[0] * 1e-4 / 1e3
    volume, shares = np.log1p(values / a).sum(), values / (values + a)
    expected = {
        "evidence": 0.5 * (89.0 * math.log(2.0 * math.pi * least / 89.0) + volume + 89.0),
        "gcv": N * least / (89.0 - shares.sum()) ** 2 * (0.2 + 0.8 * ((shares**2).sum() + 1.0) / N),
    }
    assert made.scores[0, 0] == pytest.approx(expected[criterion])
    alone = PenaltyCurve.of_spectrum(criterion, alphas, second)
    each = made.choose(per_target=True)
    assert each[0] > 0
    assert each[1] == alone.choose()[0]
    assert min(each) <= made.choose()[0] <= max(each)


@pytest.mark.parametrize("q", [1, 2])
def test_the_curve_as_plain_values_has_roots_of_mean_squares(q):
    made = curve(SSE[:, :, :q], variance=VARIANCE[:q])
    plain = made.as_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert (plain["criterion"], plain["alphas"]) == ("cv", ALPHAS.tolist())
    # d sqrt(u) = du / (2 sqrt(u)); the values of one target are a list of numbers.
    values = np.sqrt(mean_errors(SSE[:, :, :q]))
    errors = made.standard_errors() / (2 * values)
    assert_close(plain["values"], values[:, 0] if q == 1 else values)
    assert_close(plain["standard_errors"], errors[:, 0] if q == 1 else errors)
    gcv = PenaltyCurve.of_spectrum("gcv", ALPHAS, spectrum([0.1, 2.0], q=q)).as_dict()
    assert np.shape(gcv["values"]) == np.shape(plain["values"])
    assert gcv["standard_errors"] is None


def test_a_score_that_is_infinite_is_none_in_plain_values():
    # As many degrees of freedom as rows, but for the largest penalty.
    full = Spectrum(np.ones(4), np.ones((4, 1)), np.full(1, 5.0), 4.0, 1e-15, intercept=False)
    made = PenaltyCurve.of_spectrum("gcv", np.array([1e-300, 1.0]), full)
    assert made.scores[0, 0] == math.inf
    assert made.choose().tolist() == [1]
    values = made.as_dict()["values"]
    assert values[0] is None
    assert isinstance(values[1], float)
