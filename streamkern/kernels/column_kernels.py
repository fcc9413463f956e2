"""Kernels of some of the inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.kernels.base import checked_rows
from streamkern.kernels.combined import Combined, Reduced
from streamkern.kernels.scaled import ScaledKernel
from streamkern.kernels.shift_invariant import OPERATIONS, ShiftInvariantKernel


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
        self._hold(self.columns, self.kernel.normal_sets, self.kernel.n_uniforms)

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
            return self.of_parts([self.kernel.resolved(rows[:, places], np.array(there), weights)])
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


OPERATIONS["columns"] = on_columns
