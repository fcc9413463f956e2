"""Fitted models: a function of rows, a report, names of columns, and a file.

Frequencies are stored, not drawn again from the seed: neither NumPy's random streams nor LAPACK's
orthogonal matrices are promised to stay the same over the years, and a model must.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from streamkern._typing import Group
from streamkern._version import __version__
from streamkern.errors import ModelFileError
from streamkern.features import FeatureMap, uncombined
from streamkern.features.metric import described_metric, with_metric
from streamkern.kernels import Kernel, as_kernel, kernel_from
from streamkern.models.report_rows import model_rows, summary_line
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.parameters import AUTO, Parameters
from streamkern.predict.intervals import POWERS, RANKS, TENTHS, Intervals, leading_features
from streamkern.predict.predictor import Predictor, RowFunction
from streamkern.solve import NormalEquations
from streamkern.solve.solution import LeadingEquations
from streamkern.sources import Source
from streamkern.sources.columns import Columns, columns_of
from streamkern.statistics.triangle import Triangle
from streamkern.storage.codec import Kind, write_card
from streamkern.storage.untrusted import finite_array, finite_arrays

LIBRARIES = ("dask", "distributed", "h5py", "numpy", "scikit-learn", "scipy")


class FittedModel(ABC):
    """A fitted model, which does not change: estimators hold one, and commands use it alone."""

    file_kind: ClassVar[Kind]
    estimator: ClassVar[str]  # the name of the one that fits such models
    title: ClassVar[str] = "Model"  # of its card
    options_in: ClassVar[str | None] = "options"  # what of a card has the parameters of the map
    is_linear: ClassVar[bool] = True  # whether predictions are linear in the features of one map
    rows_of = staticmethod(model_rows)  # what its report says, in words
    predictor: RowFunction  # predictions, or scores of classes, of rows
    report: FitReport
    columns: Columns

    @abstractmethod
    def estimator_parameters(self) -> dict[str, Any]:
        """Return the parameters of an estimator that fits such a model."""

    def __repr__(self) -> str:
        return summary_line(type(self).__name__, self.report)

    @property
    def seconds(self) -> dict[str, float]:
        """What every part of the fit took, and in total."""
        return self.report["seconds"]

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of inputs, p."""

    @abstractmethod
    def stored(self, *, compact: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what this kind adds to a card, and its arrays, the fewest if it is compact."""

    def with_bad_rows(self, on_bad_rows: str) -> Self:
        """Return the model with what it does about rows that are not finite, which come to it."""
        own: Any = self
        return replace(own, parameters=replace(own.parameters, on_bad_rows=on_bad_rows))

    @classmethod
    @abstractmethod
    def restored(cls, file: Group, card: dict[str, Any], *, with_equations: bool) -> Self:
        """Return the model of an open file; what is raised on the way is damage."""

    def save(self, path: str | Path, *, compact: bool = False, force: bool = False) -> None:
        """Write the model to an HDF5 file, without normal equations if it is to be compact."""
        card, arrays = self.stored(compact=compact)
        card |= {
            "kind": self.estimator,
            "report": self.report,
            "versions": {"streamkern": __version__} | {name: version(name) for name in LIBRARIES},
            "feature_names": self.feature_names,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_card(path, self.file_kind, card, arrays, force=force)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the inputs, None where neither a file nor a frame named them."""
        names = self.columns.input_names
        return None if names is None else tuple(names)

    def check_inputs(self, X: Any) -> None:
        """Raise DataError if a source has other inputs than the rows of the fit."""
        if isinstance(X, Source):
            self.columns.check_inputs(X)

    def check_rows(self, source: Source) -> None:
        """Raise DataError if a source has other inputs or targets, or these in other order."""
        self.check_inputs(source)
        self.columns.check_targets(columns_of(source).target_names)


def through(name: str, description: str | None = None) -> Any:
    """Return a property that is an attribute of an attribute."""
    return property(attrgetter(name), doc=description)


def described_kernel(kernel: Kernel | str) -> dict[str, Any]:
    if kernel == AUTO:
        return {"name": AUTO, "parameters": {}}
    kernel = as_kernel(kernel)
    return {"name": kernel.name, "parameters": kernel.parameters()}


def restored_kernel(described: dict[str, Any]) -> Kernel:
    return kernel_from(described["name"], described["parameters"])


def described_parameters(parameters: Parameters) -> tuple[dict[str, Any], dict[str, Any]]:
    options = parameters.values()
    kernel = described_kernel(options.pop("kernel"))
    return options | {"metric": described_metric(options["metric"])}, kernel


def restored_parameters(
    options: dict[str, Any], kernel: dict[str, Any], feature_map: FeatureMap
) -> Parameters:
    """Return the parameters that a card describes, a metric from the map."""
    given = AUTO if kernel["name"] == AUTO else restored_kernel(kernel)
    return Parameters(given, **with_metric(options, feature_map))


def predictor_arrays(predictor: Predictor) -> dict[str, Any]:
    arrays = {"map": predictor.feature_map.arrays()}
    return {**arrays, "coef": predictor.coef, "intercept": predictor.intercept}


def restored_intervals(group: Group, predictor: Predictor) -> Intervals:
    features, q = leading_features(predictor.feature_map), predictor.n_targets
    of_features = {"coef": (features.n_components, q), "intercept": (q,)}
    linear: Any = finite_arrays(group["features"], of_features)
    groups, levels, _ = finite_array(group, "scores").shape
    shapes = {"slopes": (POWERS, q), "ends": (2, q), "edges": (TENTHS - 1, q), "levels": (levels,)}
    found = finite_arrays(group, shapes | {"ranks": (RANKS, q), "scores": (groups, levels, q)})
    if not (0 < groups <= TENTHS and levels and (found["scores"] >= 0).all()):
        raise ValueError(f"intervals of {groups} groups and {levels} levels")
    return Intervals(Predictor(features, **linear, precision=predictor.precision), **found)


def restored_equations(group: Group, predictor: Predictor) -> NormalEquations:
    D, q = predictor.coef.shape
    gram = Triangle.unpacked(finite_array(group, "gram", (D * (D + 1) // 2,)))
    mean = finite_array(group, "feature_mean", (D,))
    vectors = dict.fromkeys(("alphas", "effective_dof", "train_rss"), (q,))
    found = finite_arrays(group, vectors | dict.fromkeys(("weight", "intercept", "floor"), ()))
    row_weight = finite_array(group, "row_weight", ()) if "row_weight" in group else np.ones(())
    weight, intercept = float(found.pop("weight")), bool(found.pop("intercept"))
    floor = float(found.pop("floor"))
    if not (weight > 0 and 0 < row_weight <= 1):
        raise ValueError(f"equations of weight {weight:g}, of which rows have {row_weight:g}")
    for name, values in found.items():
        if (values < 0).any():
            raise ValueError(f"{name} holds numbers below zero")
    if "samples" in group:
        raise ModelFileError(
            "the model has samples of the posterior, which are gone: streamkern 0.1.0 of 28 "
            "November 2026 or before reads the file; fit again."
        )
    leading = None
    if "leading" in group:
        leading = _restored_leading(group["leading"], predictor)
    return NormalEquations(
        gram, mean, weight=weight, intercept=intercept, floor=floor,
        row_weight=float(row_weight), leading=leading, **found,
    )  # fmt: skip


def _restored_leading(group: Group, predictor: Predictor) -> LeadingEquations:
    mean = finite_array(group, "feature_mean")
    m = mean.size
    beyond, noise = (float(finite_array(group, name, ())) for name in ("beyond", "noise"))
    if mean.shape != (m,) or not 0 < m <= uncombined(predictor.feature_map).n_components:
        raise ValueError(f"equations of {mean.shape} leading features")
    if min(beyond, noise) < 0:
        raise ValueError(f"features that add {beyond:g} to the variance, and {noise:g} to rows")
    gram = Triangle.unpacked(finite_array(group, "gram", (m * (m + 1) // 2,)))
    return LeadingEquations(gram, mean, beyond, noise)
