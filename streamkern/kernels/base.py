"""Kernels: what all of them offer, and how they are declared."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from streamkern._docstrings import described
from streamkern._typing import Floats
from streamkern.errors import ParameterError

# What methods of kernels take and return.
_complete = described("""
X, Z : ndarray of shape (n, p) and (m, p)
n_features : int
    p, the number of inputs.
length_scale : float, sequence of float, or 'median'
factor : float
rows : ndarray of shape (m, p)
    Standardised, and spread over the data.
weights : ndarray of shape (m,), optional
    How often each row counts.
columns : array_like of int
    Those inputs of the kernel that rows have; in `resolved` optional, by default all.
frequencies : ndarray of shape (L, p)
normal : ndarray of shape (L, p)
    Rows whose marginal distribution is standard normal.
uniform : ndarray of shape (L, 1), of `stretch` (L,)
    Numbers in (0, 1], independent of those.
distances, squares : ndarray
    Of scaled rows, in any shape.
deep : bool
    As of estimators; nothing is nested here.
parameters : object
    New values, by the names that `get_params` gives.
distance(), values() : ndarray of shape (n, m)
scales() : ndarray of shape (p,)
density(), unit_log_density(), stretch() : ndarray of shape (L,)
spectral() : ndarray of shape (L, p)
    In units of 1 / length_scale.
profile(), profile_of_squares(), slope() : ndarray
    In the shape of the distances.
parameters(), get_params() : dict of str to object
scaled() : ndarray of shape (n, p)
Self() : Kernel
""")
# Kernels by their families: declaring a class is enough for options, texts and files to find it.
DECLARED: "dict[str, type[Kernel]]" = {}


def declare(declared: dict[str, type[Any]], name: str, declaration: type) -> None:
    """Add a class to those that are found by name, or replace it where its module runs again."""
    known = declared.get(name, declaration)
    if (known.__module__, known.__qualname__) != (declaration.__module__, declaration.__qualname__):
        raise ParameterError(
            f"{name!r} is the name of {known.__module__}.{known.__qualname__}; give "
            f"{declaration.__qualname__} another."
        )
    declared[name] = declaration


@_complete
@dataclass(frozen=True)
class Kernel(ABC):
    """A positive definite function of two rows.

    A kernel of your own is a frozen dataclass with a `family`.  Models are fitted, searched and
    loaded with it wherever the module that declares it is imported.

    Attributes
    ----------
    family : str
        The name of the class in texts and files.
    spellings : mapping
        Names of the kernel at some parameters, such as matern32; the family's is another of them.
    aliases : tuple of str
        Other names, which are read but not written.
    along_axes : bool
        Whether inputs count one by one, so that other axes make another kernel.
    """

    family: ClassVar[str]
    spellings: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    aliases: ClassVar[tuple[str, ...]] = ()
    along_axes: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _complete(cls)
        if "family" in vars(cls):
            declare(DECLARED, cls.family, cls)

    @property
    def name(self) -> str:
        """The name in texts and files: with unusual parameters, and without length scales."""
        values = {f: getattr(self, f.name) for f in fields(self) if f.name != "length_scale"}
        for spelling, parameters in self.spellings.items():
            if all(value == parameters.get(f.name, f.default) for f, value in values.items()):
                return spelling
        unusual = [f"{f.name}={value_text(v)}" for f, v in values.items() if v != f.default]
        return f"{self.family}({','.join(unusual)})" if unusual else self.family

    @property
    def has_mean_square_gradients(self) -> bool:
        """Whether random functions of this kernel have gradients whose mean square is finite.

        So it is where frequencies have a variance: k(x, x') has second derivatives at x = x'.
        """
        return True

    @abstractmethod
    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        """Evaluate the kernel on every pair of rows (n, p) and (m, p): (n, m), float64."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain JSON values."""
        found = self.get_params()
        return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  as of estimators
        """Return the parameters by name, so that grids can name `kernel__length_scale`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def with_params(self, **parameters: Any) -> Self:
        """Return this kernel with other parameters, of those that it has."""
        if unknown := parameters.keys() - self.get_params():
            known = ", ".join(self.get_params()) or "none"
            raise ParameterError(
                f"the kernel {self.name!r} has the parameters {known}, not {min(unknown)!r}; name "
                f"one of these."
            )
        return replace(self, **parameters)

    def __sklearn_clone__(self) -> Self:
        """Return the kernel itself, which nobody can change."""
        return self


def value_text(value: Any) -> str:
    """Return a number to the last digit, several in parentheses, or a word, as texts have them."""
    if isinstance(value, tuple):
        return f"({','.join(map(value_text, value))})"
    return value if isinstance(value, str) else repr(float(value)).removesuffix(".0")


def checked_rows(X: ArrayLike) -> Floats:
    """Return rows as float64 (n, p), or raise ParameterError unless they are a 2-D array."""
    rows = np.asarray(X, dtype=float)
    if rows.ndim != 2:
        raise ParameterError(
            f"rows must be a 2-D array (n, p), not of {rows.ndim} dimensions; reshape them."
        )
    return rows
