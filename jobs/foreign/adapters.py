"""streamkern's classes under the names and parameters of others, whose tests call them so.

An adapter turns parameters, units and shapes, and computes nothing.  What streamkern has no option
for ends the test as one that cannot apply, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pytest
from sklearn import kernel_approximation, kernel_ridge, linear_model
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_random_state

import streamkern as ours
from streamkern import Gaussian, Kernel, Laplacian, Linear, Polynomial

NOT_APPLICABLE = "not applicable: "
used: list[str] = []  # the adapters that were fitted since it was cleared


def cannot(reason: str) -> NoReturn:
    pytest.skip(NOT_APPLICABLE + reason)


@dataclass(frozen=True)
class Pairwise(Kernel):
    """A kernel of the user's own: what scikit-learn evaluates by a name, or a function of rows."""

    metric: Any = "linear"
    options: tuple[tuple[str, Any], ...] = ()
    family = "pairwise"
    name = "pairwise"

    def __call__(self, X: Any, Z: Any) -> Any:
        return pairwise_kernels(X, Z, self.metric, filter_params=True, **dict(self.options))


def kernel_of(theirs: Any, p: int, gamma: Any = None, degree: Any = 3, coef0: Any = 1) -> Any:
    """Return a kernel of streamkern, and what rows are multiplied by before it."""
    if theirs == "precomputed":
        cannot("kernels are evaluated on rows, and no kernel matrix is taken")
    unit = 1 / p if gamma is None else gamma
    if theirs == "linear":
        return Linear(), 1.0
    if theirs == "rbf":
        return Gaussian(1 / np.sqrt(2 * unit)), 1.0
    if theirs == "laplacian":
        return Laplacian(1 / unit), 1.0
    if theirs in ("poly", "polynomial") and degree == int(degree):
        return Polynomial(int(degree), constant=coef0), np.sqrt(unit)
    given = {"gamma": gamma, "degree": degree, "coef0": coef0} if isinstance(theirs, str) else {}
    if theirs in ("chi2", "additive_chi2", "cosine") or gamma is None:
        given.pop("gamma", None)
    return Pairwise(theirs, tuple(given.items())), 1.0


class Adapter:
    """Before a class of another project: its parameters, and a fit by a class of streamkern."""

    factor: Any = 1.0

    def made(self, X: Any) -> Any:
        """Return the estimator of streamkern for rows (n, p)."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        used.append(type(self).__name__)
        self.shape = np.shape(y)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        model = self.made(X)
        self.model_ = model.fit(self.rows(X), y, **weights)
        return self

    def rows(self, X: Any) -> Any:
        return X if self.factor == 1.0 else X * self.factor

    def kernel_for(self, X: Any, **options: Any) -> Any:
        kernel, self.factor = kernel_of(self.kernel, np.shape(X)[1], **options)
        return kernel

    def predict(self, X: Any) -> Any:
        return self.model_.predict(self.rows(X))

    def transform(self, X: Any) -> Any:
        return self.model_.transform(self.rows(X))

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_") and "model_" in vars(self):
            model = vars(self)["model_"]
            if not hasattr(model, name) and name != "feature_names_in_":
                cannot(f"{type(model).__name__} has no {name}")
            return getattr(model, name)
        raise AttributeError(name)


class Map(Adapter):
    @property
    def _n_features_out(self) -> int:
        return len(self.model_.get_feature_names_out())

    @property
    def seed(self) -> int:
        return int(check_random_state(self.random_state).randint(1 << 31))


class KernelRidge(Adapter, kernel_ridge.KernelRidge):
    def made(self, X: Any) -> Any:
        kernel = self.kernel_for(X, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        options = {"standardize": False, "fit_intercept": False}
        return ours.ExactKernelRidge(kernel, alpha=self.alpha, **options)


class RBFSampler(Map, kernel_approximation.RBFSampler):
    def made(self, X: Any) -> Any:  # noqa: ARG002
        if self.gamma == "scale":
            cannot("the unit of a length scale that follows from rows is their median distance")
        kernel = Gaussian(1 / np.sqrt(2 * self.gamma))
        return ours.RandomFourierFeatures(kernel, self.n_components, random_state=self.seed)


class Nystroem(Map, kernel_approximation.Nystroem):
    def made(self, X: Any) -> Any:
        if self.kernel_params:
            cannot("a kernel is a value, and has its parameters")
        given = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        kernel = self.kernel_for(X, **{k: v for k, v in given.items() if v is not None})
        return ours.Nystroem(kernel, self.n_components, random_state=self.seed)


LINEAR = {"feature_map": "identity", "standardize": False, "precision": "double"}


class LinearModel(Adapter):
    classifies = False

    def made(self, X: Any) -> Any:  # noqa: ARG002
        options = LINEAR | self.penalty() | {"fit_intercept": self.fit_intercept}
        if self.classifies:
            options |= {"class_weight": self.class_weight, "calibration": None}
            return ours.RandomFeatureClassifier(**options)
        return ours.RandomFeatureRidge(**options)

    def penalty(self) -> dict[str, Any]:
        if np.ndim(self.alpha):
            cannot("penalties for the targets are chosen from the rows, and not given")
        return {"alpha": float(self.alpha)}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        super().fit(X, y, sample_weight)
        coef = np.asarray(self.model_.coef_).T  # (q, D), as there
        self.coef_ = coef.ravel() if len(self.shape) == 2 and self.shape[1] == 1 else coef
        return self


class Ridge(LinearModel, linear_model.Ridge):
    @property
    def solver_(self) -> str:
        return str(self.solver)


class RidgeClassifier(LinearModel, linear_model.RidgeClassifier):
    classifies = True


class Chosen(LinearModel):
    """A penalty chosen by leaving rows out; by folds of a splitter theirs, to be compared with."""

    def penalty(self) -> dict[str, Any]:
        if self.scoring not in (None, "neg_mean_squared_error"):
            cannot("penalties are chosen by squared errors, and no other score")
        given = {"alpha": "loo", "alphas": self.alphas}
        several = len(self.shape) == 2 and not self.classifies
        return given | ({"per_target": self.alpha_per_target} if several else {})

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if self.store_cv_results:
            cannot("errors of rows at every penalty are not kept")
        if self.cv is None:
            super().fit(X, y, sample_weight)
            self.best_score_ = -float(np.mean(np.square(self.model_.report_["cv_rmse"])))
            return self
        theirs = linear_model.RidgeClassifierCV if self.classifies else linear_model.RidgeCV
        self.model_ = theirs(**self.get_params()).fit(X, y, sample_weight=sample_weight)
        self.coef_ = self.model_.coef_
        return self


class RidgeCV(Chosen, linear_model.RidgeCV):
    pass


class RidgeClassifierCV(Chosen, linear_model.RidgeClassifierCV):
    classifies = True


def scores(*, random_state: Any = 0, **others: Any) -> Any:
    """Make a classifier without a calibration of its own, in the place of one by any parameters."""
    used.append("RandomFeatureClassifier")
    options = {"n_components": 64, "alpha": 1.0, "calibration": None}
    options |= {"class_weight": others.get("class_weight")}
    return ours.RandomFeatureClassifier("gaussian", **options, random_state=random_state or 0)


def regression(*, random_state: Any = 0, **others: Any) -> Any:  # noqa: ARG001
    used.append("RandomFeatureRidge")
    options = {"n_components": 64, "alpha": 1.0, "random_state": random_state or 0}
    return ours.RandomFeatureRidge("gaussian", **options)
