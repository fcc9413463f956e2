"""Kernels: exact evaluation on two sets of rows, and their spectral distributions.

A kernel of your own derives from `Kernel`: read `base.py`.  If it has a length scale,
`shift_invariant.py` and, for the Euclidean distance, `radial.py` leave less to write; `Gaussian`
there is an example.

A shift-invariant kernel with k(x, x) = 1 is the characteristic function of a distribution of
frequencies w: k(x, x') = E cos(w^T (x - x')).  Each kernel here turns standard normal rows into
draws of that distribution, so that a feature map decides how the normal rows are made
(independent, orthogonal, quasi-random) and the kernel decides what becomes of them.
"""

# ruff: noqa: I001  kernels are listed in the order in which they are declared
from streamkern.kernels.base import Kernel
from streamkern.kernels.shift_invariant import DistanceKernel, ShiftInvariantKernel, length_scale_of
from streamkern.kernels.radial import Gaussian, Laplacian, RadialKernel
from streamkern.kernels.scale_mixtures import InverseMultiquadric, Matern, RationalQuadratic
from streamkern.kernels.separable import Cauchy, Periodic
from streamkern.kernels.dot_product import Linear, Polynomial
from streamkern.kernels.sums import Sum
from streamkern.kernels.catalogue import KERNELS, as_kernel, kernel_from, parsed_kernel, separated

__all__ = [
    "KERNELS", "Cauchy", "DistanceKernel", "Gaussian", "InverseMultiquadric", "Kernel", "Laplacian",
    "Linear", "Matern", "Periodic", "Polynomial", "RadialKernel", "RationalQuadratic",
    "ShiftInvariantKernel", "Sum", "as_kernel", "kernel_from", "length_scale_of", "parsed_kernel",
    "separated",
]  # fmt: skip
