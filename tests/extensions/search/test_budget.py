"""A budget is counted, kept, and makes a search wider; costs of what was tried are the trials'."""

import json
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import quick
from scipy import sparse

from streamkern import Gaussian, Laplacian, RandomFeatureRidge
from streamkern.choice import cross_validated_fit
from streamkern.choice.cross_validated_fit import N_FOLDS, Cost, CrossValidatedFit, Result
from streamkern.choice.held_out_fit import HeldOutFit
from streamkern.choice.input_weights import weights_by_descent
from streamkern.errors import ParameterError
from streamkern.extensions.search.budget import A_TRIAL, Budget, Clock, direct_seconds, run_in_time
from streamkern.extensions.search.search import configurations
from streamkern.extensions.search.settings import Setting
from streamkern.extensions.search.tuned_fit import SearchedFit
from streamkern.features import Standardizer
from streamkern.parameters.cost_estimate import fit_flops, fit_seconds, solve_flops
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.planning import plan_here
from streamkern.runtime.events import observed
from streamkern.sources import as_source

N, P, D = 400, 3, 128


pytestmark = pytest.mark.usefixtures("few_components")


def rows(n=N, p=P):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)


def ridge(**options):
    return RandomFeatureRidge(**{"n_components": D} | options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("120s", Budget(120.0)), (" 5 m ", Budget(300.0)), ("1.5h", Budget(5400.0))],
)
def test_a_budget_is_time(text, expected):
    assert Budget.of(text) == expected
    assert Budget.of(str(expected)) == expected
    assert Budget.of(None) is None


@pytest.mark.parametrize(
    ("given", "named", "expected"),
    [
        ({}, {}, "60s"),
        ({"alpha": 0.1, "metric": "learn"}, {}, "60s"),
        ({"kernel": Gaussian(2.0)}, {}, "None"),
        ({"kernel": "matern32"}, {}, "None"),
        ({"feature_map": "iid"}, {}, "None"),
        ({}, {"kernels": "gaussian"}, "None"),
        ({}, {"maps": "orthogonal"}, "None"),
        ({}, {"checkpoint": "kept"}, "None"),
        ({"feature_map": "iid"}, {"budget": "3m"}, "180s"),
    ],
    ids=str,
)
def test_where_nothing_is_named_a_search_has_a_minute(given, named, expected):
    searched = dict.fromkeys(("kernels", "maps", "budget", "checkpoint"))
    choice = SearchedFit(ridge(**given)._parameters(), **searched | named)
    assert str(choice.budget) == expected


@pytest.mark.parametrize(
    "text", ["", "0s", 10, "5d", "s", "1e999s", "nan", True, "1,5s", "--3s", [1]]
)
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(ParameterError, match="a positive number of seconds, minutes or hours"):
        ridge().tune(*rows(100), budget=text)


def test_a_budget_in_seconds_stops_the_search(monkeypatch):
    clock = [0.0]  # of our own: every trial takes a second, whatever its size
    attempt = CrossValidatedFit.cross_validated

    def timed(*arguments):
        clock[0] += 1.0
        return attempt(*arguments)

    monkeypatch.setattr("streamkern.extensions.search.budget.perf_counter", lambda: clock[0])
    ours = SimpleNamespace(perf_counter=lambda: clock[0])
    monkeypatch.setattr("streamkern.extensions.search.tuned_fit.time", ours)
    monkeypatch.setattr(CrossValidatedFit, "cross_validated", timed)
    given = {"scale": "robust", "metric": np.eye(P), "precision": "double"}
    report = ridge(**given).tune(*rows(), budget="12s").report_
    # As many run at a time as there are threads, and the last ones are stopped.
    assert 3 <= len(report["tuning"]) <= clock[0] <= 12 + 2
    assert report["tuning_budget"] == "12s"


@pytest.mark.parametrize(
    "slow",
    [CrossValidatedFit.cross_validated, HeldOutFit.held_out, weights_by_descent],
    ids=attrgetter("__name__"),
)
def test_a_trial_that_is_running_stops_where_what_is_left_is_for_the_fit(slow):
    times = [0.0]

    def now():
        times[0] += 1.0  # of our own: every look at it takes a second
        return times[0]

    X, y = rows(2000)
    options, own = Parameters.of(ridge()).pass_options(), Gaussian(1.0)
    plain = Standardizer(np.arange(P), np.zeros(P), np.ones(P), P)
    if slow is weights_by_descent:
        call = "try", slow, own, X[:60], y[:60, None], None, np.arange(P)
    elif slow is HeldOutFit.held_out:
        call = "try", slow, HeldOutFit.of(options, plain, len(X)), own, X, y[:, None]
    else:
        call = "try", slow, CrossValidatedFit(options, 64, len(X)), own, X, y[:, None]
    with dask.config.set(num_workers=1):
        (whole,) = run_in_time(Clock(1000.0, 0.0, (2.0, 1.0), now), [call], 1.0)
        assert whole is not None
        looks, times[0] = times[0], 0.0
        assert looks > 8
        assert run_in_time(Clock(10.0, 0.0, (4.0, 1.0), now), [call, call], 1.0) == []
        # Six seconds are for trials, one that has begun may take 1.2 of the fit's, and looks at the
        # clock before and after take some.
        assert 6 < times[0] <= 10


def test_a_search_ends_in_time_though_a_trial_takes_longer_than_those_before(monkeypatch):
    times, cost = [0.0], iter([1.0] * N_FOLDS + [5.0] * 99)
    blocks = cross_validated_fit.blocks

    def timed(*arguments):
        for block in blocks(*arguments):
            yield block
            times[0] += next(cost)

    monkeypatch.setattr("streamkern.extensions.search.budget.perf_counter", lambda: times[0])
    ours = SimpleNamespace(perf_counter=lambda: times[0])
    monkeypatch.setattr("streamkern.extensions.search.tuned_fit.time", ours)
    monkeypatch.setattr(cross_validated_fit, "blocks", timed)
    given = {"scale": "robust", "metric": np.eye(P), "precision": "double"}
    with dask.config.set(num_workers=1):
        report = ridge(**given).tune(*rows(), budget="12s").report_
    # The second trial is stopped at the block after the end, and does not count.
    assert times[0] == N_FOLDS + 2 * 5.0
    assert len(report["tuning"]) == 1


@pytest.mark.parametrize("kind", ["sparse", "a metric of one's own"])
def test_what_has_no_metric_to_learn_is_halved_within_time(kind):
    X, y = rows()
    X, metric = (sparse.csr_array(X), None) if kind == "sparse" else (X, np.eye(P))
    report = ridge(metric=metric).tune(X, y, budget="20s").report_
    sizes = {each["n_components"] for each in report["tuning"]}
    assert len(sizes) > 1
    assert {each["feature_map"] for each in report["tuning"]} >= {"orthogonal", "nystroem"}
    assert report["n_components"] >= D


def test_seconds_and_a_checkpoint_do_not_go_together(tmp_path):
    with pytest.raises(ParameterError, match="leave out the budget"):
        ridge().tune(*rows(100), budget="5s", checkpoint=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_trial_that_takes_longer_than_told_leaves_the_fit_more_of_the_seconds():
    clock = Clock(10.0, 0.0, (2.0, 1.0), lambda: 0.0)
    plan = plan_here(as_source(*rows()), Parameters.of(ridge()).pass_options())
    told = A_TRIAL * fit_seconds(N, P, 64, N_FOLDS, plan.precision, 1)
    # More features than were asked for have half of the seconds at the most, those that were, all.
    for part, left in ((0.5, 8.6), (1.5, 7.0), (4.0, 5.0), (7.0, 3.0), (1.0, 8.0)):
        clock.measure([attempt(0.5, part * told, size=64, n=N)], plan)
        assert clock.left() == pytest.approx(left)
    assert clock.left(0.5) == pytest.approx(4.0)
    # Trials that have begun may take up to three tenths of what is kept back.
    assert clock.limit().seconds == pytest.approx(8.0 + 0.3 * 2.0)


def test_a_clock_keeps_longer_for_folds_that_have_landmarks_of_their_own():
    parameters, (X, y) = Parameters.of(ridge(n_components=64)), rows()
    options = parameters.pass_options()
    for n, times in ((3 * 64, 1.5), (5 * 64, 1.0)):
        source = as_source(X[:n], y[:n])
        clock = Budget(60.0).clock(parameters, options, source, 0.0)
        usual = direct_seconds(plan_here(source, options), parameters, options)
        assert clock.reserved == pytest.approx((times * usual, 0.75 * times * usual))


@pytest.mark.parametrize(("fewest", "made"), [(1, 4), (6, 6)])
def test_trials_begin_while_they_are_likely_to_end_in_time_and_set_the_clock(fewest, made):
    times = [0.0]

    def trial(number):
        times[0] += 1.5  # of our own, whatever the machine
        return number

    calls = [("trial", trial, number) for number in range(9)]
    clock = Clock(10.0, 0.0, (2.0, 1.0), lambda: times[0])
    with dask.config.set(num_workers=1):
        found = run_in_time(clock, calls, 1.0, fewest=fewest, expected=0.95)
    # At half the speed by the formula three seconds are the fit's, and seven for trials.
    assert found == list(range(made))
    assert clock.slowness == 1.5
    assert run_in_time(None, calls, 1.0) == list(range(9))


def test_trials_do_not_begin_where_those_of_their_kind_took_more_than_is_left():
    times = [0.0]

    def trial(seconds):
        times[0] += seconds
        return seconds

    def tried(kind, seconds, n=1):
        calls = [("trial", trial, seconds)] * n
        with dask.config.set(num_workers=1):
            return run_in_time(clock, calls, 1.0, kind=kind)

    clock = Clock(12.0, 0.0, (2.0, 1.0), lambda: times[0])
    assert tried("long", 4.0) == [4.0]
    assert tried("short", 1.0, 3) == [1.0, 1.0, 1.0]
    assert tried("long", 4.0) == []  # three seconds are left
    assert times[0] == 7.0
    assert tried("short", 1.0) == [1.0]
    # What was stopped takes as long as it ran, at the least.

    def stopped(*_):
        trial(1.5)
        return []

    assert run_in_time(clock, [None], 1.0, stopped, kind="stopped") == []
    assert clock.taken == {"long": 4.0, "short": 1.0, "stopped": 1.5}


@pytest.mark.parametrize("slowness", [0.5, 6.0, 50.0, 1e9])
def test_a_fit_has_as_many_features_as_end_in_time_at_the_speed_of_trials(slowness):
    given = Parameters.of(ridge(n_components=2048))
    choice = SearchedFit(given, kernels=None, maps=None, budget="60s", checkpoint=None)
    clock = Clock(60.0, 0.0, (0.0, 0.0), lambda: 0.0, slowness)
    options = replace(given.pass_options(), n_components=4096)
    source = as_source(*rows(20_000))
    found, note = choice._in_time(options, source, clock)
    D = found.n_components
    seconds = {
        n: slowness
        * direct_seconds(plan_here(source, replace(found, n_components=n)), given, found)
        for n in (D, min(D * 11 // 10, 4096))
    }
    assert D == 4096 or max(seconds.values()) > 60.0
    assert D == 512 or seconds[D] <= 60.0
    asked = f"the fit has {D:,} components, not the 2,048 that were asked for, to end within"
    assert (asked in note) == (D < 2048)
    assert ("was expected to take" in note) == (seconds[D] > 60.0)


def test_trials_are_told_as_they_end():
    heard = []
    with observed(heard.append):
        report = ridge().tune(*rows(), budget="2s").report_
    assert [each["seconds"] for each in heard if each["kind"] == "searching"] == [2.0]
    tried = [each for each in heard if each["kind"] == "tried"]
    errors = {round(each["error"], 9) for each in tried}
    assert {round(np.sqrt(each["relative_mse"]), 9) for each in report["tuning"]} <= errors


# Error against cost.

PLAN = SimpleNamespace(n_rows=10_000, n_features=4, n_slots=2, flops=fit_flops(10_000, 4, 64, 5))


def attempt(error, seconds, name="orthogonal", size=64, scale=1.0, *, n=1000):
    kernel, cost = Gaussian(scale), Cost(0.0, seconds, 0.0)
    setting = Setting(0, 0, kernel, kernel, name, "plain")
    return Result(kernel, n, size, error, 0.01, 1.0, cost, setting=setting)


attempts = st.lists(
    st.builds(
        attempt,
        st.sampled_from([0.1, 0.2, 0.3, 0.4]),
        st.sampled_from([1.0, 2.0, 3.0]),
        st.sampled_from("abc"),
        st.sampled_from([16, 32, 64]),
        st.sampled_from([1.0, 2.0]),
    ),
    min_size=1,
)


@quick
@given(attempts)
def test_nothing_on_the_frontier_is_beaten_and_all_else_is(tried):
    found = configurations(tried, tried[-1], PLAN, 5)
    best = [each for each in found if each["is_best"]]
    for one, other in pairwise(best):
        assert one["seconds"] < other["seconds"]
        assert one["relative_mse"] > other["relative_mse"]
    cost = [(each["seconds"], each["relative_mse"]) for each in found]
    for each, (seconds, error) in zip(found, cost, strict=True):
        beaten = any(c <= seconds and e <= error for c, e in cost if (c, e) != (seconds, error))
        assert not (each["is_best"] and beaten)
        assert beaten or (seconds, error) in [(b["seconds"], b["relative_mse"]) for b in best]
    assert [each["is_chosen"] for each in found].count(True) == 1
    assert [each["seconds"] for each in found] == sorted(each["seconds"] for each in found)


def test_a_configuration_has_its_best_length_scale():
    tried = [attempt(0.3, 1.0, scale=1.0), attempt(0.1, 1.0, scale=2.0), attempt(0.2, 1.0, size=32)]
    found = configurations(tried, tried[1], PLAN, 5)
    scales = {each["n_components"]: each["length_scale"] for each in found}
    assert scales == {64: 2.0, 32: 1.0}


def test_a_cost_is_that_of_the_trial_for_all_rows_and_folds():
    cost = Cost(drawing=0.5, sums=3.0, errors=8.0)
    one = attempt(0.2, 1.0, size=32)._replace(cost=cost)
    (found,) = configurations([one], one, PLAN, 5)
    assert found["seconds"] == pytest.approx(0.5 + (3.0 * 10 + 8.0 * 6 / 4) / 2)
    assert found["passes"] == pytest.approx(fit_flops(10_000, 4, 32, 5) / PLAN.flops)
    (fixed,) = configurations([one], one, PLAN, 1)
    factor = solve_flops(32, 1) / solve_flops(32, N_FOLDS)
    assert fixed["seconds"] == pytest.approx(0.5 + (3.0 * 10 + 8.0 * factor) / 2)


def test_the_report_has_the_frontier_and_marks_what_was_fitted():
    X = rows(900)[0]
    model = ridge(n_components=256).tune(
        X, np.sin(2 * X[:, 0]), kernels=[Gaussian(), Laplacian()], maps=["orthogonal", "iid"]
    )
    frontier = model.report_["frontier"]
    assert json.loads(json.dumps(frontier)) == frontier
    names = [(each["kernel"], each["feature_map"], each["n_components"]) for each in frontier]
    assert len(names) == len(set(names))
    tried = {(a["kernel"], a["feature_map"], a["n_components"]) for a in model.report_["tuning"]}
    assert set(names) == tried
    (chosen,) = (each for each in frontier if each["is_chosen"])
    assert chosen["length_scale"] == model.kernel_.length_scale
    assert chosen["feature_map"] == model.report_["feature_map"]
    assert chosen["n_components"] == 256
    assert chosen["passes"] == pytest.approx(1.0)
    assert all(each["seconds"] > 0 for each in frontier)
    # More features take longer: seconds of whole fits, a quarter of the work.
    mine = sorted(
        (each["n_components"], each["seconds"])
        for each in frontier
        if (each["kernel"], each["feature_map"]) == (chosen["kernel"], chosen["feature_map"])
    )
    assert mine[0][1] < mine[-1][1]
