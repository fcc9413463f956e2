"""Kernels: exact evaluation on two sets of rows, and their spectral distributions.

A shift-invariant kernel with k(x, x) = 1 is the characteristic function of a distribution of
frequencies w: k(x, x') = E cos(w^T (x - x')).  Each kernel here turns standard normal rows into
draws of that distribution, so that a feature map decides how the normal rows are made
(independent, orthogonal, quasi-random) and the kernel decides what becomes of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamkern.errors import ParameterError
from streamkern.kernels.base import Kernel, LengthScale, ShiftInvariantKernel
from streamkern.kernels.products import Linear, Polynomial
from streamkern.kernels.radial import Gaussian, Matern, RadialKernel
from streamkern.kernels.separable import Laplacian

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "KERNELS",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "LengthScale",
    "Linear",
    "Matern",
    "Polynomial",
    "RadialKernel",
    "ShiftInvariantKernel",
    "kernel_from",
]

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Gaussian(),
        Laplacian(),
        Matern(nu=0.5),
        Matern(nu=1.5),
        Matern(nu=2.5),
        Linear(),
        Polynomial(),
    )
}


def kernel_from(name: str, parameters: Mapping[str, Any]) -> Kernel:
    """Build a kernel from its name and parameters, as a model file holds them.

    Raises
    ------
    ParameterError
        If there is no kernel of that name, or it does not take these parameters.
    """
    if name not in KERNELS:
        raise ParameterError(
            f"kernel must be one of {', '.join(KERNELS)}, not {name!r}; choose one of them."
        )
    known = KERNELS[name].parameters()
    if not set(parameters) <= set(known):
        raise ParameterError(
            f"the kernel {name!r} takes {sorted(known)}, not {sorted(parameters)}; leave out the "
            f"others."
        )
    return replace(KERNELS[name], **parameters)
