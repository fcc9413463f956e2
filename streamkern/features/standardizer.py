"""The scaling of inputs, and the linear map of a metric behind it."""

from dataclasses import dataclass, replace

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import cached_slices
from streamkern.features.exact_products import SURE_BITS, coarse, factor_bits, sure
from streamkern.runtime.scratch import Scratch

# Deviations from the median beyond which values are alike in a scale with a bound.
FARTHEST = 1e150
# Rows are cast to double and back, which takes more of the cache than features do.
_DOUBLES = 4


@dataclass(frozen=True)
class Standardizer:
    """Columns that are kept, less their mean, over their standard deviation, and maybe turned.

    z = A b(u), u = (x - mean) / deviation, where A makes the distance of a metric M = A^T A out of
    the plain one; without A it is the identity.  With a bound B, b(u) = u / sqrt(1 + (u / B)^2)
    brings values far out nearer, in their order.  With knots, b goes straight from one to the next,
    rising, and is constant beyond the last.  Without either, b(u) = u.
    """

    columns: Array  # (p',) that are kept; constant ones are left out
    mean: Floats  # or medians
    deviation: Floats  # or what quartiles say of it
    n_features: int  # p, before columns are left out
    linear: Floats | None = None  # A (r, p'), or its diagonal (p',)
    bound: float | None = None  # B
    knots: Floats | None = None  # (2, p', K), the u of each column and the b(u), both rising

    @property
    def bends(self) -> bool:
        """Whether b(u) is other than u."""
        return self.bound is not None or self.knots is not None

    @property
    def n_outputs(self) -> int:
        return len(self.columns) if self.linear is None else len(self.linear)

    @property
    def outputs(self) -> Array:
        """The columns that kernels are of: those of the inputs, or of what they are turned to."""
        turns = self.linear is not None and self.linear.ndim == 2
        return np.arange(self.n_outputs) if turns else self.columns

    @property
    def matrix(self) -> Floats:
        """A (r, p'), the identity where there is none."""
        if self.linear is None:
            return np.eye(len(self.columns))
        return self.linear if self.linear.ndim == 2 else np.diag(self.linear)

    def beside(self, other: "Standardizer", factors: Floats) -> "Standardizer":
        """Return the one of the numbers of this and then of another of the same inputs and scale.

        They are multiplied by one factor each.
        """
        return self.with_linear(np.vstack([self.matrix * factors[0], other.matrix * factors[1]]))

    def __call__(self, X: Array) -> Floats:
        rows = np.empty((len(X), self.n_outputs))
        self.write(X, rows, Scratch())
        return rows

    def write(self, X: Array, out: Array, scratch: Scratch, *, exact: bool = False) -> None:
        """Write standardised rows (n, r), computed in double since a mean can be large.

        What is left has no mean any more, and its product with A the precision of `out`; an exact
        one is of rows that are rounded first, and in double.
        """
        turned, bits = None, factor_bits(len(self.columns))
        if self.linear is not None and self.linear.ndim == 2:
            turned = (coarse(self.linear, bits) if exact else self.linear).T.astype(out.dtype)
        for part in cached_slices(len(X), _DOUBLES * len(self.columns)):
            kept = X[part] if len(self.columns) == self.n_features else X[part][:, self.columns]
            centred = scratch.array("centred", kept.shape, np.float64)
            np.subtract(kept, self.mean, out=centred)
            plain = out[part]
            weights = self.linear if turned is None else None
            if turned is not None:
                plain = scratch.array("standardised", kept.shape, out.dtype)
            elif weights is not None and not self.bends:
                centred *= weights
            if not self.bends:
                np.divide(centred, self.deviation, out=plain, casting="same_kind")
            else:
                centred /= self.deviation
                centred[~np.isfinite(kept)] = np.nan  # which no bend makes a number of
                self._bend(centred)
                np.multiply(
                    centred, 1.0 if weights is None else weights, out=plain, casting="same_kind"
                )
            if turned is not None:
                np.matmul(coarse(plain, bits) if exact else plain, turned, out=out[part])

    def _bend(self, u: Floats) -> None:
        if self.bound is not None:
            np.clip(u, -FARTHEST, FARTHEST, out=u)  # whose square is a number
            u /= np.sqrt(1.0 + np.square(u / self.bound))
        if self.knots is not None:
            for column, places, values in zip(u.T, *self.knots, strict=True):
                column[:] = np.interp(column, places, values)

    def _slopes(self, u: Floats) -> Floats:
        """Return the derivatives of b (n, p')."""
        slopes = np.ones_like(u)
        if self.bound is not None:
            slopes = (1.0 + np.square(u / self.bound)) ** -1.5
        if self.knots is not None:
            for j, (places, values) in enumerate(zip(*self.knots, strict=True)):
                pieces = np.pad(np.diff(values) / np.diff(places), 1)
                slopes[:, j] = pieces[np.searchsorted(places, u[:, j], side="right")]
        return slopes

    def folded(self, frequencies: Floats) -> tuple[Floats, Floats]:
        """Return B (p, L) and c (L,) with W z = B^T x - c, for frequencies W (L, r)."""
        turned = frequencies
        if self.linear is not None:
            turned = turned @ self.linear if self.linear.ndim == 2 else turned * self.linear
        by_inputs = np.zeros((self.n_features, len(frequencies)))
        by_inputs[self.columns] = (turned / self.deviation).T
        return by_inputs, self.mean @ by_inputs[self.columns]

    def pull_back(self, gradients: Array, X: Array, out: Array) -> None:
        """Write gradients (n, r) with respect to what `write` writes as those of the rows (n, p).

        Inputs that are left out have gradient 0.
        """
        if self.linear is not None:
            linear = self.linear.astype(gradients.dtype)
            gradients = gradients @ linear if linear.ndim == 2 else gradients * linear
        if self.bends:
            gradients = gradients * self._slopes((X[:, self.columns] - self.mean) / self.deviation)
        out[...] = 0.0
        out[:, self.columns] = gradients / self.deviation

    def coarsened(self) -> "Standardizer":
        """Return the one with means and deviations of 20 bits, for their sums' rounding to go."""
        deviation = sure(self.deviation)
        unit = np.ldexp(1.0, np.frexp(deviation)[1] - SURE_BITS)
        return replace(self, mean=np.rint(self.mean / unit) * unit, deviation=deviation)

    def with_linear(self, linear: Floats | None) -> "Standardizer":
        return replace(self, linear=linear)

    def then(self, other: "Standardizer") -> "Standardizer":
        if self.linear is not None or self.bends:
            raise ParameterError(
                "inputs in a metric, or in a scale that bends them, cannot be standardised again; "
                "leave out the metric, or take scale 'standard'."
            )
        columns, deviation = self.columns[other.columns], self.deviation[other.columns]
        mean = self.mean[other.columns] + deviation * other.mean
        deviation = deviation * other.deviation
        return Standardizer(columns, mean, deviation, self.n_features, other.linear)
