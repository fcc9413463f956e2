"""Products of the Gram matrix of waves on a lattice with vectors, by fast Fourier transforms."""

from copy import copy

import numpy as np
from scipy.fft import fftn, ifftn, next_fast_len

from streamkern._typing import Array, Floats
from streamkern.features.lattice import Lattice


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

    def __add__(self, other: "ToeplitzGram") -> "ToeplitzGram":
        """Return that of the sums over both sets of rows."""
        both = copy(self)
        both.spectrum = self.spectrum + other.spectrum
        both.beside = self.beside + other.beside
        return both

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
