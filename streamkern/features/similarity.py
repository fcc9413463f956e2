"""Values of a kernel at given rows, as features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features.base import cached_slices
from streamkern.features.made import MadeFeatures
from streamkern.kernels import Kernel, Laplacian, RadialKernel, kernel_from
from streamkern.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamkern._typing import Array, Floats

# Up to so many inputs, squared distances are made in double, which costs little then.
_FEW_INPUTS = 64


class Similarities(MadeFeatures):
    """The features k(x, z_1), ..., k(x, z_m), which are what a kernel model predicts from.

    Parameters
    ----------
    kernel : Kernel
        With a numeric length scale, if it has one.
    landmarks : ndarray of shape (m, p)
    """

    name: ClassVar[str] = "similarities"
    scale = 1.0

    def __init__(self, kernel: Kernel, landmarks: Floats) -> None:
        if landmarks.ndim != 2 or not landmarks.size:
            raise ParameterError(
                f"landmarks are rows (m, p), but their shape is {landmarks.shape}; give some."
            )
        self.kernel = kernel
        self.landmarks = np.ascontiguousarray(landmarks)
        self.n_components, self.n_features = landmarks.shape

    def evaluated(
        self, X: Array, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        """Write the kernel's values, less `shift`, into `out`."""
        values = self.values(scratch or Scratch(), out.dtype)
        shifted = np.any(shift)
        for rows in cached_slices(len(out), self.n_components):
            features = out[rows]
            values(X[rows], features)
            if shifted:
                features -= shift
            yield rows

    def values(self, scratch: Scratch, dtype: Any) -> _Values:
        """Return a function that writes the kernel's values at rows into an array."""
        if isinstance(self.kernel, RadialKernel):
            return _RadialValues(self.kernel, self.landmarks, scratch, np.dtype(dtype))
        return _Values(self.kernel, self.landmarks)

    def first(self, n_components: int) -> Similarities:
        """Refuse: fewer rows are another choice of rows, and no smaller map for the kernel."""
        raise ParameterError(
            f"values of a kernel have no part of {n_components} that stands for it; take the map "
            f"of fewer landmarks."
        )

    def subset(self, indices: Array) -> Similarities:
        """Return the kernel's values at some of the landmarks."""
        return Similarities(self.kernel, self.landmarks[self.checked_subset(indices)])

    @property
    def has_gradients(self) -> bool:
        """Whether the kernel has them."""
        return has_slopes(self.kernel)

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        """Return the gradients of the function sum_j coef_j k(x, z_j); see `FeatureMap`."""
        self.check(X.shape)
        scratch = scratch or Scratch()
        out = scratch.array("gradients", X.shape, X.dtype)
        if isinstance(self.kernel, RadialKernel):
            self._radial_gradients(self.kernel, X, coef, out, scratch)
        elif isinstance(self.kernel, Laplacian):
            self._laplacian_gradients(self.kernel, X, coef, out)
        else:
            return super().gradients(X, coef, scratch)
        return out

    def _radial_gradients(
        self, kernel: RadialKernel, X: Array, coef: Floats, out: Array, scratch: Scratch
    ) -> None:
        """Write sum_j c_j (h'(r_j) / r_j) (x - z_j), each input over its squared length scale."""
        values = _RadialValues(kernel, self.landmarks, scratch, X.dtype)
        landmarks, weights = values.scaled_landmarks.astype(X.dtype), coef.astype(X.dtype)
        for rows in cached_slices(len(X), self.n_components):
            shape = (rows.stop - rows.start, self.n_components)
            slopes = scratch.array("slopes", shape, X.dtype)
            values.write_squares(X[rows], slopes)
            slopes[...] = kernel.slope(np.sqrt(slopes))
            slopes *= weights
            scaled = values.centred(X[rows]) * slopes.sum(axis=1)[:, None] - slopes @ landmarks
            out[rows] = scaled / values.scales

    def _laplacian_gradients(self, kernel: Laplacian, X: Array, coef: Floats, out: Array) -> None:
        """Write -sum_j c_j k(x, z_j) sign(x - z_j) / l, input by input."""
        scales = kernel.scales(X.shape[1])
        for rows in cached_slices(len(X), self.n_components):
            weighted = kernel(X[rows], self.landmarks) * coef
            for j, scale in enumerate(scales):
                sides = np.sign(X[rows, j, None] - self.landmarks[:, j])
                out[rows, j] = -np.einsum("nm,nm->n", sides, weighted) / scale

    def parameters(self) -> dict[str, Any]:
        """Return the kernel as plain JSON values."""
        return {"kernel": self.kernel.name, "kernel_parameters": self.kernel.parameters()}

    def arrays(self) -> dict[str, Array]:
        """Return the landmarks (m, p)."""
        return {"landmarks": self.landmarks}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Rebuild the map from its file form."""
        kernel = kernel_from(parameters["kernel"], parameters["kernel_parameters"])
        return cls(kernel, arrays["landmarks"])


def has_slopes(kernel: Kernel) -> bool:
    """Say whether the values of a kernel at landmarks have gradients here."""
    return isinstance(kernel, (RadialKernel, Laplacian))


class _Values:
    """The values of a kernel at landmarks, by its own definition and in double."""

    def __init__(self, kernel: Kernel, landmarks: Floats) -> None:
        self.kernel = kernel
        self.landmarks = landmarks

    def __call__(self, X: Array, out: Array) -> None:
        """Write the values (n, m) at rows (n, p)."""
        np.copyto(out, self.kernel(X, self.landmarks), casting="same_kind")


class _RadialValues(_Values):
    """The same for kernels of the Euclidean distance, by a product: |x|^2 - 2 x z + |z|^2.

    That loses as many digits as distances are smaller than rows are long, so rows are taken about
    the mean of the landmarks, and products are made in double where inputs are few.  Where they
    are many, rows are hardly ever much closer to each other than they are long.
    """

    kernel: RadialKernel

    def __init__(
        self, kernel: RadialKernel, landmarks: Floats, scratch: Scratch, dtype: np.dtype[Any]
    ) -> None:
        super().__init__(kernel, landmarks)
        m, p = landmarks.shape
        self.scratch = scratch
        self.scales = kernel.scales(p)
        self.centre = landmarks.mean(axis=0)
        self.dtype = np.dtype(np.float64) if p <= _FEW_INPUTS else dtype
        self.scaled_landmarks = self.centred(landmarks)
        # Of (-2 x, |x|^2, 1): one product makes squared distances.
        self.factors = scratch.array("landmarks", (m, p + 2), self.dtype)
        self.factors[:, :p] = self.scaled_landmarks
        self.factors[:, p] = 1.0
        self.factors[:, p + 1] = np.square(self.scaled_landmarks).sum(axis=1)

    def centred(self, X: Array) -> Floats:
        """Return rows about the landmarks' mean, over the length scale."""
        rows: Floats = (X - self.centre) / self.scales
        return rows

    def __call__(self, X: Array, out: Array) -> None:
        """Write the values (n, m) at rows (n, p)."""
        self.write_squares(X, out)
        out[...] = self.kernel.profile_of_squares(out)

    def write_squares(self, X: Array, out: Array) -> None:
        """Write squared distances (n, m) of scaled rows (n, p)."""
        n, p = X.shape
        rows = self.scratch.array("row factors", (n, p + 2), self.dtype)
        scaled = self.centred(X)
        np.multiply(scaled, -2.0, out=rows[:, :p])
        rows[:, p] = np.square(scaled).sum(axis=1)
        rows[:, p + 1] = 1.0
        squares = out
        if self.dtype != out.dtype:
            squares = self.scratch.array("squares", out.shape, self.dtype)
        np.matmul(rows, self.factors.T, out=squares)
        np.maximum(squares, 0.0, out=out, casting="same_kind")
