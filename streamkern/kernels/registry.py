"""Kernels by their names, and from what model files hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamkern.errors import ParameterError
from streamkern.errors.formatting import unknown
from streamkern.kernels.base import Kernel, ShiftInvariantKernel
from streamkern.kernels.combined import OnColumns, Product, Sum
from streamkern.kernels.dot_product import Linear, Polynomial
from streamkern.kernels.radial import Gaussian, InverseMultiquadric, Matern, RationalQuadratic
from streamkern.kernels.scaled import ScaledKernel
from streamkern.kernels.separable import Cauchy, Laplacian, Periodic

if TYPE_CHECKING:
    from collections.abc import Mapping

_USUAL: tuple[Kernel, ...] = (
    Gaussian(),
    Laplacian(),
    Matern(nu=0.5),
    Matern(nu=1.5),
    Matern(nu=2.5),
    RationalQuadratic(),
    InverseMultiquadric(),
    Cauchy(),
    Periodic(),
    Polynomial(),
    Linear(),
)
_OTHER_NAMES = {"matern": Matern(), "rbf": Gaussian()}
KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in _USUAL} | _OTHER_NAMES


def simple_kernel(name: str, parameters: Mapping[str, Any]) -> Kernel:
    """Return the kernel of one of the names in `KERNELS`, with other parameters.

    Raises
    ------
    ParameterError
        If there is no kernel of that name, or it does not take these parameters.
    """
    if name == "multiquadric":
        raise ParameterError(
            "the multiquadric sqrt(1 + r^2) is not positive definite, so there is no kernel ridge "
            "regression with it; take inverse-multiquadric."
        )
    if name not in KERNELS:
        raise ParameterError(
            f"kernel must be one of {', '.join(KERNELS)}, not {unknown(name, KERNELS)}; take one."
        )
    known = KERNELS[name].parameters()
    if not set(parameters) <= set(known):
        raise ParameterError(
            f"the kernel {name!r} takes {sorted(known)}, not {sorted(parameters)}; leave out the "
            f"others."
        )
    return replace(KERNELS[name], **parameters)


def restored_kernel(name: str, parameters: Mapping[str, Any]) -> Kernel:
    """Return the kernel that a name and JSON parameters were taken from.

    Raises
    ------
    ParameterError
        If there is no such kernel.
    """
    try:
        kernel = _restored(name, parameters)
    except ParameterError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ParameterError(
            f"the kernel {name!r} lacks parameters; the file is damaged."
        ) from error
    if kernel.name != name:
        raise ParameterError(
            f"the parameters are those of the kernel {kernel.name!r}, not of {name!r}; the file is "
            f"damaged."
        )
    return kernel


def _restored(name: str, parameters: Mapping[str, Any]) -> Kernel:
    if "terms" in parameters:
        terms = tuple(_part(term) for term in parameters["terms"])
        return Sum(terms, tuple(map(float, parameters["weights"])))
    if "factors" in parameters:
        return Product(tuple(_part(factor) for factor in parameters["factors"]))
    if "columns" in parameters:
        kernel = _part(parameters["kernel"])
        if not isinstance(kernel, ScaledKernel):
            raise TypeError(kernel)
        return OnColumns(kernel, tuple(parameters["columns"]))
    return simple_kernel(name.partition("(")[0], parameters)


def _part(stored: Mapping[str, Any]) -> ShiftInvariantKernel:
    kernel = _restored(stored["name"], stored["parameters"])
    if not isinstance(kernel, ShiftInvariantKernel):
        raise TypeError(kernel)
    return kernel
