"""Kernels by name, and from the parameters that files hold."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from streamkern.errors import ModelFileError, ParameterError
from streamkern.errors.checks import check_choice
from streamkern.kernels.base import DECLARED, Kernel
from streamkern.kernels.column_kernels import OnColumns
from streamkern.kernels.combined import Sum
from streamkern.kernels.products import Product
from streamkern.kernels.shift_invariant import ShiftInvariantKernel


class _Kernels(Mapping[str, Kernel]):
    """Kernels of usual parameters by all their names, those that are only read last."""

    def __getitem__(self, name: str) -> Kernel:
        for family, declared in DECLARED.items():
            if name in (family, *declared.aliases):
                return declared()
            if name in declared.spellings:
                return declared(**declared.spellings[name])
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        aliases = []
        for family, declared in DECLARED.items():
            yield from declared.spellings or (family,)
            aliases += [*declared.aliases, *([family] if declared.spellings else [])]
        yield from sorted(aliases)

    def __len__(self) -> int:
        return sum(1 for _ in self)


KERNELS: Mapping[str, Kernel] = _Kernels()


def simple_kernel(name: str, parameters: Mapping[str, Any]) -> Kernel:
    if name == "multiquadric":
        raise ParameterError(
            "the multiquadric sqrt(1 + r^2) is not positive definite, so there is no kernel ridge "
            "regression with it; take inverse-multiquadric."
        )
    check_choice("kernel", name, KERNELS)
    known = KERNELS[name].parameters()
    if not set(parameters) <= set(known):
        raise ParameterError(
            f"the kernel {name!r} takes {sorted(known)}, not {sorted(parameters)}; leave out the "
            f"others."
        )
    return replace(KERNELS[name], **parameters)


def declared_kernel(name: str, parameters: Mapping[str, Any]) -> Kernel:
    for argument, combination in (("terms", Sum), ("factors", Product), ("columns", OnColumns)):
        if argument in parameters:
            return combination(**{each: _value(value) for each, value in parameters.items()})
    family = name.partition("(")[0]
    if family not in KERNELS:
        raise ModelFileError(
            f"the kernel {family!r} of the file is not declared here; import the module that "
            f"declares it, and load the file again."
        )
    return simple_kernel(family, parameters)


def _value(stored: Any) -> Any:
    """Return a number, or a kernel of differences, or several, from their JSON form."""
    if not isinstance(stored, Mapping):
        return tuple(map(_value, stored)) if isinstance(stored, list) else stored
    kernel = declared_kernel(stored["name"], stored["parameters"])
    if not isinstance(kernel, ShiftInvariantKernel):
        raise TypeError(kernel)
    return kernel
