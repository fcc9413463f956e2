"""Maps that write features a few rows at a time: drawn for a kernel, or made of another map's."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import Any, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap, cached_slices, checked_n_components, checked_seed
from streamkern.features.families import inner_arrays, restored_inner
from streamkern.kernels import Kernel, ShiftInvariantKernel, kernel_from
from streamkern.runtime.scratch import Scratch


class WrittenFeatures(FeatureMap):
    # Numbers a row that are to stay in cache, where they are others than the features.
    width: int = 0
    # Numbers a feature that are read for every slice of rows, which is to be no smaller.
    n_factors: int = 0

    @abstractmethod
    def prepared(self, dtype: np.dtype[Any], scratch: Scratch) -> Callable[[Array, Array], None]:
        """Return a function that writes phi(X) / scale of a few rows into its second argument.

        `dtype` is that of the features; `scratch` is memory to work in while the function is used.
        """

    def evaluated(
        self, X: Array, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        write, shifted = self.prepared(out.dtype, scratch or Scratch()), np.any(shift)
        for rows in cached_slices(len(out), self.width or self.n_components, self.n_factors):
            features = out[rows]
            write(X[rows], features)
            if shifted:
                features -= shift
            yield rows


class KernelMap(WrittenFeatures):
    """Features that are drawn for a kernel.

    Arguments of the constructor are attributes of the same names, which files hold.
    """

    def __init__(self, kernel: Kernel, n_components: int, random_state: int = 0) -> None:
        self.check_kernel(kernel)
        self.kernel: Any = kernel
        self.n_components = checked_n_components(n_components)
        self.random_state = checked_seed(random_state)

    def check_kernel(self, kernel: Kernel) -> None:
        """Raise ParameterError unless the map is one for this kernel."""

    def check_some_inputs(self, n_features: int) -> None:
        """Raise ParameterError unless there are inputs."""
        if n_features < 1:
            raise ParameterError(f"a map needs at least 1 input, not {n_features}; give some.")

    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _argument_names(type(self))}

    def parameters(self) -> dict[str, Any]:
        kernel = {"kernel": self.kernel.name, "kernel_parameters": self.kernel.parameters()}
        return {**kernel, **self.arguments()}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Rebuild the map from its file form: what was drawn, not a new draw."""
        kernel = kernel_from(parameters["kernel"], parameters["kernel_parameters"])
        names = _argument_names(cls)  # files of earlier versions hold more
        restored = cls(kernel, **{name: parameters[name] for name in names if name in parameters})
        restored.take_arrays(arrays)
        if isinstance(kernel, ShiftInvariantKernel):
            kernel.check_inputs(restored.n_features)
        return restored

    @abstractmethod
    def take_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Take what was drawn from `arrays()`, or raise ParameterError where it does not fit."""


def _argument_names(made: type[KernelMap]) -> list[str]:
    return [name for name in signature(made).parameters if name != "kernel"]


class ChosenFeatures(WrittenFeatures):
    """Features that were chosen, so that nothing is drawn."""

    no_part = (
        "features that were chosen have no part of {} that stands for the kernel; choose fewer "
        "from the whole map."
    )

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  nothing is drawn
        self.check((0, n_features))
        return self


class OfInner(ChosenFeatures):
    """Features that are made of those of another drawn map."""

    inner: FeatureMap

    def parameters(self) -> dict[str, Any]:
        return {"inner": self.inner.name, "inner_parameters": self.inner.parameters()}


class Combinations(OfInner):
    """The features psi(x) = W^T phi(x) of a drawn map phi, by weights W (D, r)."""

    name = "combinations"
    no_part = "combinations of features have no part of {} that stands for the whole."

    def __init__(self, inner: FeatureMap, weights: Floats) -> None:
        if weights.ndim != 2 or len(weights) != inner.n_components or not weights.size:
            raise ParameterError(
                f"expected weights of {inner.n_components} features, found shape {weights.shape}; "
                f"give one row a feature."
            )
        self.inner, self.weights = inner, weights
        self.n_features, self.n_components = inner.n_features, weights.shape[1]
        self.scale, self.width = inner.scale, inner.n_components
        self.exact_rows = inner.exact_rows  # type: ignore[misc]

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:
        weights = scratch.array("combined by", self.weights.shape, dtype)
        weights[...] = self.weights

        def write(X: Array, features: Array) -> None:
            every = scratch.array("all features", (len(X), self.width), dtype)
            for rows in self.inner.evaluated(X, every, scratch=scratch.part("inner")):
                np.matmul(every[rows], weights, out=features[rows])

        return write

    def subset(self, indices: Array) -> "Combinations":
        return Combinations(self.inner, self.weights[:, self.checked_subset(indices)])

    def arrays(self) -> dict[str, Array]:
        return {"weights": self.weights, **inner_arrays(self.inner)}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        return cls(restored_inner(parameters, arrays), arrays["weights"])
