"""What is exported of a model, whatever the format."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern import kernels
from streamkern.errors import ParameterError
from streamkern.estimators.loading import fitted_of
from streamkern.features import FeatureMap, KernelColumns
from streamkern.predict.predictor import Form, Predictor

ONNX, C = "operators of ONNX", "functions of C"
PRECISIONS: dict[str, Any] = {"single": np.dtype(np.float32), "double": np.dtype(np.float64)}
# Coefficients of the polynomials in a of Matern kernels, of which exp(-a) is the other factor.
_MATERN: dict[float, tuple[float, ...]] = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1 / 3, 1.0, 1.0)}
_OUTPUTS = {
    "RandomFeatureClassifier": "y_proba",
    "RandomFeatureRidge": "y_pred",
    "RandomFeaturePCA": "scores",
}


def exported(model: Any, file: str, precision: str | None) -> tuple[Predictor, str, Any]:
    """Return the predictor of a model, the name of what it gives, and the rule of a classifier."""
    fitted: Any = fitted_of(model)
    output = _OUTPUTS.get(getattr(fitted, "estimator", ""))
    if output is None:
        raise ParameterError(
            f"{file} is of a fitted RandomFeatureRidge, RandomFeatureClassifier or "
            f"RandomFeaturePCA, not of {type(fitted).__name__}; fit one first."
        )
    if precision not in (None, *PRECISIONS):
        raise ParameterError(
            f"precision must be 'single' or 'double', not {precision!r}; choose one."
        )
    predictor = replace(fitted.predictor, precision=precision or fitted.predictor.precision)
    return predictor, output, getattr(fitted, "rule", None)


def exported_form(predictor: Predictor) -> Form:
    """Return the form of predictions, in double where coefficients are of values at landmarks.

    There they are large and cancel.
    """
    form = predictor.form
    if isinstance(getattr(form.feature_map, "inner", form.feature_map), KernelColumns):
        return replace(predictor, precision="double").form
    return form


def refuse_map(feature_map: FeatureMap, made_of: str) -> None:
    raise ParameterError(
        f"the map {feature_map.name!r} is more than {made_of} express here; take Fourier features, "
        f"landmarks of a kernel of the Euclidean distance, or identity."
    )


def kernel_value(do: Callable[..., Any], kernel: kernels.Kernel, a: Any, made_of: str) -> Any:
    """Return a kernel, made by operators of ONNX's names, of a sum a over inputs.

    The sum is of products with a landmark, of the Laplacian kernel of distances in length scales,
    and else of their squares.
    """
    if isinstance(kernel, kernels.Linear):
        return a
    if isinstance(kernel, kernels.Polynomial):
        return do("Pow", do("Add", a, kernel.constant), kernel.degree)
    if isinstance(kernel, kernels.Laplacian):
        return do("Exp", do("Neg", a))
    if isinstance(kernel, kernels.Gaussian):
        return do("Exp", do("Mul", a, -0.5))
    if isinstance(kernel, (kernels.RationalQuadratic, kernels.InverseMultiquadric)):
        return do("Pow", do("Add", do("Mul", a, 0.5 / kernel.shape), 1.0), -kernel.shape)
    if isinstance(kernel, kernels.Matern) and kernel.nu in _MATERN:
        a = do("Mul", do("Sqrt", a), math.sqrt(2.0 * kernel.nu))
        polynomial, *others = _MATERN[kernel.nu]
        for coefficient in others:  # by Horner's rule
            polynomial = do("Add", do("Mul", a, polynomial), coefficient)
        return do("Mul", do("Exp", do("Neg", a)), polynomial)
    raise ParameterError(
        f"the kernel {kernel.name!r} at landmarks is more than {made_of} express here; take "
        f"Fourier features, or the Gaussian or Laplacian kernel."
    )
