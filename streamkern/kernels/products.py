"""Products of kernels, and kernels of some of the inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.kernels.base import OPERATIONS, ShiftInvariantKernel, checked_rows
from streamkern.kernels.combined import Combined, Reduced, Several, Sum, reduced
from streamkern.kernels.scaled import ScaledKernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from streamkern._typing import Array, Floats

# Frequencies take as many sets of normal numbers; and texts of strangers' files are kernels.
_MOST_FACTORS = 2000


@dataclass(frozen=True, repr=False)
class Product(Several):
    """A product of kernels; made by `*`.

    A draw of frequencies is the sum of draws of its factors.  Factors of different columns share
    the normal numbers of a draw, each taking those of its columns; others have sets of their own.
    """

    factors: tuple[ShiftInvariantKernel, ...]
    held = "factors"

    def _count_draws(self) -> tuple[int, int]:
        if sum(factor.normal_sets for factor in self.factors) > _MOST_FACTORS:
            raise ParameterError(
                f"a product has at most {_MOST_FACTORS:,} kernels, but one has more; take fewer."
            )
        pairs = zip(self._first_sets(), self.factors, strict=True)
        return (
            max(first + factor.normal_sets for first, factor in pairs),
            sum(factor.n_uniforms for factor in self.factors),
        )

    @property
    def name(self) -> str:
        return "*".join(_enclosed(factor, factor.name) for factor in self.factors)

    def __repr__(self) -> str:
        return " * ".join(_enclosed(factor, repr(factor)) for factor in self.factors)

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        values = self.factors[0](X, Z)
        for factor in self.factors[1:]:
            values *= factor(X, Z)
        return values

    def _first_sets(self) -> list[int]:
        """Return for each factor the first of its sets of normal numbers: none is used twice."""
        used: list[frozenset[int] | None] = []
        found = []
        taken: dict[int, int] = {}  # the sets of a column up to its first that is free
        for factor in self.factors:
            columns = None if factor.used_columns is None else frozenset(factor.used_columns)
            first = max((taken.get(j, 0) for j in columns or ()), default=len(used))
            while any(
                columns is None or some is None or columns & some
                for some in used[first : first + factor.normal_sets]
            ):
                first += 1
            for i in range(first, first + factor.normal_sets):
                if i == len(used):
                    used.append(frozenset())
                some = used[i]
                used[i] = None if columns is None or some is None else some | columns
            ends = first + factor.normal_sets
            taken |= {j: ends for j in columns or () if taken.get(j, 0) == first}
            found.append(first)
        return found

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        p = normal.shape[1] // self.normal_sets
        frequencies = np.zeros((len(normal), p))
        column = 0
        for first, factor in zip(self._first_sets(), self.factors, strict=True):
            frequencies += factor.spectral(
                normal[:, first * p : (first + factor.normal_sets) * p],
                uniform[:, column : column + factor.n_uniforms],
            )
            column += factor.n_uniforms
        return frequencies

    def density(self, frequencies: Floats) -> Floats:
        if self.normal_sets > 1:
            raise ParameterError(
                f"the kernel {self.name} has factors of the same columns, and no density that is "
                f"known; take a map that draws frequencies."
            )
        values = np.ones(len(frequencies))
        missing = set(range(frequencies.shape[1]))
        for factor in self.factors:
            columns = sorted(factor.used_columns or ())
            missing -= set(columns)
            values *= factor.restricted(columns).density(frequencies[:, columns])
        if missing:
            raise ParameterError(
                f"the frequencies of the kernel {self.name} are 0 in column {min(missing)} and "
                f"have no density there; take a map that draws frequencies."
            )
        return values

    def reduced(self, columns: Array | Sequence[int]) -> Reduced:
        """Multiply out: (c + (1 - c) k) m is the sum of m and k m with weights c and 1 - c."""
        products: list[tuple[float, tuple[ShiftInvariantKernel, ...]]] = [(1.0, ())]
        for factor in self.factors:
            c, kernel = reduced(factor, columns)
            with_it = [
                (weight * (1.0 - c), (*some, *factors_of(kernel)))
                for weight, some in products
                if kernel is not None
            ]
            products = with_it + [(weight * c, some) for weight, some in products if c > 0.0]
        constant = sum(weight for weight, some in products if not some)
        weights = tuple(weight for weight, some in products if some)
        terms = tuple(Product(some) if len(some) > 1 else some[0] for _, some in products if some)
        if len(terms) > 1:
            return constant, Sum(terms, weights)
        return (constant, terms[0]) if terms else (1.0, None)


def factors_of(kernel: ShiftInvariantKernel) -> tuple[ShiftInvariantKernel, ...]:
    """Return the factors of a product, or any other kernel as the only one."""
    return kernel.factors if isinstance(kernel, Product) else (kernel,)


def _enclosed(factor: ShiftInvariantKernel, text: str) -> str:
    return f"({text})" if isinstance(factor, Sum) else text


def multiplied(*kernels: ShiftInvariantKernel) -> Product | Sum:
    """Return the product of kernels; a weight of one term is then that of the product."""
    weight = 1.0
    factors: list[ShiftInvariantKernel] = []
    for kernel in kernels:
        if isinstance(kernel, Sum) and len(kernel.terms) == 1:
            weight *= kernel.weights[0]
            factors += factors_of(kernel.terms[0])
        else:
            factors += factors_of(kernel)
    product = Product(tuple(factors))
    return product if weight == 1.0 else Sum((product,), (weight,))


@dataclass(frozen=True, repr=False)
class OnColumns(Combined):
    """A kernel of some columns, counted from 0, in the order of its inputs; made by `on`."""

    kernel: ScaledKernel
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, ScaledKernel):  # of a damaged file
            raise TypeError(self.kernel)
        object.__setattr__(self, "columns", checked_columns(self.columns))
        self.kernel.check_inputs(len(self.columns))
        self._combine(self.columns, self.kernel.normal_sets, self.kernel.n_uniforms)

    @property
    def name(self) -> str:
        return f"{self.kernel.name}[{_columns_text(self.columns)}]"

    def __repr__(self) -> str:
        return f"{self.kernel!r}.on({list(self.columns)})"

    def of_parts(self, parts: Sequence[Any]) -> Self:
        return replace(self, kernel=parts[0])

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        sets = checked_rows(X), checked_rows(Z)
        for rows in sets:
            self.check_inputs(rows.shape[1])
        left, right = (rows[:, self.columns] for rows in sets)
        return self.kernel(left, right)

    def check_inputs(self, n_features: int) -> None:
        if max(self.columns) >= n_features:
            raise ParameterError(
                f"the kernel {self.name} is one of column {max(self.columns)}, but columns go from "
                f"0 to {n_features - 1}; name others."
            )

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        sets = normal.reshape(len(normal), self.normal_sets, -1)
        frequencies = np.zeros((len(normal), sets.shape[2]))
        mine = sets[:, :, self.columns].reshape(len(normal), -1)
        frequencies[:, self.columns] = self.kernel.spectral(mine, uniform)
        return frequencies

    def density(self, frequencies: Floats) -> Floats:
        if len(self.columns) < frequencies.shape[1]:
            raise ParameterError(
                f"the frequencies of the kernel {self.name} are 0 in other columns and have no "
                f"density there; take a map that draws frequencies."
            )
        return self.kernel.density(frequencies[:, self.columns])

    def resolved(
        self, rows: Floats, columns: Array | None = None, weights: Floats | None = None
    ) -> Self:
        there, places = self._kept(np.arange(rows.shape[1]) if columns is None else columns)
        if there:
            known = np.array(there)
            return self.of_parts([self.kernel.resolved(rows[:, places], known, weights)])
        # Rows do not differ in any of its columns, so any length scale is right.
        is_known = not isinstance(self.kernel.length_scale, str)
        return self if is_known else self.of_parts([self.kernel.with_length_scale(1.0)])

    def reduced(self, columns: Array | Sequence[int]) -> Reduced:
        there, places = self._kept(columns)
        if not there:
            return 1.0, None
        return 0.0, replace(self, kernel=self.kernel.restricted(there), columns=tuple(places))

    def _kept(self, columns: Array | Sequence[int]) -> tuple[list[int], list[int]]:
        """Return which of its inputs are among some columns, and where."""
        place = {column: i for i, column in enumerate(np.asarray(columns).tolist())}
        there = [j for j, column in enumerate(self.columns) if column in place]
        return there, [place[self.columns[j]] for j in there]


def on_columns(kernel: ShiftInvariantKernel, columns: Sequence[int]) -> Combined:
    if isinstance(kernel, OnColumns):
        chosen = checked_columns(columns)
        kernel.check_inputs(len(chosen))
        return OnColumns(kernel.kernel, tuple(chosen[column] for column in kernel.columns))
    if isinstance(kernel, Combined):
        return kernel.of_parts([part.on(columns) for part in kernel.parts])
    if not isinstance(kernel, ScaledKernel):
        raise ParameterError(
            f"only kernels of a length scale are put on columns, not {kernel!r}; take one."
        )
    return OnColumns(kernel, tuple(columns))


def checked_columns(columns: Any) -> tuple[int, ...]:
    """Return columns as a tuple, or raise ParameterError unless each is named once."""
    chosen = np.asarray(columns)
    if (
        chosen.ndim != 1
        or not chosen.size
        or chosen.dtype.kind not in "iu"
        or chosen.min() < 0
        or len(np.unique(chosen)) < len(chosen)
    ):
        raise ParameterError(
            f"a kernel's columns are different whole numbers from 0, not {columns!r}; name each "
            f"once."
        )
    return tuple(chosen.tolist())


def _columns_text(columns: Sequence[int]) -> str:
    """Return columns with runs of three and more as first-last."""
    breaks = np.flatnonzero(np.diff(columns) != 1) + 1
    runs = [run.tolist() for run in np.split(np.asarray(columns), breaks)]
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )


OPERATIONS |= {"*": multiplied, "columns": on_columns}
