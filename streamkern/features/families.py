"""Feature maps by name: of files, and of options, which have a family of maps for a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

from streamkern._typing import Array
from streamkern.errors import ModelFileError, ParameterError
from streamkern.registry import check_map

if TYPE_CHECKING:
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

    @property
    def rows_a_feature(self) -> int:
        """Rows of the spread sample for every feature, 0 for a map that is made from none."""
        return getattr(self.made, "rows_a_feature", 0)

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
            "jitter": _JITTER.get(precision, _JITTER["single"]),
            "random_state": random_state,
            **self.arguments,
        }
        taken = signature(self.made).parameters
        return self.made(**{name: options[name] for name in taken if name in options})


# Maps of files that earlier versions made, and the last day of versions that read them.
_GONE = {
    "sketch": "27 November 2026",
    "binning": "28 November 2026",
    "chosen": "28 November 2026",  # some features of one of these
}


class _Maps(dict[str, "type[FeatureMap]"]):
    def __missing__(self, name: str) -> type[FeatureMap]:
        if name in _GONE:
            raise ModelFileError(
                f"the map {name!r} of the file is gone: streamkern 0.1.0 of {_GONE[name]} or "
                f"before reads the file; fit again with another map, such as 'nystroem'."
            )
        check_map(name)
        raise ModelFileError(
            f"the map {name!r} of the file is not declared here; import the module that declares "
            f"it, and load the file again."
        )


# By the names that files have.
MAPS = _Maps()
# By the names that options have, in the order in which classes declare them.
FAMILIES: dict[str, Family] = {}


def restored_inner(parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> FeatureMap:
    inner = {k.removeprefix("inner_"): v for k, v in arrays.items() if "inner_" in k}
    return MAPS[parameters["inner"]].restore(parameters["inner_parameters"], inner)


def inner_arrays(inner: FeatureMap) -> dict[str, Array]:
    return {f"inner_{name}": array for name, array in inner.arrays().items()}
