"""Features of shift-invariant kernels, by frequencies of their spectral distributions."""

import math
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap
from streamkern.features.cosines import Cosines, ProjectedFeatures, cosines, cosines_and_sines
from streamkern.features.kernel_map import KernelMap
from streamkern.features.projection import Frequencies, Projection
from streamkern.kernels import Kernel, ShiftInvariantKernel
from streamkern.runtime.scratch import Scratch


class SpectralFeatures(KernelMap, ProjectedFeatures):
    """Cosines and sines of frequencies that a shift-invariant kernel is made of.

    A new choice of frequencies is one class with a constructor and `draw`.

    Features are pairs (b = 2, L = D / 2) or have phases (b = 1, L = D).  Of an odd D the last
    frequency has a cosine alone, with its phase, so that it is of half the kernel in expectation
    too.  Where amplitudes (L,) are given, waves of a frequency are multiplied by them.
    """

    nesting = 2
    takes_sparse = True
    kernels: ClassVar[type[Kernel]] = ShiftInvariantKernel  # type: ignore[type-abstract]
    projected_by: ClassVar[type[Projection]] = Frequencies
    amplitudes: Floats | None = None

    def __init__(
        self,
        kernel: Kernel,
        n_components: int = 2048,
        *,
        paired: bool = True,
        random_state: int = 0,
    ) -> None:
        super().__init__(kernel, n_components, random_state)
        self.paired = paired
        # D / 2 pairs, each of the kernel in expectation, and cosines with phases, of half of it.
        self.scale = math.sqrt(2.0 / self.n_components)

    def check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(kernel, ShiftInvariantKernel):
            raise ParameterError(
                f"random Fourier features need a shift-invariant kernel, not {kernel!r}; take "
                f"another map, such as 'nystroem'."
            )
        if not isinstance(kernel, self.kernels):
            raise ParameterError(
                f"the map {self.name!r} is for kernels of the Euclidean distance, not "
                f"{kernel.name!r}; take the orthogonal map."
            )

    @property
    def n_draws(self) -> int:
        return -(-self.n_components // 2) if self.paired else self.n_components

    @property
    def offsets(self) -> Floats:
        """What is added to the angles (L,): phases, but 0 where there is a pair."""
        offsets = self.phases.copy()
        offsets[: self.n_components - self.n_draws] = 0.0
        return offsets

    def _drawn(
        self, projection: Projection, phases: Floats, amplitudes: Floats | None = None
    ) -> Self:
        L = self.n_draws
        n_amplitudes = L if amplitudes is None else amplitudes.size
        if projection.n_draws != L or phases.shape != (L,) or n_amplitudes != L:
            raise ParameterError(
                f"expected {L} frequencies and phases, found shapes "
                f"{(projection.n_draws, projection.n_features)} and {phases.shape}; the file is "
                f"damaged."
            )
        self.n_features = projection.n_features
        self.projection, self.phases, self.amplitudes = projection, phases, amplitudes
        return self

    def waves(self, angles: Array, out: Array, scratch: Scratch) -> None:
        """Write the cosines (and sines, interleaved) of angles (n, L), which are lost, to `out`."""
        if not self.paired:
            cosines(angles, out)
            return
        # NumPy's vector code is half as fast where it writes every other number.
        cosine = scratch.array("cosines", angles.shape, angles.dtype)
        cosines_and_sines(angles, cosine, angles)
        if self.amplitudes is not None:
            amplitudes = self.amplitudes.astype(out.dtype)
            cosine *= amplitudes
            angles *= amplitudes
        out[:, 0::2] = cosine
        out[:, 1::2] = angles[:, : self.n_components // 2]

    @property
    def bounds(self) -> Floats | float:
        if self.amplitudes is None:
            return 1.0
        return np.repeat(self.amplitudes, 1 + self.paired)[: self.n_components]

    def round_waves(self, turns: Array, levels: int, out: Array, start: int) -> None:
        if not self.paired:
            super().round_waves(turns, levels, out, start)
            return
        from streamkern.features.rounded_waves import round_pairs  # noqa: PLC0415  it is compiled

        round_pairs(turns, np.float32(levels), out, start)

    def first(self, n_components: int) -> Self:
        """Return the map of the first draws, which is the map with that many and the same seed."""
        size = self.checked_part(n_components)
        if self.paired and size % 2 and size < self.n_components:
            raise ParameterError(
                f"n_components must be even of a part of a map of pairs, not {size}; ask for "
                f"{size + 1}."
            )
        smaller = type(self)(self.kernel, **{**self.arguments(), "n_components": n_components})
        L = smaller.n_draws
        amplitudes = None if self.amplitudes is None else self.amplitudes[:L]
        return smaller._drawn(self.projection.first(L), self.phases[:L], amplitudes)  # noqa: SLF001  its own class

    def subset(self, indices: Array) -> Cosines:
        chosen = self.checked_subset(indices)
        of_draws = chosen // 2 if self.paired else chosen
        # sin t = cos(t - pi / 2).
        phases = self.offsets[of_draws] - (np.pi / 2 * (chosen % 2) if self.paired else 0.0)
        amplitudes = None if self.amplitudes is None else self.amplitudes[of_draws]
        return Cosines(Frequencies(self.projection.rows(of_draws)), phases, self.scale, amplitudes)

    def as_cosines(self, coef: Floats) -> tuple[Cosines, Floats]:
        """Return one cosine a pair: a cos t + b sin t = r cos(t - s)."""
        if not self.paired:
            return Cosines(self.projection, self.phases, self.scale), coef
        of_cosine, of_sine = coef[0::2], np.zeros(self.n_draws)
        of_sine[: len(coef) // 2] = coef[1::2]
        weights = np.hypot(of_cosine, of_sine)
        if self.amplitudes is not None:
            weights *= self.amplitudes
        phases = self.offsets - np.arctan2(of_sine, of_cosine)
        return Cosines(self.projection, phases, self.scale), weights

    def compress(self, coef: Floats, *, alike: bool = False) -> tuple[FeatureMap, Floats]:
        if alike or not self.paired or coef.shape[1] > 1:
            return self, coef
        single, weights = self.as_cosines(coef[:, 0])
        return single, weights[:, None]

    def arrays(self) -> dict[str, Array]:
        arrays = {**self.projection.arrays(), "phases": self.phases}
        if self.amplitudes is not None:
            arrays["amplitudes"] = self.amplitudes
        return arrays

    def take_arrays(self, arrays: Mapping[str, Array]) -> None:
        self._drawn(self.projected_by.restore(arrays), arrays["phases"], arrays.get("amplitudes"))
