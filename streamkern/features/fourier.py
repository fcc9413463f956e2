"""Random Fourier features: cosines of random projections, for shift-invariant kernels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap, checked_n_components, checked_seed
from streamkern.features.cosines import Cosines, ProjectedFeatures
from streamkern.features.trigonometry import cosines, cosines_and_sines
from streamkern.kernels import ShiftInvariantKernel, kernel_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamkern._typing import Array, Floats
    from streamkern.scratch import Scratch

# Streams of random numbers, kept apart so that more of one never changes another.
_DIRECTIONS, _UNIFORMS, _PHASES, _LENGTHS = range(4)


class RandomFourierFeatures(ProjectedFeatures):
    """Random Fourier features of a shift-invariant kernel.

    One draw of a frequency w gives either the pair (cos w^T x, sin w^T x) or, in the phase form,
    sqrt(2) cos(w^T x + u) with u uniform on [0, 2 pi].  L draws side by side, over sqrt(L), have
    phi(x)^T phi(x') = k(x, x') in expectation.

    Parameters
    ----------
    kernel : ShiftInvariantKernel
        With a numeric length scale.
    n_components : int
        D, even for pairs.
    orthogonal : bool
        Draw frequencies in blocks of p orthogonal directions, their lengths redrawn, which lowers
        the variance; otherwise independently.
    paired : bool
        Pairs (b = 2, L = D / 2) or the phase form (b = 1, L = D).
    random_state : int
        Seed.  Nested: the first features of a larger map are those of a smaller one with the same
        seed, up to scale (and the rounding of an orthogonalisation).

    Raises
    ------
    ParameterError
        If the kernel is not shift-invariant, or D is not positive, or odd for pairs.

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar (2016), "Orthogonal random features".
    Sutherland and Schneider (2015), "On the error of random Fourier features".
    """

    name: ClassVar[str] = "fourier"
    nesting = 2

    def __init__(
        self,
        kernel: ShiftInvariantKernel,
        n_components: int = 2048,
        *,
        orthogonal: bool = True,
        paired: bool = True,
        random_state: int = 0,
    ) -> None:
        if not isinstance(kernel, ShiftInvariantKernel):
            raise ParameterError(
                f"random Fourier features need a shift-invariant kernel, not {kernel!r}; take "
                f"another map, such as 'nystroem'."
            )
        self.kernel = kernel
        self.n_components = checked_n_components(n_components, outputs=2 if paired else 1)
        self.orthogonal = orthogonal
        self.paired = paired
        self.random_state = checked_seed(random_state)
        self.scale = math.sqrt(2.0 / self.n_components)  # L = D / 2 pairs, or L = D times sqrt(2)

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  rows do not matter
        """Draw frequencies and phases for rows of `n_features` inputs."""
        if n_features < 1:
            raise ParameterError(f"a map needs at least 1 input, not {n_features}; give some.")
        normals = orthogonal_rows if self.orthogonal else independent_rows
        kernel = self.kernel
        kernel.check_inputs(n_features)
        normal = normals(self.n_draws, kernel.normal_sets * n_features, self.random_state)
        # 1 - [0, 1) keeps the quantile functions away from 0.
        size = self.n_draws, kernel.n_uniforms
        uniform = 1.0 - _stream(self.random_state, _UNIFORMS).random(size)
        phases = 2.0 * math.pi * _stream(self.random_state, _PHASES).random(self.n_draws)
        return self._drawn(kernel.spectral(normal, uniform), phases)

    @property
    def n_draws(self) -> int:
        """L, the number of frequencies."""
        return self.n_components // (2 if self.paired else 1)

    def _drawn(self, frequencies: Floats, phases: Floats) -> Self:
        self.n_features = frequencies.shape[1]
        # In the order that a file gives them back in, or products would differ in their last bits.
        self.frequencies = np.ascontiguousarray(frequencies)
        self.phases = phases
        return self

    def waves(self, angles: Array, out: Array, scratch: Scratch) -> None:
        """Write the cosines (and sines, interleaved) of angles (n, L), which are lost, into `out`.

        Parameters
        ----------
        angles : ndarray of shape (n, L)
        out : ndarray of shape (n, D), of the same dtype
        scratch : Scratch
        """
        if not self.paired:
            cosines(angles, out)
            return
        # NumPy's vector code is half as fast where it writes every other number.
        cosine = scratch.array("cosines", angles.shape, angles.dtype)
        cosines_and_sines(angles, cosine, angles)
        out[:, 0::2] = cosine
        out[:, 1::2] = angles

    def first(self, n_components: int) -> RandomFourierFeatures:
        """Return the map of the first draws, which is the map with that many and the same seed."""
        self.check_drawn()
        if not 1 <= n_components <= self.n_components:
            raise ParameterError(
                f"a part of this map has between 1 and {self.n_components} features, not "
                f"{n_components}; ask for no more than there are."
            )
        smaller = RandomFourierFeatures(
            self.kernel,
            n_components,
            orthogonal=self.orthogonal,
            paired=self.paired,
            random_state=self.random_state,
        )
        return smaller._drawn(self.frequencies[: smaller.n_draws], self.phases[: smaller.n_draws])

    def subset(self, indices: Array) -> Cosines:
        """Return some of the cosines and sines, as cosines with phases."""
        chosen = self.checked_subset(indices)
        if not self.paired:
            return Cosines(self.frequencies[chosen], self.phases[chosen], self.scale)
        # sin t = cos(t - pi / 2).
        return Cosines(self.frequencies[chosen // 2], -np.pi / 2 * (chosen % 2), self.scale)

    def condensed(self, coef: Floats, *, alike: bool = False) -> tuple[FeatureMap, Floats]:
        """Return one cosine a pair, for a single function: a cos t + b sin t = r cos(t - s)."""
        if alike or not self.paired or coef.shape[1] > 1:
            return self, coef
        of_cosine, of_sine = coef[0::2], coef[1::2]
        phases = -np.arctan2(of_sine, of_cosine)[:, 0]
        return Cosines(self.frequencies, phases, self.scale), np.hypot(of_cosine, of_sine)

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON values."""
        return {
            "kernel": self.kernel.name,
            "kernel_parameters": self.kernel.parameters(),
            "n_components": self.n_components,
            "orthogonal": self.orthogonal,
            "paired": self.paired,
            "random_state": self.random_state,
        }

    def arrays(self) -> dict[str, Array]:
        """Return the frequencies (L, p) and the phases (L,)."""
        return {"frequencies": self.frequencies, "phases": self.phases}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Rebuild the map from its file form: the frequencies that were drawn, not a new draw."""
        options = dict(parameters)
        kernel = kernel_from(options.pop("kernel"), options.pop("kernel_parameters"))
        if not isinstance(kernel, ShiftInvariantKernel):
            raise ParameterError(f"{kernel!r} has no random Fourier features.")
        restored = cls(kernel, **options)
        frequencies, phases = arrays["frequencies"], arrays["phases"]
        n_draws = restored.n_draws
        if frequencies.ndim != 2 or len(frequencies) != n_draws or phases.shape != (n_draws,):
            raise ParameterError(
                f"expected {n_draws} frequencies and phases, found shapes {frequencies.shape} and "
                f"{phases.shape}; the file is damaged."
            )
        return restored._drawn(frequencies, phases)


def _stream(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def independent_rows(n_rows: int, n_features: int, seed: int) -> Floats:
    """Return independent standard normal rows (n_rows, p); fewer rows are the first of more."""
    return _stream(seed, _DIRECTIONS).standard_normal((n_rows, n_features))


def orthogonal_rows(n_rows: int, n_features: int, seed: int) -> Floats:
    """Return standard normal rows (n_rows, p), orthogonal within blocks of p.

    Each row alone is N(0, I): a uniform direction times a chi-distributed length.

    References
    ----------
    Yu et al. (2016), "Orthogonal random features"; Mezzadri (2007), "How to generate random
    matrices from the classical compact groups", for the signs.
    """
    blocks = []
    for block, start in enumerate(range(0, n_rows, n_features)):
        # No more of the p directions than are needed; those are the first of all p.
        size = (min(n_features, n_rows - start), n_features)
        Q, R = np.linalg.qr(_stream(seed, _DIRECTIONS, block).standard_normal(size).T)
        directions = (Q * np.sign(np.diagonal(R))).T
        lengths = np.linalg.norm(_stream(seed, _LENGTHS, block).standard_normal(size), axis=1)
        blocks.append(directions * lengths[:, None])
    return np.concatenate(blocks)
