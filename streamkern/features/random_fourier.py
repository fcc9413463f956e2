"""Random Fourier features: independent, orthogonal, by fast transforms, or at Sobol points."""

import math
from typing import ClassVar, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import stream
from streamkern.features.projection import Frequencies, HadamardProjection, block_size
from streamkern.features.spectral import SpectralFeatures
from streamkern.kernels import RadialKernel, ShiftInvariantKernel

# Streams of random numbers, kept apart so that more of one never changes another.
DIRECTIONS, UNIFORMS, PHASES, LENGTHS = range(4)


class RandomFourierFeatures(SpectralFeatures):
    """Random Fourier features of a shift-invariant kernel.

    One draw of a frequency w gives either the pair (cos w^T x, sin w^T x) or, in the phase form,
    sqrt(2) cos(w^T x + u) with u uniform on [0, 2 pi].  L draws side by side, over sqrt(L), have
    phi(x)^T phi(x') = k(x, x') in expectation.

    Parameters
    ----------
    kernel : ShiftInvariantKernel
    n_components : int
        D; of an odd D the last frequency has a cosine alone, at a random phase.
    orthogonal : bool
        Draw frequencies in blocks of p orthogonal directions, their lengths redrawn, which lowers
        the variance; otherwise independently.
    paired : bool
        Pairs (b = 2, L = D / 2) or the phase form (b = 1, L = D).
    random_state : int
        Seed.  Nested: the first features of a larger map are those of a smaller one with the same
        seed, up to scale (and the rounding of an orthogonalisation).

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar (2016), "Orthogonal random features".
    Sutherland and Schneider (2015), "On the error of random Fourier features".

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from streamkern import Matern, RandomFourierFeatures
    >>> model = make_pipeline(StandardScaler(), RandomFourierFeatures(Matern(2.0)), Ridge())
    """

    name = "fourier"
    families: ClassVar = {
        "orthogonal": ("orthogonal frequencies", {"orthogonal": True}),
        "iid": ("independent frequencies", {"orthogonal": False}),
    }

    def __init__(
        self,
        kernel: ShiftInvariantKernel,
        n_components: int = 2048,
        *,
        orthogonal: bool = True,
        paired: bool = True,
        random_state: int = 0,
    ) -> None:
        super().__init__(kernel, n_components, paired=paired, random_state=random_state)
        self.orthogonal = orthogonal

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  rows do not matter
        self.check_some_inputs(n_features)
        normals = orthogonal_rows if self.orthogonal else independent_rows
        kernel = self.kernel
        kernel.check_inputs(n_features)
        normal = normals(self.n_draws, n_features, self.random_state)
        uniform = drawn_uniforms(self.random_state, self.n_draws)
        phases = drawn_phases(self.random_state, self.n_draws)
        return self._drawn(Frequencies(kernel.spectral(normal, uniform)), phases)


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

    References
    ----------
    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar (2016), "Orthogonal random features".
    """

    name = "sorf"
    families: ClassVar = {
        "sorf": ("orthogonal frequencies by fast transforms, for hundreds of inputs", {})
    }
    kernels = RadialKernel
    takes_sparse = False
    projected_by = HadamardProjection

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  rows do not matter
        self.check_some_inputs(n_features)
        L, P, seed = self.n_draws, block_size(n_features), self.random_state
        blocks = range(-(-L // P))
        bits = [stream(seed, DIRECTIONS, i).integers(0, 2, (3, P), dtype=np.int8) for i in blocks]
        signs = 2 * np.stack(bits) - 1
        inputs = signs[:, 2, :n_features] / self.kernel.scales(n_features)
        # The lengths of independent normal rows of P numbers.
        lengths = np.concatenate([stream(seed, LENGTHS, i).chisquare(P, P) for i in blocks])[:L]
        lengths = np.sqrt(lengths) * self.kernel.stretch(drawn_uniforms(seed, L)[:, 0])
        projection = HadamardProjection(inputs, np.ascontiguousarray(signs[:, :2]), lengths)
        return self._drawn(projection, drawn_phases(seed, L))


def independent_rows(n_rows: int, n_features: int, seed: int) -> Floats:
    """Return independent standard normal rows (n_rows, p); fewer rows are the first of more."""
    return stream(seed, DIRECTIONS).standard_normal((n_rows, n_features))


def orthogonal_rows(n_rows: int, n_features: int, seed: int) -> Floats:
    """Return standard normal rows (n_rows, p), orthogonal within blocks of p.

    Each row alone is N(0, I): a uniform direction times a chi-distributed length.  Signs are those
    of Mezzadri (2007), "How to generate random matrices from the classical compact groups".
    """
    blocks = []
    for block, start in enumerate(range(0, n_rows, n_features)):
        # No more of the p directions than are needed; those are the first of all p.
        size = (min(n_features, n_rows - start), n_features)
        Q, R = np.linalg.qr(stream(seed, DIRECTIONS, block).standard_normal(size).T)
        directions = (Q * np.sign(np.diagonal(R))).T
        lengths = np.linalg.norm(stream(seed, LENGTHS, block).standard_normal(size), axis=1)
        blocks.append(directions * lengths[:, None])
    return np.concatenate(blocks)


def drawn_uniforms(seed: int, n_draws: int) -> Floats:
    """Return numbers (L, 1) in (0, 1], by which kernels mix."""
    # 1 - [0, 1) keeps the quantile functions away from 0.
    return 1.0 - stream(seed, UNIFORMS).random((n_draws, 1))


def drawn_phases(seed: int, n_draws: int) -> Floats:
    return 2.0 * math.pi * stream(seed, PHASES).random(n_draws)


# Dimensions that SciPy has direction numbers for.
_MOST_DIMENSIONS = 21201
# Points are this far from 0 and 1, where quantiles are infinite.
_MARGIN = 2.0**-32


class QuasiRandomFourierFeatures(SpectralFeatures):
    """Fourier features at the points of a scrambled Sobol sequence.

    Coordinates of the points become normal numbers by their quantile function, and those
    frequencies; numbers that a kernel mixes by, and the phase, are coordinates of their own.
    Every point alone is uniform, so there is no bias, and points together are more even than random
    ones: the error is lower in few dimensions, most at powers of 2.

    Parameters
    ----------
    kernel : ShiftInvariantKernel
    n_components : int
        D; of an odd D the last frequency has a cosine alone, at a random phase.
    paired : bool
        As in `RandomFourierFeatures`.
    random_state : int
        Seed of the scrambling.  Nested: fewer points are the first of more.

    References
    ----------
    Avron, Sindhwani, Yang and Mahoney (2016), "Quasi-Monte Carlo feature maps for shift-invariant
    kernels"; Owen (1998), "Scrambling Sobol' and Niederreiter-Xing points".
    """

    name = "qmc"
    families: ClassVar = {"qmc": ("frequencies at Sobol points, for few inputs", {})}

    def check_inputs(self, n_features: int) -> None:
        self.kernel.check_inputs(n_features)
        n_dimensions = n_features + 2
        if n_features < 1 or n_dimensions > _MOST_DIMENSIONS:
            raise ParameterError(
                f"quasi-random points of up to {_MOST_DIMENSIONS:,} numbers are known, but this "
                f"kernel of {n_features:,} inputs takes {n_dimensions:,}; take the orthogonal map."
            )

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  rows do not matter
        from scipy.special import ndtri  # noqa: PLC0415  imported where it is needed

        self.check_inputs(n_features)
        points = quasi_random_points(self.n_draws, n_features + 2, self.random_state)
        normal, uniform = ndtri(points[:, :n_features]), points[:, n_features:-1]
        frequencies = Frequencies(self.kernel.spectral(normal, uniform))
        return self._drawn(frequencies, 2.0 * math.pi * points[:, -1])


def quasi_random_points(n_points: int, n_dimensions: int, seed: int) -> Floats:
    """Return points (n, d) inside the unit cube; fewer points are the first of more."""
    from scipy.stats import qmc  # noqa: PLC0415  slow to import

    sobol = qmc.Sobol(n_dimensions, scramble=True, seed=stream(seed, 0))
    points = sobol.random_base2((n_points - 1).bit_length())[:n_points]
    return np.clip(points, _MARGIN, 1.0 - _MARGIN)
