"""What a comparison finds, summed up over the seeds of a map."""

from __future__ import annotations

import json
import math

import pytest
from scipy import stats

from streamkern.report.comparison_trials import Comparison, Run, Trial, confidence_interval


def run(seed, test_rmse, **values):
    given = {
        "alpha": 0.1,
        "cv_rmse": None,
        "loo_rmse": None,
        "kernel_error": 0.01,
        "precision_floor": None,
        "fit_seconds": 1.0,
        "predict_seconds": 0.1,
    }
    return Run(seed=seed, test_rmse=test_rmse, **given | values)


@pytest.mark.parametrize("values", [[1.0, 2.0], [5.0, 5.5, 4.0], [0.1, 0.2, 0.3, 0.4, 7.0]])
def test_the_interval_is_students(values):
    m, mean = len(values), math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (m - 1))
    expected = stats.t.interval(0.95, m - 1, loc=mean, scale=deviation / math.sqrt(m))
    assert confidence_interval(values) == pytest.approx(expected, rel=1e-12)


def test_equal_values_have_an_interval_of_no_width():
    assert confidence_interval([2.0, 2.0, 2.0]) == (2.0, 2.0)


@pytest.mark.parametrize("values", [[1.0], [], [None, None]])
def test_fewer_than_two_values_have_no_interval(values):
    assert confidence_interval(values) is None


def test_a_trial_holds_means_over_its_runs_and_the_median_penalty():
    runs = [
        run(3, 1.0, alpha=0.1, cv_rmse=2.0, kernel_error=0.1, fit_seconds=1.0),
        run(4, 2.0, alpha=10.0, cv_rmse=3.0, kernel_error=0.2, fit_seconds=2.0),
        run(5, 6.0, alpha=0.2, cv_rmse=7.0, kernel_error=0.6, fit_seconds=6.0),
    ]
    trial = Trial.of("random features", runs, 64, 1.5, n_components=64, map_name="iid")
    assert (trial.map, trial.n_components, trial.seeds) == ("iid", 64, (3, 4, 5))
    assert (trial.test_rmse, trial.relative_rmse, trial.cv_rmse) == (3.0, 2.0, 4.0)
    assert trial.kernel_error == pytest.approx(0.3)
    assert trial.fit_seconds == 3.0
    assert trial.alpha == 0.2
    assert trial.loo_rmse is None
    assert trial.matrix_bytes == 8 * 64**2
    assert trial.interval["test_rmse"] == confidence_interval([1.0, 2.0, 6.0])
    assert trial.interval["kernel_error"] == confidence_interval([0.1, 0.2, 0.6])
    assert trial.runs == tuple(runs)


def test_a_single_run_has_no_interval_and_a_model_without_a_map_no_seeds():
    trial = Trial.of("exact", [run(None, 2.0, kernel_error=None, loo_rmse=2.5)], 300, 2.0)
    assert trial.interval == {"test_rmse": None, "kernel_error": None}
    assert (trial.map, trial.n_components, trial.seeds) == (None, None, ())
    assert (trial.relative_rmse, trial.loo_rmse, trial.kernel_error) == (1.0, 2.5, None)


def test_trials_are_found_by_their_maps():
    trials = [Trial.of("exact", [run(None, 1.0)], 9, 1.0)] + [
        Trial.of("random features", [run(0, 1.0)], D, 1.0, n_components=D, map_name=name)
        for name in ("iid", "orthogonal")
        for D in (8, 16)
    ]
    found = Comparison(tuple(trials), 9, 3, {"name": "gaussian"}, "cv", 1.0)
    lines = found.by_map()
    assert list(lines) == ["iid", "orthogonal"]
    assert [trial.n_components for trial in lines["iid"]] == [8, 16]
    assert json.loads(json.dumps(found.as_dict()))["trials"][1]["map"] == "iid"
