"""The weighted mean of kernels, each of some of the inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.kernels.shift_invariant import LengthScale, ShiftInvariantKernel


@dataclass(frozen=True)
class Sum(ShiftInvariantKernel):
    """The weighted mean of kernels, each of some of the inputs, with k(x, x) = 1.

    `Sum(kernels=(Gaussian(2.0), Matern(0.5)), weights=(1.0, 0.25), columns=((0, 1), (2,)))`.

    Parameters
    ----------
    length_scale : float
        By which all length scales of the kernels are multiplied.
    kernels : tuple of ShiftInvariantKernel
        With numbers for length scales.
    weights : tuple of float
        Positive; they count by their share of the sum.
    columns : tuple of tuple of int
        The inputs of each kernel, counted from 0.
    """

    length_scale: LengthScale = 1.0
    kernels: tuple[ShiftInvariantKernel, ...] = ()
    weights: tuple[float, ...] = ()
    columns: tuple[tuple[int, ...], ...] = ()
    family = "sum"

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = {len(self.kernels), len(self.weights), len(self.columns)}
        if not self.kernels or len(sizes) > 1 or not isinstance(self.length_scale, float):
            raise ParameterError(
                f"a sum of kernels has a length scale, and for every kernel a weight and columns, "
                f"not {self.length_scale!r}, {self.weights!r} and {self.columns!r}; give these."
            )
        if not all(0.0 < weight < np.inf for weight in self.weights):
            raise ParameterError(
                f"the weights of a sum of kernels must be positive and finite, not "
                f"{list(self.weights)}; leave out kernels that do not count."
            )
        for kernel, columns in self._parts:
            if kernel.length_scale == "median" or len(set(columns)) < len(columns) or not columns:
                raise ParameterError(
                    f"the kernels of a sum have numbers for length scales and columns named once, "
                    f"not {kernel!r} and {columns!r}; give these."
                )
            kernel.check_inputs(len(columns))

    @property
    def _parts(self) -> list[tuple[ShiftInvariantKernel, tuple[int, ...]]]:
        return list(zip(self.kernels, self.columns, strict=True))

    @property
    def shares(self) -> Floats:
        """What each kernel counts for, which sum to 1."""
        return np.array(self.weights) / np.sum(self.weights)

    @property
    def scaled_parts(self) -> list[tuple[float, ShiftInvariantKernel, list[int]]]:
        """The share of every kernel, the kernel at its length scale here, and its columns."""
        factor: Any = self.length_scale
        return [
            (float(share), kernel.stretched(factor), list(columns))
            for share, (kernel, columns) in zip(self.shares, self._parts, strict=True)
        ]

    @property
    def has_mean_square_gradients(self) -> bool:
        return all(kernel.has_mean_square_gradients for kernel in self.kernels)

    @property
    def name(self) -> str:
        texts = []
        for weight, (kernel, columns) in zip(self.weights, self._parts, strict=True):
            times = "" if weight == 1.0 else f"{weight:.4g}*"
            texts.append(f"{times}{kernel.name}[{columns[0]}-{columns[-1]}]")
        return "+".join(texts)

    def parameters(self) -> dict[str, Any]:
        terms = [
            {"kernel": kernel.name, "parameters": kernel.parameters(), "columns": list(columns)}
            for kernel, columns in self._parts
        ]
        weights, scale = list(self.weights), self.length_scale
        return {"sum": terms, "weights": weights, "length_scale": scale}

    def check_inputs(self, n_features: int) -> None:
        if (last := max(max(columns) for columns in self.columns)) >= n_features:
            raise ParameterError(
                f"the kernel {self.name} is one of column {last}, but columns go from 0 to "
                f"{n_features - 1}; name others."
            )

    def distance(self, X: Floats, Z: Floats) -> Floats:
        each = [kernel.distance(X[:, c], Z[:, c]) for kernel, c in self._parts]
        return np.hypot.reduce(each)

    def values(self, X: Floats, Z: Floats) -> Floats:
        pairs = zip(self.shares, self._parts, strict=True)
        return np.add.reduce([s * kernel(X[:, c], Z[:, c]) for s, (kernel, c) in pairs])

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        """Choose a kernel by the uniform number, whose place within its share is uniform again."""
        bounds = np.cumsum([0.0, *self.shares])
        chosen = np.searchsorted(bounds[1:-1], uniform[:, 0])
        frequencies = np.zeros(normal.shape)
        for i, (share, kernel, columns) in enumerate(self.scaled_parts):
            rows = np.flatnonzero(chosen == i)
            rest = np.clip((uniform[rows] - bounds[i]) / share, np.finfo(float).epsneg, 1.0)
            cells = rows[:, None], columns
            frequencies[cells] = kernel.spectral(normal[cells], rest)
        return frequencies

    def unit_log_density(self, frequencies: Floats) -> Floats:  # noqa: ARG002
        raise ParameterError(
            f"the frequencies of the kernel {self.name} have no density; take a map that draws "
            f"frequencies."
        )

    def restricted(self, columns: Array | Sequence[int]) -> Self:
        place = {column: i for i, column in enumerate(np.asarray(columns).tolist())}
        kept = [[j for j, each in enumerate(c) if each in place] for c in self.columns]
        left = [i for i, each in enumerate(kept) if each]
        if not left:
            raise ParameterError(
                f"all inputs of the kernel {self.name} are constant; put it on others."
            )
        return replace(
            self,
            kernels=tuple(self.kernels[i].restricted(kept[i]) for i in left),
            weights=tuple(self.weights[i] for i in left),
            columns=tuple(tuple(place[self.columns[i][j]] for j in kept[i]) for i in left),
        )


def restored_sum(parameters: Mapping[str, Any], kernel_of: Any) -> Sum:
    """Return a sum from its `parameters()`, or from those of earlier versions."""
    if "sum" in parameters:
        terms = [(e["kernel"], e["parameters"], e["columns"]) for e in parameters["sum"]]
    else:  # terms were kernels of some columns
        inner = [each["parameters"] for each in parameters["terms"]]
        terms = [(e["kernel"]["name"], e["kernel"]["parameters"], e["columns"]) for e in inner]
    return Sum(
        parameters.get("length_scale", 1.0),
        tuple(kernel_of(name, own) for name, own, _ in terms),
        tuple(parameters["weights"]),
        tuple(tuple(columns) for _, _, columns in terms),
    )
