"""The maps that options can ask for, by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from streamkern.errors import ParameterError
from streamkern.features.fourier import RandomFourierFeatures
from streamkern.features.grid import GridFourierFeatures
from streamkern.features.identity import Identity
from streamkern.features.quasi import QuasiRandomFourierFeatures
from streamkern.features.structured import StructuredFourierFeatures

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
    nested : bool
        Whether its leading features are a map of the same kernel, as `FeatureMap.first` returns it.
    """

    make: Callable[..., FeatureMap]
    help: str
    has_phases: bool = False
    nested: bool = True

    def map_of(
        self, kernel: Kernel, n_components: int, *, paired: bool = True, random_state: int = 0
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
        return self.make(kernel, n_components, **options)


def _identity(kernel: Kernel, n_components: int, random_state: int) -> Identity:  # noqa: ARG001
    return Identity()


def _grid(
    kernel: ShiftInvariantKernel,
    n_components: int,
    random_state: int,  # noqa: ARG001  nothing is random
) -> GridFourierFeatures:
    return GridFourierFeatures(kernel, n_components)


# For a given kernel; the linear kernel has the identity map whatever is asked for.
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
    "identity": Family(_identity, "the inputs as features", nested=False),
}
