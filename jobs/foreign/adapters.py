"""streamkern's classes under the names and parameters of others, whose tests call them so.

An adapter turns parameters, units and shapes, and computes nothing.  What streamkern has no option
for ends the test as one that cannot apply, with the reason.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pytest
from sklearn import get_config, kernel_approximation, kernel_ridge, linear_model
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
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
    name = "pairwise"  # type: ignore[assignment]

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
    if isinstance(theirs, kernels.RBF):
        return Gaussian(tuple(np.broadcast_to(theirs.length_scale, p).tolist())), 1.0
    given = {"gamma": gamma, "degree": degree, "coef0": coef0} if isinstance(theirs, str) else {}
    if theirs in ("chi2", "additive_chi2", "cosine") or gamma is None:
        given.pop("gamma", None)
    return Pairwise(theirs, tuple(given.items())), 1.0


class Adapter(BaseEstimator):  # type: ignore[misc]
    """An estimator with the parameters of another class, which fits one of streamkern."""

    def __init_subclass__(cls, of: Any = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if of is None:
            return
        signature = inspect.signature(of.__init__)

        def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807  the class's
            given = signature.bind(self, *args, **named)
            given.apply_defaults()
            vars(self).update({k: v for k, v in given.arguments.items() if k != "self"})

        __init__.__signature__ = signature  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[method-assign]

    def made(self, X: Any) -> Any:
        """Return the estimator of streamkern for rows (n, p)."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        used.append(type(self).__name__)
        if get_config()["array_api_dispatch"]:
            cannot("arrays are NumPy's: no other namespace is dispatched to")
        self.factor, self.shape = 1.0, np.shape(y)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        model = self.made(X)
        self.model_ = model.fit(self.rows(X), y, **weights)
        return self

    def rows(self, X: Any) -> Any:
        return X if self.factor == 1.0 else np.asarray(X) * self.factor

    def kernel_for(self, X: Any, **options: Any) -> Any:
        kernel, self.factor = kernel_of(self.kernel, np.shape(X)[1], **options)  # type: ignore[attr-defined]
        return kernel

    def predict(self, X: Any) -> Any:
        return self.model_.predict(self.rows(X))

    @property
    def coef_(self) -> Any:
        coef = np.asarray(self.model_.coef_).T  # (q, D), as there
        return coef.ravel() if len(self.shape) == 2 and self.shape[1] == 1 else coef

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_") and "model_" in vars(self):
            model = vars(self)["model_"]
            if not hasattr(model, name):
                cannot(f"{type(model).__name__} has no {name}")
            return getattr(model, name)
        raise AttributeError(name)


class Transformer(TransformerMixin, Adapter):
    def transform(self, X: Any) -> Any:
        return self.model_.transform(self.rows(X))

    def get_feature_names_out(self) -> Any:
        prefixes = (type(each).__name__.lower() for each in (self.model_, self))
        mine, theirs = prefixes
        names = self.model_.get_feature_names_out()
        return np.array([name.replace(mine, theirs) for name in names], dtype=object)

    @property
    def seed(self) -> int:
        return int(check_random_state(self.random_state).randint(1 << 31))


class KernelRidge(RegressorMixin, Adapter, of=kernel_ridge.KernelRidge):  # type: ignore[misc]
    def made(self, X: Any) -> Any:
        kernel = self.kernel_for(X, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        options = {"standardize": False, "fit_intercept": False}
        return ours.ExactKernelRidge(kernel, alpha=self.alpha, **options)


class RBFSampler(Transformer, of=kernel_approximation.RBFSampler):
    def made(self, X: Any) -> Any:  # noqa: ARG002
        if self.gamma == "scale":
            cannot("the unit of a length scale that follows from rows is their median distance")
        scale = 1 / np.sqrt(2 * self.gamma)
        return ours.RandomFourierFeatures(
            Gaussian(scale), self.n_components, random_state=self.seed
        )


class Nystroem(Transformer, of=kernel_approximation.Nystroem):
    def made(self, X: Any) -> Any:
        if self.kernel_params:
            cannot("a kernel is a value, and has its parameters")
        given = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        kernel = self.kernel_for(X, **{k: v for k, v in given.items() if v is not None})
        return ours.Nystroem(kernel, self.n_components, random_state=self.seed)


class PolynomialCountSketch(Transformer, of=kernel_approximation.PolynomialCountSketch):
    def made(self, X: Any) -> Any:  # noqa: ARG002
        self.factor = np.sqrt(self.gamma)
        kernel = Polynomial(self.degree, constant=self.coef0)
        return ours.TensorSketch(kernel, self.n_components, random_state=self.seed)

    def rows(self, X: Any) -> Any:
        return X * self.factor


LINEAR = {"feature_map": "identity", "standardize": False, "precision": "double"}


class Ridge(RegressorMixin, Adapter, of=linear_model.Ridge):  # type: ignore[misc]
    def made(self, X: Any) -> Any:  # noqa: ARG002
        if self.positive or self.solver == "lbfgs":
            cannot("coefficients have no sign that is asked for")
        if np.ndim(self.alpha):
            cannot("penalties for the targets are chosen from the rows, and not given")
        options = {"alpha": float(self.alpha), "fit_intercept": self.fit_intercept}
        iterates = self.solver in ("sparse_cg", "lsqr", "sag", "saga") and self.alpha > 0
        return ours.RandomFeatureRidge(**LINEAR, **options, solver="cg" if iterates else "direct")

    @property
    def solver_(self) -> str:
        return str(self.solver)


class RidgeCV(RegressorMixin, Adapter, of=linear_model.RidgeCV):  # type: ignore[misc]
    classifier, theirs = False, linear_model.RidgeCV

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if self.store_cv_results:
            cannot("errors of rows at every penalty are not kept")
        if self.cv is None:
            return super().fit(X, y, sample_weight)
        # What folds of a splitter choose is what others are compared with: theirs.
        return self.theirs(**self.get_params()).fit(X, y, sample_weight=sample_weight)

    def made(self, X: Any) -> Any:  # noqa: ARG002
        if self.scoring not in (None, "neg_mean_squared_error"):
            cannot("penalties are chosen by squared errors, and no other score")
        options = {"alpha": "loo", "alphas": self.alphas, "fit_intercept": self.fit_intercept}
        if self.classifier:
            options |= {"class_weight": self.class_weight, "calibration": None}
            return ours.RandomFeatureClassifier(**LINEAR, **options)
        per_target = self.alpha_per_target and len(self.shape) == 2
        return ours.RandomFeatureRidge(**LINEAR, **options, per_target=per_target)

    @property
    def best_score_(self) -> float:
        return -float(np.mean(np.square(self.model_.report_["cv_rmse"])))


class RidgeClassifier(ClassifierMixin, Adapter, of=linear_model.RidgeClassifier):  # type: ignore[misc]
    def made(self, X: Any) -> Any:  # noqa: ARG002
        options = {"alpha": float(self.alpha), "fit_intercept": self.fit_intercept}
        options |= {"class_weight": self.class_weight, "calibration": None}
        return ours.RandomFeatureClassifier(**LINEAR, **options)


class RidgeClassifierCV(ClassifierMixin, RidgeCV, of=linear_model.RidgeClassifierCV):  # type: ignore[misc]
    classifier, theirs = True, linear_model.RidgeClassifierCV


class GaussianProcess(RegressorMixin, Adapter, of=GaussianProcessRegressor):  # type: ignore[misc]
    """Every row a landmark: the exact mean, for the kernel as it is given."""

    def fit(self, X: Any, y: Any) -> Any:  # type: ignore[override]
        self.level, self.unit = 0.0, 1.0
        if self.normalize_y:
            spread = np.std(y, axis=0)
            self.level, self.unit = np.mean(y, axis=0), np.where(spread > 0, spread, 1.0)
        return super().fit(X, (y - self.level) / self.unit)

    def made(self, X: Any) -> Any:
        if np.ndim(self.alpha) or np.ndim(X) != 2:
            cannot("rows are numbers, and the penalty is one")
        if isinstance(self.kernel, kernels.WhiteKernel):
            cannot("a kernel is of two rows, and noise is none")
        self.factor, of_rows = 1.0, kernels.RBF() if self.kernel is None else self.kernel
        kernel, _ = kernel_of(of_rows, np.shape(X)[1])
        options = {"n_components": len(X), "standardize": False, "fit_intercept": False}
        options |= {"precision": "double", "feature_map": "nystroem", "alpha": float(self.alpha)}
        return ours.RandomFeatureRidge(kernel, **options)

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        if return_cov or "model_" not in vars(self):
            cannot("there are no covariances of predictions, and none before a fit")
        if not return_std:
            return self.model_.predict(X) * self.unit + self.level
        mean, std = self.model_.predict(X, return_std=True)
        # There the variance of the noise is given, and of the function alone.
        excess = np.square(std / self.model_.report_["noise"]) - 1
        deviation = np.sqrt(np.maximum(self.alpha * excess, 0))
        return mean * self.unit + self.level, deviation * self.unit

    @property
    def kernel_(self) -> NoReturn:
        cannot("parameters of kernels are chosen by held-out errors, and no likelihood is kept")

    def log_marginal_likelihood(self, *args: Any, **named: Any) -> NoReturn:  # noqa: ARG002
        cannot("parameters of kernels are chosen by held-out errors, and no likelihood is kept")

    def sample_y(self, *args: Any, **named: Any) -> NoReturn:  # noqa: ARG002
        cannot("functions are not drawn")


def scores(*, n_components: int = 64, random_state: Any = 0, **others: Any) -> Any:
    """Make a classifier without a calibration of its own, in the place of one by any parameters."""
    seed = random_state if isinstance(random_state, int) else 0
    used.append("RandomFeatureClassifier")
    return ours.RandomFeatureClassifier(
        "gaussian",
        n_components=n_components,
        alpha=1.0,
        calibration=None,
        random_state=seed,
        class_weight=others.get("class_weight"),
    )


def regression(*, random_state: Any = 0, **others: Any) -> Any:  # noqa: ARG001
    used.append("RandomFeatureRidge")
    return ours.RandomFeatureRidge(
        "gaussian", n_components=64, alpha=1.0, random_state=random_state or 0
    )
