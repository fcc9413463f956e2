"""Families of feature maps: the names that options have for them."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamkern.features.base import FeatureMap
    from streamkern.kernels import Kernel

# Beside the largest k(z, z): what single precision does not resolve would be noise, whitened.
_JITTER = {"single": 3e-6, "double": 1e-10}


@dataclass(frozen=True)
class Family:
    """A way to make a map for a kernel: a class, what it is in a few words, and arguments."""

    made: type[FeatureMap]
    help: str
    arguments: Mapping[str, Any]

    @property
    def has_phases(self) -> bool:
        return "paired" in signature(self.made).parameters

    def map_of(
        self,
        kernel: Kernel,
        n_components: int,
        *,
        paired: bool = True,
        precision: str = "double",
        random_state: int = 0,
    ) -> FeatureMap:
        """Return a map that is not drawn yet, or refuse what it is not for."""
        if not (paired or self.has_phases):
            raise ParameterError("this map has no phases; leave them out, or take another map.")
        options = {
            "kernel": kernel,
            "n_components": n_components,
            "paired": paired,
            "jitter": _JITTER[precision],
            "random_state": random_state,
            **self.arguments,
        }
        taken = signature(self.made).parameters
        return self.made(**{name: options[name] for name in taken if name in options})


# By the names that options have, in the order in which classes declare them.
FAMILIES: dict[str, Family] = {}
# Whose names those are, so that no class takes that of another.
OWNERS: dict[str, type[FeatureMap]] = {}
