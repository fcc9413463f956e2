"""Functions of random projections, and cosines of given frequencies and phases."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap, cached_slices
from streamkern.features.trigonometry import cosines
from streamkern.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamkern._typing import Array, Floats


class ProjectedFeatures(FeatureMap):
    """Features that are functions of the angles w_k^T x, or w_k^T x + u_k where one is one feature.

    Attributes
    ----------
    frequencies : ndarray of shape (L, p)
    phases : ndarray of shape (L,)
    """

    frequencies: Floats
    phases: Floats

    def evaluated(
        self, X: Array, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        """Write the functions of the angles, less `shift`, into `out`."""
        scratch, shifted = scratch or Scratch(), np.any(shift)
        frequencies = scratch.array("frequencies", self.frequencies.shape, out.dtype)
        frequencies[...] = self.frequencies
        phases = self.phases.astype(out.dtype)
        in_place = len(frequencies) == self.n_components
        for rows in cached_slices(len(out), self.n_components):
            angles = features = out[rows]
            if not in_place:
                angles = scratch.array("angles", (len(features), len(frequencies)), out.dtype)
            np.matmul(X[rows].astype(out.dtype, copy=False), frequencies.T, out=angles)
            if in_place:
                angles += phases
            self.waves(angles, features, scratch)
            if shifted:
                features -= shift
            yield rows

    @abstractmethod
    def waves(self, angles: Array, out: Array, scratch: Scratch) -> None:
        """Write the features at the angles (n, L), which are lost, into `out` (n, D)."""


class Cosines(ProjectedFeatures):
    """The features scale cos(w_k^T x + u_k), of frequencies and phases that someone else chose.

    Any choice of random Fourier features is such a map, since sin t = cos(t - pi / 2): one
    projection and one cosine a feature, however many there were to choose from.

    Parameters
    ----------
    frequencies : ndarray of shape (K, p)
    phases : ndarray of shape (K,)
    scale : float
        That of the map they were chosen from, so that the features stay what they were.
    """

    name: ClassVar[str] = "cosines"

    def __init__(self, frequencies: Floats, phases: Floats, scale: float) -> None:
        if frequencies.ndim != 2 or phases.shape != frequencies.shape[:1]:
            raise ParameterError(
                f"expected as many phases as frequencies, found shapes {phases.shape} and "
                f"{frequencies.shape}; give one phase a frequency."
            )
        self.frequencies = frequencies
        self.phases = phases
        self.scale = scale
        self.n_components, self.n_features = frequencies.shape

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  nothing is drawn
        """Check the number of inputs; nothing is random."""
        self.check((0, n_features))
        return self

    def waves(self, angles: Array, out: Array, scratch: Scratch) -> None:  # noqa: ARG002
        """Write the cosines of angles (n, K), which are lost, into `out` (n, K)."""
        cosines(angles, out)

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        """Return -sum_k coef_k sin(w_k^T x + u_k) w_k at every row, as `FeatureMap.gradients`."""
        scratch, dtype = scratch or Scratch(), X.dtype
        frequencies = self.frequencies.astype(dtype)
        phases = (self.phases + np.pi / 2).astype(dtype)  # cos(t + pi / 2) = -sin t
        weighted = frequencies * coef.astype(dtype)[:, None]
        gradients = scratch.array("gradients", (len(X), self.n_features), dtype)
        for rows in cached_slices(len(X), self.n_components):
            angles = scratch.array("angles", (len(X[rows]), self.n_components), dtype)
            np.matmul(X[rows], frequencies.T, out=angles)
            angles += phases
            cosines(angles, angles)
            np.matmul(angles, weighted, out=gradients[rows])
        return gradients

    def first(self, n_components: int) -> Cosines:
        """Refuse: what was chosen for its use has no part that stands for the kernel."""
        raise ParameterError(
            f"features that were chosen have no part of {n_components} that stands for the kernel; "
            f"choose fewer from the whole map."
        )

    def subset(self, indices: Array) -> Cosines:
        """Return the cosines of some of the frequencies."""
        chosen = self.checked_subset(indices)
        return Cosines(self.frequencies[chosen], self.phases[chosen], self.scale)

    def parameters(self) -> dict[str, Any]:
        """Return the scale."""
        return {"scale": self.scale}

    def arrays(self) -> dict[str, Array]:
        """Return the frequencies (K, p) and the phases (K,)."""
        return {"frequencies": self.frequencies, "phases": self.phases}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Rebuild the map from its file form."""
        return cls(arrays["frequencies"], arrays["phases"], float(parameters["scale"]))
