"""Values of a kernel at given rows, as features."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap, cached_slices
from streamkern.features.kernel_map import ChosenFeatures, WrittenFeatures
from streamkern.kernels import Kernel, Laplacian, RadialKernel, Sum, kernel_from
from streamkern.kernels.shift_invariant import distances
from streamkern.runtime.scratch import Scratch

# Up to so many inputs, squared distances are made in double, which costs little then.
_FEW_INPUTS = 64
# Squared lengths of rows, in length scales, up to which single and double precision make values of
# a kernel of slope 1 that are off by less than 1e-5; and the same for one of infinite slope.
_NEAR, _FAR = 8.0, 1e9
_STEEP = 1e-5


class KernelColumns(ChosenFeatures):
    """The features k(x, z_1), ..., k(x, z_m), which are what a kernel model predicts from."""

    name = "similarities"
    no_part = (
        "values of a kernel have no part of {} that stands for it; take the map of fewer landmarks."
    )
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

    def subset(self, indices: Array) -> "KernelColumns":
        return KernelColumns(self.kernel, self.landmarks[self.checked_subset(indices)])

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
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

    exact_rows = True
    similarities: KernelColumns
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

    def compress(self, coef: Floats, *, alike: bool = False) -> tuple[FeatureMap, Floats]:  # noqa: ARG002
        """Return the kernel at the landmarks: the function sum_j c_j k(x, z_j), c = W coef."""
        return self.similarities, self.weights @ coef

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        return self.similarities.gradients(X, self.weights @ coef, scratch)


class Projected(LandmarkFeatures, ChosenFeatures):
    """Linear combinations, by weights (m, K), of the values of a kernel at m landmarks."""

    name = "projected"

    def __init__(self, similarities: KernelColumns, weights: Floats) -> None:
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
        return cls(KernelColumns.restore(parameters, arrays), arrays["weights"])


def has_slopes(kernel: Kernel) -> bool:
    """Say whether the values of a kernel at landmarks have gradients."""
    if isinstance(kernel, Sum):
        return all(map(has_slopes, kernel.kernels))
    return isinstance(kernel, (RadialKernel, Laplacian))


def _prepared(
    kernel: Kernel, landmarks: Floats, dtype: np.dtype[Any], scratch: Scratch
) -> Callable[[Array, Array], None]:
    """Return what writes the values of a kernel of rows and landmarks."""
    if isinstance(kernel, RadialKernel):
        return RadialValues(kernel, landmarks, scratch, dtype).write
    if isinstance(kernel, Sum):
        each = [
            (share, columns, _prepared(part, landmarks[:, columns], dtype, scratch.part(f"{i}")))
            for i, (share, part, columns) in enumerate(kernel.scaled_parts)
        ]

        def write_sum(X: Array, features: Array) -> None:
            values = scratch.array("values of a part", features.shape, dtype)
            features[...] = 0.0
            for share, columns, write_part in each:
                write_part(X[:, columns], values)
                values *= dtype.type(share)
                features += values

        return write_sum

    def write_values(X: Array, features: Array) -> None:
        np.copyto(features, kernel(X, landmarks), casting="same_kind")
        features[~np.isfinite(X).all(axis=1)] = np.nan

    return write_values


def _write_gradients(  # noqa: PLR0917  a function, where it is, and how
    kernel: Kernel, landmarks: Floats, X: Array, coef: Floats, out: Array, scratch: Scratch
) -> None:
    """Write the gradients (n, p) of sum_j c_j k(x, z_j)."""
    if isinstance(kernel, RadialKernel):
        RadialValues(kernel, landmarks, scratch, X.dtype).write_gradients(X, coef, out)
    elif isinstance(kernel, Sum):
        out[...] = 0.0
        for share, part, columns in kernel.scaled_parts:
            of_part = np.empty((len(X), len(columns)), X.dtype)
            some = landmarks[:, columns]
            _write_gradients(part, some, X[:, columns], share * coef, of_part, scratch)
            out[:, columns] += of_part
    elif isinstance(kernel, Laplacian):  # -sum_j c_j k(x, z_j) sign(x - z_j) / l, by input
        scales = kernel.scales(X.shape[1])
        for rows in cached_slices(len(X), len(landmarks)):
            weighted = kernel(X[rows], landmarks) * coef
            for j, scale in enumerate(scales):
                sides = np.sign(X[rows, j, None] - landmarks[:, j])
                out[rows, j] = -np.einsum("nm,nm->n", sides, weighted) / scale
        out[~np.isfinite(X).all(axis=1)] = np.nan


class RadialValues:
    """Values of a kernel of the Euclidean distance, by a product: |x|^2 - 2 x z + |z|^2.

    Its rounding is a part of the squared distance, which does no harm, and of |x|^2, whatever |z|
    is.  So rows are taken about the mean of the landmarks, and each in the precision that its own
    length asks for: in single where inputs are many and it is short, in double, or farther out by
    differences, one by one.
    """

    def __init__(
        self, kernel: RadialKernel, landmarks: Floats, scratch: Scratch, dtype: np.dtype[Any]
    ) -> None:
        p = landmarks.shape[1]
        self.kernel, self.scratch = kernel, scratch
        self.scales = kernel.scales(p)
        self.centre = landmarks.mean(axis=0)
        self.dtype = np.dtype(np.float64) if p <= _FEW_INPUTS else dtype
        self.scaled_landmarks = self.centred(landmarks)
        # The kernel is steepest, as a function of squared distances, at 0.
        slope = abs(float(kernel.slope(np.zeros(1))[0]))
        flat = 1.0 / slope if slope else _STEEP
        self.near, self.far = _NEAR * flat, _FAR * flat
        self._factors: dict[np.dtype[Any], Array] = {}

    def centred(self, X: Array) -> Floats:
        """Return rows about the landmarks' mean, over the length scale."""
        return (X - self.centre) / self.scales

    def write(self, X: Array, out: Array) -> None:
        self.write_squares(self.centred(X), out)
        out[...] = self.kernel.profile_of_squares(out)

    def write_gradients(self, X: Array, coef: Floats, out: Array) -> None:
        """Write sum_j c_j (h'(r_j) / r_j) (x - z_j), each input over its squared length scale."""
        landmarks, weights = self.scaled_landmarks.astype(X.dtype), coef.astype(X.dtype)
        for rows in cached_slices(len(X), len(landmarks)):
            scaled = self.centred(X[rows])
            slopes = self.scratch.array("slopes", (len(scaled), len(landmarks)), X.dtype)
            self.write_squares(scaled, slopes)
            slopes[...] = self.kernel.slope(np.sqrt(slopes))
            slopes *= weights
            # Far out both terms are large, and cancel.
            apart: Array = slopes @ landmarks
            if (np.square(scaled).sum(axis=1) > self.near).any():
                slopes = slopes.astype(np.float64)
                apart = slopes @ self.scaled_landmarks
            out[rows] = (scaled * slopes.sum(axis=1)[:, None] - apart) / self.scales

    @np.errstate(over="ignore")  # infinitely far away, where the kernel is 0
    def write_squares(self, scaled: Floats, out: Array) -> None:
        """Write squared distances (n, m) of rows (n, p) that are centred."""
        lengths, double = np.square(scaled).sum(axis=1), np.dtype(np.float64)
        doubled = lengths > self.near if self.dtype != double else np.ones(len(scaled), dtype=bool)
        if doubled.all() or not doubled.any():
            self._multiply(scaled, lengths, out, double if doubled.any() else self.dtype)
        else:
            for rows, dtype in ((doubled, double), (~doubled, self.dtype)):
                part = out[rows]
                self._multiply(scaled[rows], lengths[rows], part, dtype)
                out[rows] = part
        beyond = lengths > self.far
        if beyond.any():
            beyond &= np.isfinite(scaled).all(axis=1)
            out[beyond] = distances(scaled[beyond], self.scaled_landmarks, "sqeuclidean")

    def _multiply(self, scaled: Floats, lengths: Floats, out: Array, dtype: np.dtype[Any]) -> None:
        n, p = scaled.shape
        rows = self.scratch.array(f"row factors in {dtype}", (n, p + 2), dtype)
        np.multiply(scaled, -2.0, out=rows[:, :p], casting="same_kind")
        rows[:, p] = lengths
        rows[:, p + 1] = 1.0
        squares = out
        if dtype != out.dtype:
            squares = self.scratch.array("squares", out.shape, dtype)
        np.matmul(rows, self._landmark_factors(dtype).T, out=squares)
        np.maximum(squares, 0.0, out=out, casting="same_kind")

    def _landmark_factors(self, dtype: np.dtype[Any]) -> Array:
        """Return what (-2 x, |x|^2, 1) of rows is multiplied by, (m, p + 2)."""
        if dtype not in self._factors:
            m, p = self.scaled_landmarks.shape
            factors = self.scratch.array(f"landmarks in {dtype}", (m, p + 2), dtype)
            factors[:, :p] = self.scaled_landmarks
            factors[:, p] = 1.0
            factors[:, p + 1] = np.square(self.scaled_landmarks).sum(axis=1)
            self._factors[dtype] = factors
        return self._factors[dtype]
