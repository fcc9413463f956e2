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
from streamkern.kernels.base import Kernel as Kernel
from streamkern.kernels.shift_invariant import DistanceKernel as DistanceKernel
from streamkern.kernels.shift_invariant import ShiftInvariantKernel as ShiftInvariantKernel
from streamkern.kernels.shift_invariant import length_scale_of as length_scale_of
from streamkern.kernels.radial import Gaussian as Gaussian, Laplacian as Laplacian
from streamkern.kernels.radial import RadialKernel as RadialKernel
from streamkern.kernels.scale_mixtures import InverseMultiquadric as InverseMultiquadric
from streamkern.kernels.scale_mixtures import Matern as Matern
from streamkern.kernels.scale_mixtures import RationalQuadratic as RationalQuadratic
from streamkern.kernels.separable import Cauchy as Cauchy, Periodic as Periodic
from streamkern.kernels.dot_product import Linear as Linear, Polynomial as Polynomial
from streamkern.kernels.sums import Sum as Sum
from streamkern.kernels.catalogue import KERNELS as KERNELS, as_kernel as as_kernel
from streamkern.kernels.catalogue import kernel_from as kernel_from, parsed_kernel as parsed_kernel
from streamkern.kernels.catalogue import separated as separated
