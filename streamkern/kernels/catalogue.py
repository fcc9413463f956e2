"""Kernels by name: as texts such as matern(nu=2), and from the parameters that files hold."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from streamkern.errors import ModelFileError, ParameterError
from streamkern.errors.checks import check_choice
from streamkern.kernels.base import DECLARED, Kernel
from streamkern.kernels.shift_invariant import LengthScale
from streamkern.kernels.sums import Sum, restored_sum


class _Kernels(Mapping[str, Kernel]):
    """Kernels of usual parameters by all their names, those that are only read last."""

    def __getitem__(self, name: str) -> Kernel:
        for family, declared in self._named():
            if name in (family, *declared.aliases):
                return declared()
            if name in declared.spellings:
                return declared(**declared.spellings[name])
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        aliases = []
        for family, declared in self._named():
            yield from declared.spellings or (family,)
            aliases += [*declared.aliases, *([family] if declared.spellings else [])]
        yield from sorted(aliases)

    @staticmethod
    def _named() -> list[tuple[str, type[Kernel]]]:
        return [(family, each) for family, each in DECLARED.items() if each is not Sum]

    def __len__(self) -> int:
        return sum(1 for _ in self)


KERNELS: Mapping[str, Kernel] = _Kernels()


def _kernel(name: str, parameters: Mapping[str, Any]) -> Kernel:
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


def kernel_from(name: str, parameters: Mapping[str, Any]) -> Kernel:
    """Build a kernel from its name and its `parameters()`, as a file holds them."""
    family = name.partition("(")[0]
    try:
        if "weights" in parameters:
            return restored_sum(parameters, kernel_from)
        if {"factors", "columns"} & parameters.keys():
            raise ModelFileError(
                f"the kernel {name[:80]!r} of the file is a product, which is gone: streamkern "
                f"0.1.0 of 28 November 2026 or before reads the file; fit again with one kernel."
            )
        if parameters and family not in KERNELS:
            raise ModelFileError(
                f"the kernel {family!r} of the file is not declared here; import the module that "
                f"declares it, and load the file again."
            )
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in parameters.items()}
        kernel = _kernel(family if parameters else name, values)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as e:
        if isinstance(e, (ModelFileError, ParameterError)):
            raise
        raise ParameterError(f"the kernel {name!r} lacks parameters; the file is damaged.") from e
    if name not in (kernel.name, family):
        raise ParameterError(
            f"the parameters are those of the kernel {kernel.name!r}, not of {name!r}; the file is "
            f"damaged."
        )
    return kernel


def parsed_kernel(text: str, length_scale: LengthScale | None = None) -> Kernel:
    """Return the kernel that a text describes, with a length scale where it says none."""
    name, bracket, arguments = text.strip().lower().partition("(")
    parameters = _parameters(text, arguments) if bracket else {}
    name = name.strip()
    takes_scale = "length_scale" in getattr(KERNELS.get(name), "__dataclass_fields__", ())
    if takes_scale and length_scale is not None:
        parameters.setdefault("length_scale", length_scale)
    return _kernel(name, parameters)


def _parameters(text: str, arguments: str) -> dict[str, Any]:
    """Return the parameters of a text, whose numbers and words Python reads."""
    try:
        # Names may have dashes, which numbers such as 1e-3 keep.
        plain = re.sub(r"(?<=[a-z])-(?=[a-z])", "_", arguments)
        call: Any = ast.parse(f"_({plain}", mode="eval").body
        names = {each.arg for each in call.keywords}
        is_plain = call.func.id == "_" and not call.args and None not in names
        if is_plain and len(names) == len(call.keywords):
            return {
                each.arg: getattr(each.value, "id", None) or ast.literal_eval(each.value)
                for each in call.keywords
            }
    except (AttributeError, SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise ParameterError(
        f"expected the parameters of a kernel, as in matern(nu=2), but found {text[:80]!r}; write "
        f"numbers, or several in parentheses."
    )


def as_kernel(kernel: Kernel | str) -> Kernel:
    """Return a kernel, or the one that a text describes; refuse what is neither."""
    if isinstance(kernel, str):
        return parsed_kernel(kernel)
    if not isinstance(kernel, Kernel):
        raise ParameterError(
            f"kernel must be a kernel such as Gaussian(), or its name such as 'gaussian', not "
            f"{kernel!r}; give one of these."
        )
    return kernel


def separated(texts: str) -> list[str]:
    """Return the texts that commas separate, other than commas in parentheses."""
    found, depth = [""], 0
    for sign in texts:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            found.append("")
        else:
            found[-1] += sign
    return found
