"""Moments of waves on a lattice of frequencies, without products of features.

Products of two waves are waves of the sums and of the differences of their frequencies, which are
on a lattice twice as wide.  So the Gram matrix follows from as many sums over rows as that has
points, and a non-uniform fast Fourier transform makes these for far less than D^2 operations a row.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.fft import fftn, ifftn, next_fast_len

from streamkern._typing import Array, Block, Floats
from streamkern.errors import ParameterError
from streamkern.extensions.fields.lattice import Lattice, places, sums_of_pairs, sums_of_rows
from streamkern.extensions.fields.waves import lattice_of, trend_and_angles
from streamkern.features import FeatureMap
from streamkern.runtime.timing import timed
from streamkern.statistics.centred_moments import CentredMoments
from streamkern.statistics.declared_sums import total
from streamkern.statistics.feature_moments import Moments
from streamkern.statistics.feature_sums import overflowed
from streamkern.statistics.triangle import Triangle, rows_of

# Rows that are transformed at a time, at the least and at the most, of two factors: eight for every
# point of the lattice, whose transform hardly counts then. For more targets products of features
# are faster, as where a row has fewer of them than a row takes for every sum.
_FEWEST_ROWS, MOST_ROWS, MOST_TARGETS, _OPERATIONS = 1 << 16, 5 << 19, 32, 6000
# Points of the wider lattice up to which it is small in memory, if also beside a Gram matrix.
_MOST_WAVES = 1 << 20


class ToeplitzGram:
    """G v of vectors v, of the sums of all products of two waves.

    A function with the coefficients v is a sum over frequencies on both sides of zero.  Its
    products with waves are a convolution of its coefficients with the sums, on twice the lattice.

    Chan and Ng (1996), "Conjugate gradient methods for Toeplitz systems".
    """

    def __init__(self, lattice: Lattice, waves: Array, beside: Floats, n_threads: int = 1) -> None:
        """Take the sums (2 n_1, ...) of waves of the frequencies -n to n - 1 along every input.

        The first rows (k, D) of G are `beside`, where a trend comes before the waves.
        """
        self.lattice, self.beside, self.n_threads = lattice, beside, n_threads
        self.shape = tuple(next_fast_len(length - 1) for length in waves.shape)
        sums = np.zeros(self.shape, complex)
        within = tuple(slice(length - 1) for length in waves.shape)
        sums[within] = waves[(slice(1, None),) * waves.ndim]  # each with its opposite
        sums = np.roll(sums, [1 - length // 2 for length in waves.shape], range(waves.ndim))
        self.spectrum: Floats = fftn(sums, workers=n_threads).real.copy()
        self.places, self.opposite = (
            np.ravel_multi_index(tuple(each.T), self.shape, mode="wrap")
            for each in (lattice.indices, -lattice.indices - 1)
        )

    def times(self, vectors: Array) -> Floats:
        """Return products (D, k) of vectors (D, k), two in a complex transform."""
        D, k = vectors.shape
        coefs = np.zeros((len(self.places), k + k % 2), complex)
        coefs[:, :k] = self.lattice.coefficients(vectors)
        for j in range(0, k, 2):
            both = np.zeros(self.spectrum.size, complex)
            both[self.opposite] = coefs[:, j] + 1j * coefs[:, j + 1]
            both[self.places] = coefs[:, j].conj() + 1j * coefs[:, j + 1].conj()
            transformed = fftn(both.reshape(self.shape), workers=self.n_threads)
            transformed *= self.spectrum
            found = ifftn(transformed, workers=self.n_threads, overwrite_x=True).ravel()
            here, there = found[self.places], found[self.opposite].conj()
            coefs[:, j], coefs[:, j + 1] = (here + there) / 4.0, (here - there) / 4.0j
        coefs *= self.lattice.amplitudes[:, None]
        pairs = np.stack([coefs.real, coefs.imag], axis=1).reshape(-1, coefs.shape[1])
        n = len(self.beside)
        waves = pairs[: D - n, :k] + self.beside[:, n:].T @ vectors[:n]
        return np.concatenate([self.beside @ vectors, waves]) if n else pairs[:D, :k]


class ToeplitzMoments(Moments):
    """Moments of a map on a lattice of frequencies, whose Gram matrix is made when it is needed.

    Sums are in double; the precision is what transforms may be off by.  `gram` is None, and
    `with_gram` returns moments that have it.

    Greengard, Rachh and Barnett (2022), "Equispaced Fourier representations for efficient Gaussian
    process regression from a billion data points".
    """

    merges_plainly = True

    waves: Floats = total("n_reals")  # sum s exp(i h m . x), row by row of m, as pairs of reals
    # The products of a trend, which comes before the waves, with all features.
    beside: Floats = total("_lattice.n_before", "feature_map.n_components")

    def __post_init__(self) -> None:
        if lattice_of(self.feature_map) is None or np.any(self.feature_shift) or self.first_row:
            raise ParameterError(
                "waves are summed of maps on a lattice, about zero and for the whole Gram matrix; "
                "take Moments for others."
            )
        super().__post_init__()

    @property
    def n_reals(self) -> int:
        return 2 * int(np.prod(2 * self._lattice.modes))

    @cached_property
    def _lattice(self) -> Any:
        return lattice_of(self.feature_map)

    @property
    def work(self) -> Any:
        """None: hardly any of it is products."""
        return None

    @np.errstate(over="ignore", invalid="ignore")  # looked for
    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows: sums of waves, and of waves times targets, by transforms of many rows.

        Raises OverflowedError if angles or sums are not finite.
        """
        angles, strengths = list[Floats](), list[Floats]()
        q, k = self.n_targets, self._lattice.n_before
        most = rows_at_once(self.n_reals, self.n_factors + k)
        for block in blocks:
            self._check(block)
            weights = block.each_weight()
            with timed("features"):
                trend, along = trend_and_angles(self.feature_map, self._lattice.cell, block.X)
            angles.append(along)
            factors = np.ones((len(block), self.n_factors + k))
            factors[:, :q] = (block.y - self.target_shift) / self.target_unit
            factors[:, q + 1 :] = trend
            weighted = factors * weights[:, None]
            self.target += np.einsum("nq,nq->q", weighted, factors)[:q]
            self.target_sum += weighted[:, :q].sum(axis=0)
            self.cross[:k] += trend.T @ weighted[:, : q + 1]
            self.beside[:, :k] += trend.T @ weighted[:, q + 1 :]
            self.weight += float(weights.sum())
            self.n_rows += len(block)
            if not np.isfinite(angles[-1]).all():  # which transforms do not survive
                raise overflowed(block, "inputs of {rows} overflow; leave such rows out.")
            strengths.append(weighted)
            if sum(map(len, angles)) >= most:
                self._add(angles, strengths)
            self._check_sums(block)
        if angles:
            self._add(angles, strengths)

    def _add(self, angles: list[Floats], strengths: list[Floats]) -> None:
        (indices, _, amplitudes, k), modes = self._lattice, self._lattice.modes
        rows = [np.ascontiguousarray(each) for each in np.concatenate(angles).T]
        factors, q = np.concatenate(strengths).T, self.n_targets
        angles.clear()  # of many rows they are large beside what transforms take
        strengths.clear()
        with timed("products"):
            ones = factors[q : q + 1].astype(complex, order="C")
            self.waves += sums_of_rows(rows, ones, 2 * modes, self.precision)[0].view(float)
            made = sums_of_pairs(rows, factors, modes, self.precision)
        sums = made[:, places(indices, modes)].T * amplitudes[:, None]
        of_factors, of_trend = sums[:, : q + 1], sums[:, q + 1 :]
        for held, added in ((self.cross[k:], of_factors), (self.beside[:, k:].T, of_trend)):
            held[0::2] += added.real
            held[1::2] += added.imag[: len(held) // 2]

    def with_gram(self, n_components: int | None = None) -> Moments:
        """Return the moments with the Gram matrix of the features, or of the first D' of them."""
        feature_map = self.feature_map
        if n_components is not None:
            feature_map = feature_map.first(n_components)
        D = feature_map.n_components
        found: Moments = self.without_gram(feature_map, np.zeros(D), self.cross[:D].copy())
        if self.n_rows:
            found.gram = Triangle(D)
            for panel in found.gram.panels:
                self._write(panel)
        return found

    def without_gram(self, feature_map: FeatureMap, shift: Floats, cross: Array) -> Any:
        target: Any = {"target_shift": self.target_shift, "target_unit": self.target_unit}
        target |= {"feature_shift": shift, "precision": self.precision}
        found = Moments(feature_map, self.n_targets, **target)
        found.n_rows, found.weight, found.cross = self.n_rows, self.weight, cross
        found.target, found.target_sum = self.target.copy(), self.target_sum.copy()
        return found

    def gram_operator(self, n_threads: int = 1) -> ToeplitzGram:
        """Return what multiplies vectors by the Gram matrix, which is not made."""
        waves = self.waves.view(complex).reshape(2 * self._lattice.modes)
        return ToeplitzGram(self._lattice, waves, self.beside, n_threads)

    def leading_part(self, n_waves: int) -> tuple[Moments, Floats]:
        """Return moments of the trend and of so many features, and |phi|^2 / N of the others."""
        D, k = self.feature_map.n_components, self._lattice.n_before
        m = min(D, k + n_waves)
        others = 0.5 * np.repeat(self._lattice.amplitudes**2, 2)[m - k : D - k]
        return self.with_gram(m), others

    def _write(self, panel: Array) -> None:
        """Write rows of the Gram matrix: 2 cos a cos b = cos (a + b) + cos (a - b), and so on."""
        indices, _, amplitudes, k = self._lattice
        start, stop = rows_of(panel)
        panel[:, :k] = self.beside[:stop, start:stop].T
        panel[: max(k - start, 0)] = self.beside[start:stop, :stop]
        panel, start, stop = panel[max(k - start, 0) :, k:], max(start - k, 0), stop - k
        if stop <= start:
            return
        mine, every = slice(start // 2, -(-stop // 2)), slice(-(-stop // 2))
        waves, wider = self.waves.view(complex), 2 * self._lattice.modes
        # Places are linear in the frequencies, whose halves add up to one cell.
        zero, one = (places(np.full_like(wider, index), wider) for index in (0, 1))
        steps = places(indices, wider) - zero
        plus = waves[steps[mine, None] + steps[every] + one]
        minus = waves[steps[mine, None] - steps[every] + zero]
        pairs = np.empty((len(plus), 2, plus.shape[1], 2))
        pairs[:, 0, :, 0] = plus.real + minus.real
        pairs[:, 1, :, 1] = minus.real - plus.real
        pairs[:, 1, :, 0] = plus.imag + minus.imag
        pairs[:, 0, :, 1] = plus.imag - minus.imag
        pairs *= 0.5 * amplitudes[mine, None, None, None] * amplitudes[every, None]
        rows = pairs.reshape(2 * len(plus), -1)
        panel[...] = rows[start - 2 * mine.start :][: stop - start, :stop]
        diagonal = panel[:, start:]  # whose halves differ by what transforms are off by
        diagonal[...] = np.tril(diagonal) + np.tril(diagonal, -1).T

    def compatible(self, other: Any) -> Any:
        if isinstance(other, ToeplitzMoments):
            return super().compatible(other)
        raise ParameterError(
            "moments of waves and of features do not go together; take the first `with_gram`."
        )

    def merge(self, other: Any) -> Any:
        """Return the sums over both sets of rows, of features where one of the two is of these."""
        is_alike = isinstance(other, ToeplitzMoments)
        return super().merge(other) if is_alike else self.with_gram().merge(other)

    def of_map(self, feature_map: FeatureMap, turns: Floats) -> Moments:
        return self.with_gram().of_map(feature_map, turns)

    def leading(self, n_components: int) -> Any:
        D = self.feature_map.n_components
        return self if n_components == D else self.with_gram(n_components)

    def solvable(self, n_components: int | None = None) -> Any:
        return self if n_components is None else self.leading(n_components)

    def is_finite(self) -> bool:
        own = self.waves, self.beside
        return all(np.isfinite(each).all() for each in own) and super().is_finite()

    def centred(self, *, intercept: bool = True) -> CentredMoments:
        return self.with_gram().centred(intercept=intercept)


def rows_at_once(n_reals: int, n_factors: int) -> int:
    """Return how many rows go into one transform, given the numbers of a lattice and of a row."""
    return min(max(_FEWEST_ROWS, 4 * n_reals), MOST_ROWS, 2 * MOST_ROWS // n_factors)


def is_summed_by_waves(feature_map: FeatureMap, n_targets: int) -> bool:
    """Say whether `ToeplitzMoments` are for a map, and take less than products of its features."""
    lattice, squares = lattice_of(feature_map), feature_map.n_components**2
    if lattice is None:
        return False
    n_right_sides = n_targets + lattice.n_before
    if n_right_sides > MOST_TARGETS or squares < _OPERATIONS * (n_right_sides + 2):
        return False
    return bool(np.prod(2.0 * lattice.modes) <= min(_MOST_WAVES, squares / 4))
