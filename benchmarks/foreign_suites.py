"""Tests of scikit-learn, run with streamkern's classes: python benchmarks/foreign_suites.py.

The modules are imported from where they are installed, and names in them replaced by adapters,
which turn parameters and units and compute nothing.  Prints how many tests passed and failed, and
which cannot apply or answer otherwise on purpose, with the reasons.  A test of more than a minute
fails.  Ends with status 1 where a test fails that is not named here.  Names of suites choose some.
Tests of Dask-ML are in no package: --dask-ml FOLDER runs those of a clone of its repository, alone.
"""

import argparse
import importlib
import os
import re
import signal
import sys
import warnings
from collections import Counter
from contextlib import ExitStack, redirect_stdout
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest import mock

import dask
import numpy as np
import pytest
import sklearn.decomposition
from sklearn import gaussian_process, kernel_approximation, kernel_ridge, linear_model
from sklearn.base import is_regressor
from sklearn.utils import check_random_state

import streamkern as ours

SECONDS, MARK = 60, "cannot apply: "
used: list[str] = []  # of ours, that were fitted since it was cleared


def cannot(reason: str) -> NoReturn:
    pytest.skip(MARK + reason)


def kernel_of(model: Any, p: int) -> tuple[Any, float]:
    """Return a kernel of streamkern, and what rows are multiplied by before it."""
    kind, degree, coef0 = model.kernel, model.degree or 3, 1 if model.coef0 is None else model.coef0
    unit = 1 / p if model.gamma is None else model.gamma
    if kind in ("poly", "polynomial") and degree == int(degree):
        return ours.Polynomial(int(degree), constant=coef0), np.sqrt(unit)
    if kind not in ("linear", "rbf", "laplacian"):
        cannot("the kernel is none of streamkern's, or a matrix, or a function of rows")
    if kind == "linear":
        return ours.Linear(), 1.0
    return ours.Gaussian((2 * unit) ** -0.5) if kind == "rbf" else ours.Laplacian(1 / unit), 1.0


class Adapter:
    """Before a class of scikit-learn: its parameters, and a fit by a class of streamkern."""

    factor: Any = 1.0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        used.append(type(self).__name__)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.shape = np.shape(y)
        model = self.made(X)  # type: ignore[attr-defined]
        self.fitted = model.fit(self.rows(X), y, **weights)
        if isinstance(self, (Ridge, RidgeCV)):
            coef = np.asarray(self.fitted.coef_).T  # (q, D), as there
            self.coef_ = coef.ravel() if self.shape[1:] == (1,) else coef
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted" in vars(self)

    def rows(self, X: Any) -> Any:
        return X if self.factor == 1.0 else X * self.factor

    def predict(self, X: Any, **deviations: Any) -> Any:
        if any(deviations.values()):
            cannot("deviations of predictions are those of random features")
        return self.fitted.predict(self.rows(X))

    def transform(self, X: Any) -> Any:
        return self.fitted.transform(self.rows(X))

    def __getattr__(self, name: str) -> Any:
        if not name.endswith("_") or name.startswith("_") or "fitted" not in vars(self):
            raise AttributeError(name)
        if not hasattr(self.fitted, name) and name != "feature_names_in_":
            cannot(f"{type(self.fitted).__name__} has no {name}")
        return getattr(self.fitted, name)


EXACT: Any = {"standardize": False, "fit_intercept": False}
LINEAR: Any = {"feature_map": "identity", "standardize": False, "precision": "double"}


class KernelRidge(Adapter, kernel_ridge.KernelRidge):
    def made(self, X: Any) -> Any:
        kernel, self.factor = kernel_of(self, np.shape(X)[1])
        return ours.ExactKernelRidge(kernel, alpha=self.alpha, **EXACT)


class GaussianProcessRegressor(Adapter, gaussian_process.GaussianProcessRegressor):
    def made(self, X: Any) -> Any:  # noqa: ARG002
        is_open = self.optimizer and self.kernel and self.kernel.n_dims
        if type(self.kernel).__name__ != "RBF" or is_open or np.ndim(self.alpha):
            cannot("kernels are chosen by cross-validation, and no likelihood is maximised")
        kernel = ours.Gaussian(self.kernel.length_scale)
        return ours.ExactKernelRidge(kernel, alpha=self.alpha, **EXACT)


class Map(Adapter):
    _n_features_out = property(lambda self: len(self.fitted.get_feature_names_out()))
    seed = property(lambda self: int(check_random_state(self.random_state).randint(1 << 31)))


class RBFSampler(Map, kernel_approximation.RBFSampler):
    def made(self, X: Any) -> Any:  # noqa: ARG002
        if self.gamma == "scale":
            cannot("the unit of a length scale that follows from rows is their median distance")
        kernel = ours.Gaussian((2 * self.gamma) ** -0.5)
        return ours.RandomFourierFeatures(kernel, self.n_components, random_state=self.seed)


class Nystroem(Map, kernel_approximation.Nystroem):
    def made(self, X: Any) -> Any:
        kernel, self.factor = kernel_of(self, np.shape(X)[1])
        return ours.Nystroem(kernel, self.n_components, random_state=self.seed)


class Ridge(Adapter, linear_model.Ridge):
    solver_ = property(lambda self: str(self.solver))

    def made(self, X: Any) -> Any:  # noqa: ARG002
        if np.ndim(self.alpha):
            cannot("penalties for the targets are chosen from the rows, and not given")
        how = {"alpha": float(self.alpha), "fit_intercept": self.fit_intercept}
        return ours.RandomFeatureRidge(**LINEAR, **how)


class RidgeCV(Adapter, linear_model.RidgeCV):
    best_score_ = property(lambda self: -np.mean(np.square(self.fitted.report_["cv_rmse"])))

    def made(self, X: Any) -> Any:  # noqa: ARG002
        if self.cv is not None or self.scoring not in (None, "neg_mean_squared_error"):
            cannot("penalties are chosen by squared errors of rows left out, and no other score")
        if self.store_cv_results:
            cannot("errors of rows at every penalty are not kept")
        how = {"alpha": "loo", "alphas": self.alphas, "fit_intercept": self.fit_intercept}
        several = {"per_target": self.alpha_per_target} if len(self.shape) == 2 else {}
        return ours.RandomFeatureRidge(**LINEAR, **how, **several)


class Growing(Adapter):
    """What Dask-ML wraps: fitted at once, or batch by batch."""

    predict_proba = property(lambda self: self.fitted.predict_proba)

    def made(self, X: Any) -> Any:  # noqa: ARG002
        kind: Any = ours.RandomFeatureRidge if is_regressor(self) else ours.RandomFeatureClassifier
        return kind("gaussian", n_components=64, alpha=1.0)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        used.append(type(self).__name__)
        if "fitted" not in vars(self):
            self.fitted = self.made(X)
        self.fitted.partial_fit(X, y, **({} if classes is None else {"classes": classes}))
        return self


class PCA(Adapter, sklearn.decomposition.PCA):
    def made(self, X: Any) -> Any:
        return ours.RandomFeaturePCA(ours.Linear(), n_components=min(np.shape(X)), **LINEAR)


def classifier(*, random_state: Any = 0, class_weight: Any = None, **_: Any) -> Any:
    """Make a classifier without a calibration of its own, in the place of one by any parameters."""
    used.append("RandomFeatureClassifier")
    how: Any = {"n_components": 64, "alpha": 1.0, "calibration": None, "class_weight": class_weight}
    return ours.RandomFeatureClassifier("gaussian", **how, random_state=random_state or 0)


CLASSIFIERS = ["svm.LinearSVC", "linear_model.LogisticRegression", "linear_model.SGDClassifier"]
CLASSIFIERS += ["ensemble.RandomForestClassifier", "naive_bayes.MultinomialNB"]
# A module of tests, and the names that are replaced in it.
SUITES: dict[str, tuple[str, dict[str, Any]]] = {
    "kernel_ridge": ("sklearn.tests.test_kernel_ridge", {"kernel_ridge.KernelRidge": KernelRidge}),
    "kernel_approximation": (
        "sklearn.tests.test_kernel_approximation",
        {f"kernel_approximation.{kind.__name__}": kind for kind in (RBFSampler, Nystroem)},
    ),
    "ridge": (
        "sklearn.linear_model.tests.test_ridge",
        {f"linear_model.{kind.__name__}": kind for kind in (Ridge, RidgeCV)},
    ),
    "gaussian_process": (
        "sklearn.gaussian_process.tests.test_gpr",
        {"gaussian_process.GaussianProcessRegressor": GaussianProcessRegressor},
    ),
    "calibration": (
        "sklearn.tests.test_calibration",
        dict.fromkeys([*CLASSIFIERS, "tree.DecisionTreeClassifier"], classifier),
    ),
}
# Of Dask-ML, whose modules of tests are files of a clone.
WRAPPED: dict[str, Any] = {
    f"linear_model.{name}": type(name, (Growing, getattr(linear_model, name)), {})
    for name in ("SGDClassifier", "LogisticRegression", "SGDRegressor", "LinearRegression")
}
WRAPPED["ensemble.GradientBoostingClassifier"] = WRAPPED["linear_model.LogisticRegression"]
WRAPPED["decomposition.PCA"] = PCA
# Why tests cannot apply, by regular expressions that their names begin with.
CANNOT_APPLY = {
    r".*array_api": "arrays are NumPy's: no other namespace is dispatched to",
    r".*(positive|lbfgs)": "coefficients have no sign that is asked for",
    r".*[[-](svd|lsqr|saga?|sparse_cg)\b|.*(_sag|sparse_error|n_iter|sparse_cg)": (
        "the solver and its tolerance are not chosen by these names"
    ),
    r"test_(primal_dual|X_Cent|compute_|check_gcv|ridge_regression_(con|che|dt))": (
        "a function of scikit-learn is called, and no class"
    ),
    r"test_(multiclass|laziness)$|test_scoring_string.*r2|test_incremental_text.*series": (
        "scikit-learn's own classes fail it with this Dask, too"
    ),
    r".*(cv_results|results_pred|gcv_sample_w|gcv_int|multioutput_sample)": (
        "errors of rows at every penalty are not kept"
    ),
}
# Why they answer otherwise, on purpose.
DIFFER = {
    "test_kernel_ridge_sparse": "exact rows are dense, and sparse ones refused",
    "test_kernel_ridge_singular": "a system without a Cholesky factor is refused",
    "test_nystroem_approximation": "additive_chi2, which is 0 of equal rows, is refused",
    "test_ridge_regression_unpenal": "a singular system with no penalty is refused",
    "test_regularization_limits": "1e-16 leaves out no row that others predict: refused",
    "test_(ridge_shapes|dense_sparse.*_ridge_cv)": "the intercept of one target is a float",
    "test_ridgecv_alphas_(zero|valid)": "the messages are streamkern's",
    "test_raises_value_error": "a weight for all rows is no vector, and refused",
    "test_(no_optimizer|lml_|constant_target)": "kernels have no theta, models no _y_train_std",
    r"test_calibration\[True-sigmoid|test_calibration_frozen\[isotonic": (
        "these scores are calibrated by themselves, and a calibration makes them no better"
    ),
    r"test_temperature_scaling\[False": "scores that are cut off at 0 and 1 have another order",
    "test_calibrated_classifier_cv_double_sample": "sums in single precision differ by over 1e-7",
    "test_calibrated_classifier_cv_works_with_large": "scores are near +1 and -1, and not large",
    "test_calibration_(display_compute|inconsistent_prefit)": "the class has a name of its own",
    "test_calibration_(default|with_non_sample)": "a function takes the place of the class here",
    "test_dtype_match": "coefficients of sums in double are double",
    "test_incremental_(basic|text)": "coef_ is a property, and Incremental copies no such",
    "test_(fit|score)_ndarrays|test_fit_shuffle_blocks": "inputs that are all constant are refused",
}


def reason(name: str, reasons: dict[str, str]) -> str | None:
    return next((why for pattern, why in reasons.items() if re.match(pattern, name)), None)


class Plugin:
    """Counts what becomes of tests, and ends those that cannot apply or take too long."""

    def __init__(self) -> None:
        self.counts, self.reasons = Counter[str](), Counter[str]()
        self.failed: dict[str, str] = {}

    @pytest.fixture
    def mocker(self) -> Any:  # as of pytest-mock
        start = SimpleNamespace(object=lambda *names: mock.patch.object(*names).start())
        yield SimpleNamespace(patch=start)
        mock.patch.stopall()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        used.clear()
        if why := reason(item.name, CANNOT_APPLY):
            cannot(why)
        signal.signal(signal.SIGALRM, lambda *_: pytest.fail(f"takes more than {SECONDS} s"))
        signal.alarm(SECONDS)
        try:
            return (yield)
        finally:
            signal.alarm(0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        name, why = report.nodeid.rpartition("::")[2], str(report.longrepr)
        if report.outcome == "failed" and (known := reason(name, DIFFER)):
            self.counts["answer otherwise"] += 1
            self.reasons[f"answer otherwise: {known}"] += 1
        elif report.outcome == "failed":
            self.failed[name] = why
        elif report.outcome == "skipped":
            cause = why.partition(MARK)[2].rstrip("')\"")
            self.counts["cannot apply" if cause else "skipped there"] += 1
            self.reasons[MARK + cause] += bool(cause)
        elif report.when == "call":
            self.counts["passed" if used else "passed without a class of ours"] += 1


def ran(name: str) -> bool:
    """Run one suite, print what came out, and say whether it was expected."""
    (module, names), plugin = SUITES[name], Plugin()
    options = ["-q", "--tb=short", "-pno:cacheprovider", "-pno:xdist", "-c", os.devnull, "--pyargs"]
    with ExitStack() as stack:
        for path, adapter in names.items():
            of, _, attribute = f"sklearn.{path}".rpartition(".")
            stack.enter_context(mock.patch.object(importlib.import_module(of), attribute, adapter))
        stack.enter_context(redirect_stdout(stack.enter_context(open(os.devnull, "w"))))  # noqa: PTH123
        pytest.main([*options, module], plugins=[plugin])
    counts = ", ".join(f"{n} {what}" for what, n in plugin.counts.items())
    print(f"{name}: {counts}, {len(plugin.failed)} failed")
    print(*(f"  {n} {why}" for why, n in plugin.reasons.items() if n), sep="\n")
    for test, text in plugin.failed.items():
        print(f"  FAILED {test}: {text.splitlines()[-1][:200]}")
    return bool(plugin.counts) and not plugin.failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run tests of others with streamkern's classes.")
    parser.add_argument("suites", nargs="*", help="some of them, by name; by default all")
    parser.add_argument("--dask-ml", metavar="FOLDER", help="a clone, to run the tests of")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="that a test may take")
    given = parser.parse_args()
    SECONDS = given.seconds
    if given.dask_ml:
        importlib.import_module("dask_ml.model_selection")  # and more, before names are replaced
        names = ("incremental", "parallel_post_fit", "partial")
        SUITES = {name: (f"{given.dask_ml}/tests/test_{name}.py", WRAPPED) for name in names}
    warnings.simplefilter("ignore")
    with dask.config.set(scheduler="synchronous"):
        went_well = [ran(name) for name in given.suites or SUITES]
    sys.exit(not all(went_well))
