"""Functions of random projections, and cosines of given frequencies and phases.

In double NumPy has vector code for the tangent but not for cosine and sine, which take twelve times
as long: cos t = 2 / (1 + tan(t / 2)^2) - 1 and sin t = tan(t / 2) (1 + cos t).  What this loses is
absolute rounding of 3e-16.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import cached_slices
from streamkern.features.kernel_map import ChosenFeatures, WrittenFeatures
from streamkern.features.projection import Frequencies, Projection
from streamkern.features.standardizer import Standardizer
from streamkern.runtime.scratch import Scratch


class ProjectedFeatures(WrittenFeatures):
    """Functions of the angles w_k^T x, or w_k^T x + u_k where one is one feature."""

    projection: Projection
    phases: Floats
    has_gradients = True

    @property
    def offsets(self) -> Floats:
        """What is added to the angles (L,): their phases."""
        return self.phases

    @property
    def n_factors(self) -> int:  # type: ignore[override]
        return self.projection.n_factors

    @property
    def frequencies(self) -> Floats:
        return self.projection.frequencies

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:
        project = self.projection.prepared(dtype, scratch)
        offsets, n_draws = self.offsets.astype(dtype), self.projection.n_draws
        has_offsets, in_place = offsets.any(), n_draws == self.n_components

        def write(X: Array, features: Array) -> None:
            angles = features
            if not in_place:
                angles = scratch.array("angles", (len(features), n_draws), dtype)
            project(X, angles)
            if has_offsets:
                angles += offsets
            self.waves(angles, features, scratch)

        return write

    def of_sparse_rows(self, standardizer: Standardizer, dtype: Any) -> Self:
        """Return the same functions of sparse rows that are not standardised."""
        folded = copy(self)
        projection: Any = self.projection
        folded.projection = projection.folded(standardizer, dtype)
        folded.n_features = standardizer.n_features
        return folded

    def round_into(self, X: Array, levels: int, out: Array, scratch: Scratch) -> None:
        project, ahead = self.projection.in_turns(scratch), self.offsets[:, None] / (2.0 * math.pi)
        width = max(self.projection.n_draws // 2, self.n_features // 2)
        for rows in cached_slices(len(X), width):
            turns = scratch.array("turns", (len(ahead), rows.stop - rows.start), np.float64)
            project(X[rows], turns)
            turns += ahead
            self.round_waves(turns, levels, out, rows.start)

    def round_waves(self, turns: Array, levels: int, out: Array, start: int) -> None:
        """Write rounded features at angles (L, n) in turns to the columns of `out` from `start`."""
        from streamkern.features.rounded_waves import round_cosines  # noqa: PLC0415  it is compiled

        round_cosines(turns, np.float32(levels), out, start)

    @abstractmethod
    def waves(self, angles: Array, out: Array, scratch: Scratch) -> None:
        """Write the features at the angles (n, L), which are lost, into `out` (n, D)."""

    @abstractmethod
    def as_cosines(self, coef: Floats) -> "tuple[Cosines, Floats]":
        """Return one cosine an angle, and coefficients (L,) for the function of those (D,)."""

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        """Return the sums of -r_k sin(w_k^T x + s_k) w_k, where the function is r_k cos(...)."""
        scratch = scratch or Scratch()
        single, weights = self.as_cosines(coef)
        projection, dtype = single.projection, X.dtype
        gradients = scratch.array("gradients", X.shape, dtype)
        project = projection.prepared(dtype, scratch)
        pull_back = projection.pulled_back(dtype, scratch)
        # -sin t = cos(t + pi / 2).
        phases, weights = (single.phases + math.pi / 2).astype(dtype), weights.astype(dtype)
        for rows in cached_slices(len(X), projection.n_draws, self.n_factors):
            slopes = scratch.array("slopes", (len(X[rows]), projection.n_draws), dtype)
            project(X[rows], slopes)
            slopes += phases
            cosines(slopes, slopes)
            slopes *= weights
            pull_back(slopes, gradients[rows])
        return gradients


class Cosines(ChosenFeatures, ProjectedFeatures):
    """The features scale a_k cos(w_k^T x + u_k), of K frequencies that were chosen.

    Any choice of random Fourier features is such a map, since sin t = cos(t - pi / 2).
    """

    name = "cosines"

    def __init__(
        self, projection: Projection, phases: Floats, scale: float, amplitudes: Floats | None = None
    ) -> None:
        for numbers in (phases, *([] if amplitudes is None else [amplitudes])):
            if numbers.shape != (projection.n_draws,):
                raise ParameterError(
                    f"expected as many phases and amplitudes as frequencies, found shapes "
                    f"{numbers.shape} and {(projection.n_draws, projection.n_features)}; give one "
                    f"a frequency."
                )
        self.projection, self.phases = projection, phases
        self.scale, self.amplitudes = scale, amplitudes
        self.takes_sparse = isinstance(projection, Frequencies)
        self.n_components, self.n_features = projection.n_draws, projection.n_features

    @property
    def bounds(self) -> Floats | float:
        return 1.0 if self.amplitudes is None else self.amplitudes

    def waves(self, angles: Array, out: Array, scratch: Scratch) -> None:  # noqa: ARG002
        cosines(angles, out)
        if self.amplitudes is not None:
            out *= self.amplitudes.astype(out.dtype)

    def subset(self, indices: Array) -> "Cosines":
        chosen = self.checked_subset(indices)
        amplitudes = None if self.amplitudes is None else self.amplitudes[chosen]
        rows = Frequencies(self.projection.rows(chosen))
        return Cosines(rows, self.phases[chosen], self.scale, amplitudes)

    def as_cosines(self, coef: Floats) -> "tuple[Cosines, Floats]":
        if self.amplitudes is None:
            return self, coef
        return Cosines(self.projection, self.phases, self.scale), coef * self.amplitudes

    def parameters(self) -> dict[str, Any]:
        return {"scale": self.scale}

    def arrays(self) -> dict[str, Array]:
        amplitudes = {} if self.amplitudes is None else {"amplitudes": self.amplitudes}
        return {"frequencies": self.frequencies, "phases": self.phases, **amplitudes}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        scale, amplitudes = float(parameters["scale"]), arrays.get("amplitudes")
        return cls(Frequencies.restore(arrays), arrays["phases"], scale, amplitudes)


def cosines(angles: Array, out: Array) -> None:
    """Write cos of every angle into `out`, of the same shape and dtype, maybe the same array."""
    if angles.dtype != np.float64:
        np.cos(angles, out=out)
        return
    np.multiply(angles, 0.5, out=out)
    np.tan(out, out=out)
    _one_plus_cosines(out, out)
    out -= 1.0


def cosines_and_sines(angles: Array, cosine: Array, sine: Array) -> None:
    """Write cos and sin of every angle, each into an array of the same shape and dtype.

    The angles are lost; the sines may take their place.
    """
    if angles.dtype != np.float64:
        np.cos(angles, out=cosine)
        np.sin(angles, out=sine)
        return
    angles *= 0.5
    np.tan(angles, out=angles)
    _one_plus_cosines(angles, cosine)
    np.multiply(angles, cosine, out=sine)
    cosine -= 1.0


def _one_plus_cosines(tangents: Array, out: Array) -> None:
    """Write 1 + cos t into `out`, given tan(t / 2)."""
    np.multiply(tangents, tangents, out=out)
    out += 1.0
    np.divide(2.0, out, out=out)
