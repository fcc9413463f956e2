"""Kernels: exact evaluation on two sets of rows, and their spectral distributions.

A kernel of your own derives from `Kernel`: read `base.py`.  If it has a length scale, `scaled.py`
and, for the Euclidean distance, `radial.py` leave less to write; `Gaussian` there is an example.

A shift-invariant kernel with k(x, x) = 1 is the characteristic function of a distribution of
frequencies w: k(x, x') = E cos(w^T (x - x')).  Each kernel here turns standard normal rows into
draws of that distribution, so that a feature map decides how the normal rows are made
(independent, orthogonal, quasi-random) and the kernel decides what becomes of them.
"""

# ruff: noqa: I001  kernels are listed in the order in which they are declared
from streamkern.kernels.base import Kernel
from streamkern.kernels.shift_invariant import ShiftInvariantKernel, length_scale_of
from streamkern.kernels.scaled import ScaledKernel
from streamkern.kernels.radial import Gaussian, Laplacian, RadialKernel
from streamkern.kernels.scale_mixtures import InverseMultiquadric, Matern, RationalQuadratic
from streamkern.kernels.separable import Cauchy, Periodic
from streamkern.kernels.dot_product import Linear, Polynomial
from streamkern.kernels.combined import Combined, Sum, simple_kernels
from streamkern.kernels.products import Product
from streamkern.kernels.column_kernels import OnColumns
from streamkern.kernels.catalogue import KERNELS
from streamkern.kernels.expressions import as_kernel, kernel_from, parsed_kernel, separated

__all__ = [
    "KERNELS", "Cauchy", "Combined", "Gaussian", "InverseMultiquadric", "Kernel", "Laplacian",
    "Linear", "Matern", "OnColumns", "Periodic", "Polynomial", "Product", "RadialKernel",
    "RationalQuadratic", "ScaledKernel", "ShiftInvariantKernel", "Sum", "as_kernel", "kernel_from",
    "length_scale_of", "parsed_kernel", "separated", "simple_kernels",
]  # fmt: skip
