"""Kernels as text: `gaussian[0-2]*periodic(period=7)[3]+0.5*matern(nu=2)`.

sum      product + product + ...
product  factor * factor * ...
factor   a number, which is a weight, or a kernel with [columns] or without
kernel   name, name(parameter=value,...), or (sum)
value    a number, several in parentheses, or a word
columns  numbers from 0 and first-last, with commas between
"""

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from streamkern.errors import ModelFileError, ParameterError
from streamkern.kernels.base import Kernel
from streamkern.kernels.catalogue import KERNELS, declared_kernel, simple_kernel
from streamkern.kernels.combined import added
from streamkern.kernels.products import multiplied
from streamkern.kernels.shift_invariant import LengthScale, ShiftInvariantKernel

_TOKENS = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)"
    r"|(?P<word>[a-z][a-z0-9_]*(?:-[a-z][a-z0-9_]*)*)|(?P<sign>[-+*()\[\],=])|(?P<end>$))",
    re.IGNORECASE,
)
_MOST_COLUMNS = 1_000_000
_DEEPEST = 50
# What is raised on the way to a kernel from what is none.
_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def kernel_from(name: str, parameters: Mapping[str, Any]) -> Kernel:
    """Build a kernel from its name and its `parameters()`, as a file holds them."""
    if name in KERNELS or not parameters:
        return simple_kernel(name, parameters)
    try:
        kernel = declared_kernel(name, parameters)
    except (ModelFileError, ParameterError):
        raise
    except _DAMAGE as e:
        raise ParameterError(f"the kernel {name!r} lacks parameters; the file is damaged.") from e
    if kernel.name != name:
        raise ParameterError(
            f"the parameters are those of the kernel {kernel.name!r}, not of {name!r}; the file is "
            f"damaged."
        )
    return kernel


def parsed_kernel(text: str, length_scale: LengthScale | None = None) -> Kernel:
    """Return the kernel that a text describes, with a length scale where it says none."""
    parser = _Parser(text, length_scale)
    found = parser.sum()
    if parser.kind != "end":
        parser.fail("'+', '*' or the end")
    return found


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
    """Return the texts that commas separate, other than commas in parentheses and brackets."""
    found, depth = [""], 0
    for sign in texts:
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and not depth:
            found.append("")
        else:
            found[-1] += sign
    return found


class _Parser:
    def __init__(self, text: str, length_scale: LengthScale | None) -> None:
        self.text, self.length_scale = text, length_scale
        self.at = self.depth = 0
        self.advance()

    def advance(self) -> None:
        match = _TOKENS.match(self.text, self.at)
        if match is None:
            self.kind, self.token = "none", self.text[self.at :].strip()[:1]
            return
        self.kind = match.lastgroup or ""
        self.token = match[self.kind].lower()
        self.at = match.end()

    def fail(self, expected: str) -> NoReturn:
        found = repr(self.token) if self.token else "its end"
        raise ParameterError(
            f"expected {expected} in the kernel {self.text!r}, but found {found}; write kernels "
            f"like gaussian[0-2]*periodic(period=7)[3]+0.5*matern(nu=2)."
        )

    def take(self, token: str) -> bool:
        if self.kind != "sign" or self.token != token:
            return False
        self.advance()
        return True

    def need(self, token: str) -> None:
        if not self.take(token):
            self.fail(repr(token))

    def next(self, kind: str, expected: str) -> str:
        if self.kind != kind:
            self.fail(expected)
        token = self.token
        self.advance()
        return token

    def number(self, expected: str) -> float:
        return float(self.next("number", expected))

    def sum(self) -> Kernel:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ParameterError(
                f"a kernel has at most {_DEEPEST} parentheses within each other; write it with "
                f"fewer."
            )
        terms = [self.product()]
        while self.take("+"):
            terms.append(self.product())
        self.depth -= 1
        return added(*map(self.combinable, terms)) if len(terms) > 1 else terms[0]

    def product(self) -> Kernel:
        weight = 1.0
        factors: list[Kernel] = []
        while True:
            if self.kind == "number":
                weight *= self.number("a number")
            else:
                factors.append(self.factor())
            if not self.take("*"):
                break
        if not factors:
            self.fail("'*' and a kernel")
        found = multiplied(*map(self.combinable, factors)) if len(factors) > 1 else factors[0]
        return found if weight == 1.0 else weight * self.combinable(found)

    def factor(self) -> Kernel:
        if self.take("("):
            found = self.sum()
            self.need(")")
        else:
            found = self.named()
        while self.take("["):
            columns = self.columns()
            found = self.combinable(found).on(columns)
        return found

    def named(self) -> Kernel:
        name = self.next("word", "the name of a kernel")
        parameters = self.parameters() if self.take("(") else {}
        if self.length_scale is not None and "length_scale" in getattr(
            KERNELS.get(name), "__dataclass_fields__", ()
        ):
            parameters.setdefault("length_scale", self.length_scale)
        return simple_kernel(name, parameters)

    def parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            name = self.next("word", "the name of a parameter").replace("-", "_")
            self.need("=")
            if name in found:
                raise ParameterError(f"the kernel {self.text!r} has {name} twice; give it once.")
            found[name] = self.value(name)
            if self.take(")"):
                return found
            self.need(",")

    def value(self, name: str) -> Any:
        if self.kind == "word":
            return self.next("word", "")
        if self.take("("):
            several = [self.number("a number")]
            while self.take(","):
                several.append(self.number("a number"))
            self.need(")")
            return tuple(several)
        value = self.number(f"a value of {name}")
        return int(value) if name == "degree" and value.is_integer() else value

    def columns(self) -> list[int]:
        found: list[int] = []
        while True:
            first = self.column()
            last = self.column() if self.take("-") else first
            if not first <= last < _MOST_COLUMNS - len(found):
                self.fail(f"columns from {first} up to less than {_MOST_COLUMNS:,}, and no more")
            found += range(first, last + 1)
            if self.take("]"):
                return found
            self.need(",")

    def column(self) -> int:
        if not self.token.isdecimal():
            self.fail("a column's number")
        return int(self.number("a column's number"))

    def combinable(self, kernel: Kernel) -> ShiftInvariantKernel:
        if not isinstance(kernel, ShiftInvariantKernel):
            raise ParameterError(
                f"sums, products and columns are for kernels of differences, not {kernel.name}; "
                f"leave it out, or take it alone."
            )
        return kernel
