"""Every estimator passes scikit-learn's own checks, but for those that the job names with a reason.

xfail is strict here: a check that is expected to fail and passes is a failure too.  So is one that
passes with a warning.
"""

import importlib.util
import warnings

import dask
import pytest
from commandline import JOBS
from commandline import job as run_job
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import streamkern
from streamkern import RandomFeatureClassifier, RandomFeatureRidge

specification = importlib.util.spec_from_file_location("checks", JOBS / "sklearn_checks.py")
job = importlib.util.module_from_spec(specification)
specification.loader.exec_module(job)

EXPECTED = {id(case.estimator): case.expected for case in job.CASES}


@parametrize_with_checks(
    [case.estimator for case in job.CASES],
    expected_failed_checks=lambda estimator: EXPECTED[id(estimator)],
)
def test_it_passes_the_check(estimator, check):
    with dask.config.set(scheduler="synchronous"):
        check(estimator)


def test_every_public_estimator_is_checked():
    from sklearn.base import BaseEstimator

    public = {getattr(streamkern, name) for name in streamkern.__all__}
    estimators = {one for one in public if isinstance(one, type) and issubclass(one, BaseEstimator)}
    assert {type(case.estimator) for case in job.CASES} == estimators


PLAIN = {"n_components": 128, "alpha": "gcv", "alphas": [0.1, 1.0], "precision": "double"}


def boosted():
    return streamkern.RandomFeatureAdaBoost(RandomFeatureRidge(**PLAIN), n_estimators=1)


WEIGHTS = "check_sample_weight_equivalence_on_dense_data"


@pytest.mark.parametrize(
    ("check", "estimator"),
    [
        (WEIGHTS, lambda: RandomFeatureRidge(**PLAIN)),
        (WEIGHTS, lambda: RandomFeatureClassifier(**PLAIN, calibration=None)),
        (WEIGHTS, boosted),
        ("check_methods_subset_invariance", boosted),
    ],
)
def test_an_expected_failure_passes_without_its_reason(check, estimator):
    with dask.config.set(scheduler="synchronous"):
        made = estimator()
        getattr(estimator_checks, check)(type(made).__name__, made)


class Warns(streamkern.Identity):
    def transform(self, X):
        warnings.warn("of no use", UserWarning, stacklevel=1)
        return super().transform(X)


def test_what_is_not_expected_is_told_and_a_warning_fails_a_check(capsys):
    identity = streamkern.Identity()
    assert job.checked(job.Case(identity))
    assert " passed, 0 failed as expected, 0 failed, " in capsys.readouterr().out
    assert not job.checked(job.Case(identity, {"check_fit2d_1sample": "the check is a wrong one"}))
    assert "NOT EXPECTED: check_fit2d_1sample passes" in capsys.readouterr().out
    assert not job.checked(job.Case(Warns()))
    assert "NOT EXPECTED: check_" in capsys.readouterr().out


@pytest.mark.slow
def test_tests_of_scikit_learn_pass_with_these_classes(tmp_path):
    said = run_job(tmp_path, "foreign_suites.py", "kernel_ridge", "kernel_approximation")
    assert "NOT EXPECTED" not in said
    first, second = (line for line in said.splitlines() if " passed" in line)
    for line in (first, second):
        assert line.endswith(", 0 failed")
    assert first.startswith("kernel_ridge: ")
    assert "cannot apply, since kernels are evaluated on rows" in said
