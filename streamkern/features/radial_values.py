"""Values of kernels of the Euclidean distance, and their gradients, by matrix products."""

from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.features.base import cached_slices
from streamkern.kernels import RadialKernel
from streamkern.kernels.scaled import distances
from streamkern.runtime.scratch import Scratch

# Up to so many inputs, squared distances are made in double, which costs little then.
_FEW_INPUTS = 64
# Squared lengths of rows, in length scales, up to which single and double precision make values of
# a kernel of slope 1 that are off by less than 1e-5; and the same for one of infinite slope.
_NEAR, _FAR = 8.0, 1e9
_STEEP = 1e-5


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
