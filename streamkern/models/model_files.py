"""Parts that files of fitted models share: parameters, predictors, normal equations.

Frequencies are stored, not drawn again from the seed: neither NumPy's random streams nor LAPACK's
orthogonal matrices are promised to stay the same over the years, and a model must.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.features.metric import described_metric, with_metric
from streamkern.kernels import Kernel, as_kernel, kernel_from
from streamkern.parameters.parameters import Parameters
from streamkern.predict.predictor import Predictor
from streamkern.statistics.triangle import Triangle
from streamkern.storage.codec import restored_map
from streamkern.storage.untrusted import finite_array, finite_arrays

if TYPE_CHECKING:
    import h5py

    from streamkern.features import FeatureMap
    from streamkern.solve import NormalEquations


def described_kernel(kernel: Kernel | str) -> dict[str, Any]:
    """Return a kernel as plain JSON values."""
    kernel = as_kernel(kernel)
    return {"name": kernel.name, "parameters": kernel.parameters()}


def restored_kernel(described: dict[str, Any]) -> Kernel:
    """Return the kernel that a card describes."""
    return kernel_from(described["name"], described["parameters"])


def described_parameters(parameters: Parameters) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options and their kernel as plain JSON values."""
    options = parameters.values()
    kernel = described_kernel(options.pop("kernel"))
    return options | {"metric": described_metric(options["metric"])}, kernel


def restored_parameters(
    options: dict[str, Any], kernel: dict[str, Any], feature_map: FeatureMap
) -> Parameters:
    """Return the parameters that a card describes, a metric from the map."""
    return Parameters(restored_kernel(kernel), **with_metric(options, feature_map))


def predictor_arrays(predictor: Predictor) -> dict[str, Any]:
    """Return the arrays of a predictor, whose map and precision are on a card."""
    arrays = {"map": predictor.feature_map.arrays()}
    return {**arrays, "coef": predictor.coef, "intercept": predictor.intercept}


def restored_predictor(group: h5py.Group, card: dict[str, Any], *, flat: bool) -> Predictor:
    """Return the predictor that a card and its arrays describe."""
    feature_map = restored_map(group, card)
    coef, intercept = finite_array(group, "coef"), finite_array(group, "intercept")
    D = feature_map.n_components
    if coef.ndim != 2 or len(coef) != D or intercept.shape != coef.shape[1:]:
        raise ValueError(f"coefficients of shape {coef.shape} for {D} features")
    return Predictor(feature_map, coef, intercept, precision=card["precision"], flat=flat)


def restored_equations(group: h5py.Group, D: int, q: int) -> NormalEquations:
    """Return the normal equations of D features and q targets in a group."""
    from streamkern.solve import NormalEquations  # noqa: PLC0415  slow, with SciPy

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
    return NormalEquations(
        gram, mean, weight=weight, intercept=intercept, floor=floor,
        row_weight=float(row_weight), **found,
    )  # fmt: skip
