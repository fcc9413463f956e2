"""A budget is what a search may spend: it is counted, kept, and makes the search wider."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from streamkern import Gaussian, Matern, RandomFeatureRidge
from streamkern.errors import ParameterError
from streamkern.parameters.cost_estimate import fit_flops
from streamkern.parameters.fit_options import large_sample
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.plan import plan_for
from streamkern.sources import as_source
from streamkern.tune.budget import Budget, Ledger, budgeted_rows
from streamkern.tune.trials import N_FOLDS, Attempt, Cost, Trial

N, P, D = 400, 3, 128


@pytest.fixture(scope="module", autouse=True)
def few_components():
    """Let the rungs have an eighth, a quarter and a half of the features, however few these are."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("streamkern.tune.halving._FEWEST_COMPONENTS", 8)
        yield


def rows(n=N, p=P):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)


def ridge(**options):
    return RandomFeatureRidge(**{"n_components": D} | options)


def work(attempts, n=N, p=P, size=D):
    """The multiply-adds of attempts over those of a fit to all rows, by the formula."""
    a_pass = n * size * (p + size) + 6 * 5 * size**3
    each = [a["n_rows"] * a["n_components"] * (p + a["n_components"]) for a in attempts]
    solved = [(1 + a["n_folds"]) * 5 * a["n_components"] ** 3 for a in attempts]
    return (sum(each) + sum(solved)) / a_pass


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (10, Budget(10.0)),
        ("10", Budget(10.0)),
        (0.5, Budget(0.5)),
        ("2.5e-1", Budget(0.25)),
        ("120s", Budget(120.0, in_seconds=True)),
        (" 5 m ", Budget(300.0, in_seconds=True)),
        ("1.5h", Budget(5400.0, in_seconds=True)),
    ],
)
def test_a_budget_is_passes_or_time(text, expected):
    assert Budget.of(text) == expected
    assert Budget.of(str(expected)) == expected
    assert Budget.of(None) is None


@pytest.mark.parametrize("text", ["", "0", -1, "5d", "s", "1e999", "nan", True, "1,5", "--3", [1]])
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(ParameterError, match="a positive number of passes, such as 10, or of sec"):
        ridge().tune(*rows(100), budget=text)


@cache
def searched(passes):
    """A search among two kernels within a budget, and another one of the same."""
    options = {"budget": passes, "kernels": [Gaussian(3.0), Matern()], "maps": "iid"}
    return ridge(kernel=Gaussian(3.0)).tune(*rows(), **options)


@pytest.mark.parametrize("passes", [1e-9, 0.02, 0.3, 8])
def test_a_budget_in_passes_is_kept_and_the_report_counts_it(passes):
    report = searched(passes).report_
    attempts = report["tuning"]
    assert report["tuning_passes"] == pytest.approx(work(attempts), rel=1e-12)
    assert report["tuning_passes"] <= passes * (1 + 1e-9) or len(attempts) == 1
    assert report["tuning_budget"] == f"{passes:g}"
    # What is given is not chosen, and begins at the length scale that it has.
    assert {(a["kernel"], a["feature_map"]) for a in attempts} <= {
        ("gaussian", "iid"),
        ("matern32", "iid"),
    }
    assert (attempts[0]["kernel"], attempts[0]["length_scale"]) == ("gaussian", 3.0)
    tried = [(a["n_components"], a["kernel"], np.log2(a["length_scale"])) for a in attempts]
    assert len({(*names, round(octave, 6)) for *names, octave in tried}) == len(tried)


def test_a_larger_budget_tries_more_and_at_more_features():
    reports = [searched(passes).report_ for passes in (1e-9, 0.02, 0.3, 8)]
    numbers = [len(report["tuning"]) for report in reports]
    assert numbers[0] == 1
    assert all(few < many for few, many in pairwise(numbers))
    largest = [max(a["n_components"] for a in report["tuning"]) for report in reports]
    assert largest == sorted(largest)
    assert largest[0] < largest[-1]


def test_the_same_budget_in_passes_chooses_the_same():
    one, other = searched(0.3), searched.__wrapped__(0.3)
    assert one.report_["tuning"] == other.report_["tuning"]
    assert one.coef_.tobytes() == other.coef_.tobytes()


def test_a_budget_alone_chooses_among_all_kernels_and_maps():
    report = ridge().tune(*rows(200, 4), budget=1.5).report_
    kernels = {a["kernel"] for a in report["tuning"]}
    assert kernels == {"gaussian", "matern52", "matern32", "matern12", "laplacian"}
    assert {a["feature_map"] for a in report["tuning"]} == {"orthogonal", "nystroem"}


def test_a_budget_in_seconds_stops_the_search(monkeypatch):
    """On a clock of our own: every trial takes a second, whatever its size."""
    clock = [0.0]
    attempt = Trial._attempt

    def timed(trial, folds, factor, cost):
        clock[0] += 1.0
        return attempt(trial, folds, factor, cost)

    monkeypatch.setattr("streamkern.tune.budget.perf_counter", lambda: clock[0])
    monkeypatch.setattr(Trial, "_attempt", timed)
    report = ridge().tune(*rows(), budget="12s").report_
    # As many run at a time as there are threads, and their last ones may begin in time.
    assert 3 <= clock[0] <= 12 + 2
    assert len(report["tuning"]) == clock[0]
    assert report["tuning_budget"] == "12s"


def test_every_rung_that_a_budget_begins_has_a_trial():
    def rungs(passes):
        return ledger(passes).payable([16, 32, 64, 128], N, 5)

    # Two on the last, where something is compared.
    each = [2 * fit_flops(N, P, size, 5) / fit_flops(N, P, D, 5) for size in (32, 64, 128)]
    assert rungs(4 * each[2] * 1.01) == [16, 32, 64, 128]
    assert rungs(4 * each[2] * 0.99) == [16, 32, 64]
    assert rungs(3 * each[1] * 0.99) == [16, 32]
    assert rungs(1e-9) == [16]


def test_seconds_and_a_checkpoint_do_not_go_together(tmp_path):
    with pytest.raises(ParameterError, match="give the budget in passes"):
        ridge().tune(*rows(100), budget="5s", checkpoint=tmp_path)
    assert not list(tmp_path.iterdir())


# What pays for what.


def ledger(budget, n=N):
    X, y = rows(n)
    options = Parameters.of(ridge()).passes()
    return Ledger(Budget.of(budget), plan_for(as_source(X, y), options))


def trial(n_components, seconds=1.0, feature_map="iid"):
    cost = Cost(0.0, seconds, 0.0)
    return Attempt("plain", feature_map, "gaussian", 1.0, N, n_components, 0.5, 0.1, 1.0, cost)


def test_a_share_of_the_passes_pays_for_whole_trials():
    each = fit_flops(N, P, 64, N_FOLDS) / fit_flops(N, P, D, 5)
    book = ledger(10 * each)
    assert book.affordable(99, N, 64, 0.5) == 5
    book.pay([trial(64)] * 5)
    assert book.passes == pytest.approx(5 * each)
    assert book.affordable(99, N, 64, 0.5) == 0
    assert book.affordable(99, N, 64, 1.0) == 5
    assert book.affordable(3, N, 64, 1.0) == 3


def test_a_share_of_the_seconds_stops_what_would_begin_after_it(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("streamkern.tune.budget.perf_counter", lambda: clock[0])
    book = ledger("10s")
    assert book.affordable(99, N, 64, 0.5) >= 1
    book.pay([trial(64)])
    for now, number in ((4.9, book.plan.n_slots), (5.0, 0)):
        clock[0] = now
        assert book.affordable(99, N, 64, 0.5) == number
    assert book.affordable(99, N, 64, 1.0) == book.plan.n_slots


def test_without_a_budget_everything_is_paid():
    book = ledger(None)
    book.pay([trial(D)] * 100)
    assert book.affordable(99, N, D, 0.1) == 99


def test_the_sample_grows_with_the_budget():
    X, y = rows(100_000, 2)
    source = as_source(X, y)
    options = Parameters.of(ridge()).passes()
    usual = large_sample(3)
    found = [budgeted_rows(source, options, 1, Budget.of(passes)) for passes in (1e-6, 0.3, 1, 1e6)]
    assert found[0] == 2048
    assert found[-1] == 4 * usual
    assert found == sorted(found)
    assert found[0] < found[1] < found[2] < found[3]
