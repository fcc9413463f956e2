"""The maps that options can ask for, by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from streamkern.errors import ParameterError
from streamkern.features.binning import RandomBinning
from streamkern.features.grid import GridFourierFeatures
from streamkern.features.identity import Identity
from streamkern.features.nystroem import Nystroem
from streamkern.features.quasi_monte_carlo import QuasiRandomFourierFeatures
from streamkern.features.random_fourier import RandomFourierFeatures
from streamkern.features.structured_orthogonal import StructuredFourierFeatures
from streamkern.features.tensor_sketch import TensorSketch

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamkern.features.base import FeatureMap
    from streamkern.kernels import Kernel, ShiftInvariantKernel


@dataclass(frozen=True)
class Family:
    """A way to make a map for a kernel.

    Parameters
    ----------
    make : callable
        Takes a kernel, D and `random_state`, and `paired` where there are phases; refuses with
        ParameterError a kernel that the map is not for.
    help : str
        What it is, in a few words.
    has_phases : bool
        Whether features may come in pairs, or with phases instead.
    rows_a_feature : int
        Rows of the spread sample for every feature, for a map that is made from rows.
    takes_linear : bool
        Whether it is a map for the linear kernel, which others leave to the identity.
    """

    make: Callable[..., FeatureMap]
    help: str
    has_phases: bool = False
    rows_a_feature: int = 0
    takes_linear: bool = False

    def map_of(
        self,
        kernel: Kernel,
        n_components: int,
        *,
        paired: bool = True,
        precision: str = "double",
        random_state: int = 0,
    ) -> FeatureMap:
        """Return a map that is not drawn yet.

        Raises
        ------
        ParameterError
            If the map is not for this kernel or D, or has no phases.
        """
        options: dict[str, Any] = {"random_state": random_state}
        if self.has_phases:
            options["paired"] = paired
        elif not paired:
            raise ParameterError("this map has no phases; leave them out, or take another map.")
        if self.rows_a_feature:
            options["jitter"] = _JITTER[precision]
        return self.make(kernel, n_components, **options)


# Beside the largest k(z, z): what single precision does not resolve would be noise, whitened.
_JITTER = {"single": 3e-6, "double": 1e-10}


def _identity(kernel: Kernel, n_components: int, random_state: int) -> Identity:  # noqa: ARG001
    return Identity()


def _grid(
    kernel: ShiftInvariantKernel,
    n_components: int,
    random_state: int,  # noqa: ARG001  nothing is random
) -> GridFourierFeatures:
    return GridFourierFeatures(kernel, n_components)


def _landmarks(how: str, help_text: str) -> Family:
    make = partial(Nystroem, landmarks=how)
    return Family(make, help_text, rows_a_feature=8, takes_linear=True)


# For a given kernel; the linear kernel has the identity map unless one is asked for that takes it.
FAMILIES: dict[str, Family] = {
    "orthogonal": Family(
        partial(RandomFourierFeatures, orthogonal=True), "orthogonal frequencies", has_phases=True
    ),
    "iid": Family(
        partial(RandomFourierFeatures, orthogonal=False), "independent frequencies", has_phases=True
    ),
    "sorf": Family(
        StructuredFourierFeatures,
        "orthogonal frequencies by fast transforms, for hundreds of inputs",
        has_phases=True,
    ),
    "qmc": Family(
        partial(QuasiRandomFourierFeatures, sequence="sobol"),
        "frequencies at Sobol points, for few inputs",
        has_phases=True,
    ),
    "halton": Family(
        partial(QuasiRandomFourierFeatures, sequence="halton"),
        "frequencies at Halton points",
        has_phases=True,
    ),
    "grid": Family(_grid, "a grid of frequencies, for one to three inputs"),
    "nystroem": _landmarks("kmeans", "the kernel at landmarks, centres of k-means"),
    "nystroem-uniform": _landmarks("uniform", "the kernel at random rows"),
    "nystroem-pivoted": _landmarks("pivoted", "the kernel at randomly pivoted rows"),
    "binning": Family(RandomBinning, "cells of random grids, for the Laplacian kernel"),
    "sketch": Family(TensorSketch, "products of inputs, hashed, for the polynomial kernel"),
    "identity": Family(_identity, "the inputs as features"),
}
