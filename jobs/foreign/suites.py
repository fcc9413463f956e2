"""The suites: which names are replaced in them, which tests cannot apply, which differ, and why."""

from __future__ import annotations

from typing import Any, NamedTuple

from foreign import adapters as a


class Suite(NamedTuple):
    """A module of tests; patterns are of names of tests, with their parameters in brackets."""

    name: str
    module: str = ""  # where it is installed
    file: str = ""  # else of a checkout
    names: dict[str, Any] = {}  # noqa: RUF012  nobody changes it
    not_applicable: dict[str, str] = {}  # noqa: RUF012
    differences: dict[str, str] = {}  # noqa: RUF012
    options: tuple[str, ...] = ()
    always: bool = False


CONSTANT = "targets that are all equal are refused"
LIKELIHOOD = "parameters of kernels are chosen by held-out errors, and no likelihood is kept"
LINEAR = "sklearn.linear_model."
_SUITES = (
    Suite(
        "kernel_ridge",
        "sklearn.tests.test_kernel_ridge",
        names={"sklearn.kernel_ridge.KernelRidge": a.KernelRidge},
        differences={
            "test_kernel_ridge_sparse*": "exact rows are dense, and sparse ones refused",
            "test_kernel_ridge_singular_kernel": "a system without a Cholesky factor is refused",
        },
    ),
    Suite(
        "kernel_approximation",
        "sklearn.tests.test_kernel_approximation",
        names={
            f"sklearn.kernel_approximation.{kind.__name__}": kind
            for kind in (a.RBFSampler, a.Nystroem, a.PolynomialCountSketch)
        },
        differences={
            "test_nystroem_approximation": "additive_chi2, which is 0 of equal rows, is refused"
        },
    ),
    Suite(
        "ridge",
        "sklearn.linear_model.tests.test_ridge",
        names={
            f"sklearn.linear_model.{kind.__name__}": kind
            for kind in (a.Ridge, a.RidgeCV, a.RidgeClassifier, a.RidgeClassifierCV)
        },
    ),
    Suite(
        "gaussian_process",
        "sklearn.gaussian_process.tests.test_gpr",
        names={"sklearn.gaussian_process.GaussianProcessRegressor": a.GaussianProcess},
        not_applicable={
            "test_large_variance_y": LIKELIHOOD,
            "test_warning_bounds": LIKELIHOOD,
            "test_n_targets_error": "the number of targets is that of y",
        },
        differences={"test_constant_target*": CONSTANT, "test_gpr_correct_error_message": CONSTANT},
    ),
    Suite(
        "calibration",
        "sklearn.tests.test_calibration",
        names={
            "sklearn.svm.LinearSVC": a.scores,
            "sklearn.linear_model.LogisticRegression": a.scores,
            "sklearn.linear_model.SGDClassifier": a.scores,
            "sklearn.ensemble.RandomForestClassifier": a.scores,
            "sklearn.naive_bayes.MultinomialNB": a.scores,
            "sklearn.tree.DecisionTreeClassifier": a.scores,
        },
    ),
    Suite(
        "dask_ml_incremental",
        file="test_incremental.py",
        names={LINEAR + "SGDClassifier": a.scores, LINEAR + "SGDRegressor": a.regression},
    ),
    Suite(
        "dask_ml_parallel_post_fit",
        file="test_parallel_post_fit.py",
        names={
            LINEAR + "LogisticRegression": a.scores,
            LINEAR + "LinearRegression": a.regression,
            "sklearn.ensemble.GradientBoostingClassifier": a.scores,
        },
    ),
)
SUITES = {suite.name: suite for suite in _SUITES}
