"""Values of a kernel at given rows, as features."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap, cached_slices
from streamkern.features.kernel_map import ChosenFeatures, WrittenFeatures
from streamkern.features.radial_values import RadialValues
from streamkern.kernels import Kernel, Laplacian, RadialKernel, kernel_from
from streamkern.kernels.column_kernels import OnColumns
from streamkern.kernels.combined import Sum
from streamkern.runtime.scratch import Scratch


class Similarities(ChosenFeatures):
    """The features k(x, z_1), ..., k(x, z_m), which are what a kernel model predicts from."""

    name = "similarities"
    no_part = (
        "values of a kernel have no part of {} that stands for it; take the map of fewer landmarks."
    )
    scale = 1.0
    exact_rows = True

    def __init__(self, kernel: Kernel, landmarks: Floats) -> None:
        if landmarks.ndim != 2 or not landmarks.size:
            raise ParameterError(
                f"landmarks are rows (m, p), but their shape is {landmarks.shape}; give some."
            )
        self.kernel, self.landmarks = kernel, np.ascontiguousarray(landmarks)
        self.n_components, self.n_features = landmarks.shape
        self.has_gradients = has_slopes(kernel)

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:
        return _prepared(self.kernel, self.landmarks, np.dtype(dtype), scratch)

    def subset(self, indices: Array) -> "Similarities":
        return Similarities(self.kernel, self.landmarks[self.checked_subset(indices)])

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        self.check(X.shape)
        if not self.has_gradients:
            return super().gradients(X, coef, scratch)
        scratch = scratch or Scratch()
        out = scratch.array("gradients", X.shape, X.dtype)
        _write_gradients(self.kernel, self.landmarks, X, coef, out, scratch)
        return out

    def parameters(self) -> dict[str, Any]:
        return {"kernel": self.kernel.name, "kernel_parameters": self.kernel.parameters()}

    def arrays(self) -> dict[str, Array]:
        return {"landmarks": self.landmarks}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        kernel = kernel_from(parameters["kernel"], parameters["kernel_parameters"])
        return cls(kernel, arrays["landmarks"])


class LandmarkFeatures(WrittenFeatures):
    """Linear combinations of the values of a kernel at landmarks."""

    similarities: Similarities
    weights: Floats  # (m, D)

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:
        write_values = self.similarities.prepared(dtype, scratch)
        weights = scratch.array("weights", self.weights.shape, dtype)
        weights[...] = self.weights

        def write(X: Array, features: Array) -> None:
            values = scratch.array("similarities", (len(X), len(weights)), dtype)
            write_values(X, values)
            np.matmul(values, weights, out=features)

        return write

    def condensed(self, coef: Floats, *, alike: bool = False) -> tuple[FeatureMap, Floats]:  # noqa: ARG002
        """Return the kernel at the landmarks: the function sum_j c_j k(x, z_j), c = W coef."""
        return self.similarities, self.weights @ coef

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        return self.similarities.gradients(X, self.weights @ coef, scratch)


class Projected(LandmarkFeatures, ChosenFeatures):
    """Linear combinations, by weights (m, K), of the values of a kernel at m landmarks."""

    name = "projected"
    scale = 1.0
    exact_rows = True

    def __init__(self, similarities: Similarities, weights: Floats) -> None:
        m = similarities.n_components
        if weights.ndim != 2 or len(weights) != m or not weights.size:
            raise ParameterError(
                f"expected weights of {m} landmarks, found shape {weights.shape}; give one row a "
                f"landmark."
            )
        self.similarities, self.weights = similarities, weights
        self.n_features, self.n_components = similarities.n_features, weights.shape[1]
        self.width, self.has_gradients = m, similarities.has_gradients

    def subset(self, indices: Array) -> "Projected":
        chosen = self.checked_subset(indices)
        return Projected(self.similarities, np.ascontiguousarray(self.weights[:, chosen]))

    def parameters(self) -> dict[str, Any]:
        return self.similarities.parameters()

    def arrays(self) -> dict[str, Array]:
        return {**self.similarities.arrays(), "weights": self.weights}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        return cls(Similarities.restore(parameters, arrays), arrays["weights"])


def has_slopes(kernel: Kernel) -> bool:
    """Say whether the values of a kernel at landmarks have gradients."""
    if isinstance(kernel, (Sum, OnColumns)):
        return all(map(has_slopes, kernel.parts))
    return isinstance(kernel, (RadialKernel, Laplacian))


def _run_of(columns: tuple[int, ...]) -> slice | list[int]:
    """Return columns as a slice where they are neighbours."""
    run = range(columns[0], columns[0] + len(columns))
    return slice(run.start, run.stop) if columns == tuple(run) else list(columns)


def _prepared(
    kernel: Kernel, landmarks: Floats, dtype: np.dtype[Any], scratch: Scratch
) -> Callable[[Array, Array], None]:
    """Return what writes the values of a kernel of rows and landmarks, those of sums by terms."""
    if isinstance(kernel, RadialKernel):
        return RadialValues(kernel, landmarks, scratch, dtype).write
    if isinstance(kernel, OnColumns):
        columns = _run_of(kernel.columns)
        write_part = _prepared(kernel.kernel, landmarks[:, columns], dtype, scratch)
        return lambda X, features: write_part(X[:, columns], features)
    if isinstance(kernel, Sum):
        each = [
            _prepared(term, landmarks, dtype, scratch.part(f"term {i}"))
            for i, term in enumerate(kernel.terms)
        ]

        def write_sum(X: Array, features: Array) -> None:
            values = scratch.array("values of a term", features.shape, dtype)
            features[...] = 0.0
            for write_term, share in zip(each, kernel.shares, strict=True):
                write_term(X, values)
                values *= dtype.type(share)
                features += values

        return write_sum
    return lambda X, features: np.copyto(features, kernel(X, landmarks), casting="same_kind")


def _write_gradients(  # noqa: PLR0917  a function, where it is, and how
    kernel: Kernel, landmarks: Floats, X: Array, coef: Floats, out: Array, scratch: Scratch
) -> None:
    """Write the gradients (n, p) of sum_j c_j k(x, z_j)."""
    if isinstance(kernel, RadialKernel):
        RadialValues(kernel, landmarks, scratch, X.dtype).write_gradients(X, coef, out)
    elif isinstance(kernel, OnColumns):
        columns = _run_of(kernel.columns)
        part = np.empty((len(X), len(kernel.columns)), X.dtype)
        _write_gradients(kernel.kernel, landmarks[:, columns], X[:, columns], coef, part, scratch)
        out[...] = 0.0
        out[:, columns] = part
    elif isinstance(kernel, Sum):
        of_term = np.empty_like(out)
        out[...] = 0.0
        for term, share in zip(kernel.terms, kernel.shares, strict=True):
            _write_gradients(term, landmarks, X, share * coef, of_term, scratch)
            out += of_term
    elif isinstance(kernel, Laplacian):  # -sum_j c_j k(x, z_j) sign(x - z_j) / l, by input
        scales = kernel.scales(X.shape[1])
        for rows in cached_slices(len(X), len(landmarks)):
            weighted = kernel(X[rows], landmarks) * coef
            for j, scale in enumerate(scales):
                sides = np.sign(X[rows, j, None] - landmarks[:, j])
                out[rows, j] = -np.einsum("nm,nm->n", sides, weighted) / scale
