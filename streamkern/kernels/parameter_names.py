"""Nested parameter names of kernels, as scikit-learn has them.

`kernel__length_scale` is that of a kernel on columns, `0__length_scale` that of the first term of a
sum or the first factor of a product.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamkern.kernels.base import Kernel

    AnyKernel = TypeVar("AnyKernel", bound=Kernel)


def own_parameters(kernel: Kernel) -> dict[str, Any]:
    """Return the arguments that a kernel was made with, by name."""
    return {field.name: getattr(kernel, field.name) for field in fields(kernel)}


def all_parameters(kernel: Kernel) -> dict[str, Any]:
    """Return its arguments, and those of the kernels that it is made of."""
    found = own_parameters(kernel)
    for name, part in _parts(kernel).items():
        found |= {f"{name}__{inner}": value for inner, value in all_parameters(part).items()}
    return found


def with_parameters(kernel: AnyKernel, changes: Mapping[str, Any]) -> AnyKernel:
    """Return the kernel with some parameters changed; see `Kernel.with_params`."""
    own, nested = split_names(changes)
    unknown = (own.keys() - own_parameters(kernel)) | (nested.keys() - _parts(kernel))
    if unknown:
        known = ", ".join(all_parameters(kernel)) or "none"
        raise ParameterError(
            f"the kernel {kernel.name!r} has the parameters {known}, not {min(unknown)!r}; name "
            f"one of these."
        )
    changed: Any = replace(kernel, **own)
    for name, inner in nested.items():
        parts = _parts(changed)
        parts[name] = with_parameters(parts[name], inner)
        changed = changed.of_parts(list(parts.values()))
    found: AnyKernel = changed
    return found


def split_names(names: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return what is named without an owner, and what is named with one, by owner."""
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in names.items():
        owner, separator, inner = name.partition("__")
        if separator:
            nested.setdefault(owner, {})[inner] = value
        else:
            own[name] = value
    return own, nested


def _parts(kernel: Kernel) -> dict[str, Kernel]:
    """Return the kernels that a kernel is made of: by their argument, or by place in it."""
    found: dict[str, Any] = {}
    for name, value in own_parameters(kernel).items():
        if hasattr(value, "get_params"):
            found[name] = value
        elif isinstance(value, tuple):
            found |= {str(i): part for i, part in enumerate(value) if hasattr(part, "get_params")}
    return found
