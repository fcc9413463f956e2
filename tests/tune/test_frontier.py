"""Error against cost: the frontier is what none beats, and costs are those of the trials."""

from __future__ import annotations

import json
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkern import Gaussian, Laplacian, RandomFeatureRidge
from streamkern.parameters.cost_estimate import fit_flops, solve_flops
from streamkern.tune.budget import configurations
from streamkern.tune.trials import N_FOLDS, Attempt, Cost

PLAN = SimpleNamespace(n_rows=10_000, n_features=4, n_slots=2, flops=fit_flops(10_000, 4, 64, 5))


def attempt(error, seconds, name="orthogonal", size=64, scale=1.0):
    cost = Cost(0.0, seconds, 0.0)
    return Attempt("plain", name, "gaussian", scale, 1000, size, error, 0.01, 1.0, cost)


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
    """Ten times the rows on two threads; and five folds for three, with the whole of both."""
    cost = Cost(drawing=0.5, sums=3.0, errors=8.0)
    one = Attempt("plain", "iid", "gaussian", 1.0, 1000, 32, 0.2, 0.01, 1.0, cost)
    (found,) = configurations([one], one, PLAN, 5)
    assert found["seconds"] == pytest.approx(0.5 + (3.0 * 10 + 8.0 * 6 / 4) / 2)
    assert found["passes"] == pytest.approx(fit_flops(10_000, 4, 32, 5) / PLAN.flops)
    (fixed,) = configurations([one], one, PLAN, 1)
    factor = solve_flops(32, 1) / solve_flops(32, N_FOLDS)
    assert fixed["seconds"] == pytest.approx(0.5 + (3.0 * 10 + 8.0 * factor) / 2)


def test_the_report_has_the_frontier_and_marks_what_was_fitted():
    X = np.random.default_rng(0).standard_normal((900, 3))
    model = RandomFeatureRidge(n_components=512).tune(
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
    assert chosen["n_components"] == 512
    assert chosen["passes"] == pytest.approx(1.0)
    assert all(each["seconds"] > 0 for each in frontier)
    # More features take longer: seconds of whole fits, a quarter of the work.
    mine = sorted(
        (each["n_components"], each["seconds"])
        for each in frontier
        if (each["kernel"], each["feature_map"]) == (chosen["kernel"], chosen["feature_map"])
    )
    assert mine[0][1] < mine[-1][1]
