"""Structured orthogonal random features: frequencies by fast transforms, for many inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from streamkern.features.hadamard import HadamardProjection, block_size
from streamkern.features.random_streams import stream
from streamkern.features.spectral import (
    DIRECTIONS,
    LENGTHS,
    SpectralFeatures,
    drawn_phases,
    drawn_uniforms,
)
from streamkern.kernels import RadialKernel

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.kernels import ShiftInvariantKernel


class StructuredFourierFeatures(SpectralFeatures):
    """Random Fourier features whose directions are made by signs and Hadamard transforms.

    A block of P frequencies is sqrt(P) H D_1 H D_2 H D_3 with H a Hadamard matrix over sqrt(P) and
    D_i diagonal matrices of random signs; P is p, filled up to a power of 2 times 1, 12 or 20.  Row
    lengths are redrawn from the law of normal rows, and stretched as the kernel asks.  It takes
    O(D log p) a row where other maps take O(D p), and memory for O(D + p) numbers.

    Directions are only nearly uniform: the bias is of order 1 / P, so P is at least 64.

    Parameters
    ----------
    kernel : RadialKernel
        A kernel of the Euclidean distance.
    n_components : int
        D; of an odd D the last frequency has a cosine alone, at a random phase.
    paired : bool
        As in `RandomFourierFeatures`.
    random_state : int
        Seed.  Nested, as in `RandomFourierFeatures`.

    Raises
    ------
    ParameterError
        If the kernel is not one of the Euclidean distance, or D is not positive.

    References
    ----------
    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar (2016), "Orthogonal random features".
    """

    name = "sorf"
    families: ClassVar = {
        "sorf": ("orthogonal frequencies by fast transforms, for hundreds of inputs", {})
    }
    kernels = RadialKernel
    projected_by = HadamardProjection

    def __init__(
        self,
        kernel: ShiftInvariantKernel,
        n_components: int = 2048,
        *,
        paired: bool = True,
        random_state: int = 0,
    ) -> None:
        super().__init__(kernel, n_components, random_state, paired=paired)

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  rows do not matter
        """Draw signs, lengths and phases for rows of `n_features` inputs."""
        self.check_some_inputs(n_features)
        assert isinstance(self.kernel, RadialKernel)  # noqa: S101  for the type checker
        L, P, seed = self.n_draws, block_size(n_features), self.random_state
        n_blocks = -(-L // P)
        signs = np.stack([_signs(seed, block, P) for block in range(n_blocks)])
        inputs = signs[:, 2, :n_features] / self.kernel.scales(n_features)
        lengths = np.concatenate([_lengths(seed, block, P) for block in range(n_blocks)])[:L]
        lengths = lengths * self.kernel.stretch(drawn_uniforms(seed, L, 1)[:, 0])
        projection = HadamardProjection(inputs, np.ascontiguousarray(signs[:, :2]), lengths)
        return self._drawn(projection, drawn_phases(seed, L))


def _signs(seed: int, block: int, size: int) -> Array:
    """Return three rows of random signs, int8 (3, P)."""
    return 2 * stream(seed, DIRECTIONS, block).integers(0, 2, (3, size), dtype=np.int8) - 1


def _lengths(seed: int, block: int, size: int) -> Floats:
    """Return the lengths (P,) of independent normal rows of P numbers."""
    return np.sqrt(stream(seed, LENGTHS, block).chisquare(size, size))
