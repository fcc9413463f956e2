"""Projections of rows on frequencies: held one by one, or made by fast Hadamard transforms.

A projection makes the angles w_k^T x of rows x, for L frequencies w_k of p numbers each.

A Hadamard matrix has entries 1 and -1 and orthogonal rows.  That of a product of orders is the
Kronecker product of theirs, so a row of P numbers is transformed by small matrices along the axes
of an array: P times the sum of the orders, and not P^2, multiply-adds.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Self, TypeAlias

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.exact_products import coarse, coarse_bits, factor_bits
from streamkern.features.standardizer import Standardizer
from streamkern.runtime.scratch import Scratch
from streamkern.runtime.sparse_rows import SparseRows

# Orders of matrices that are no products of smaller ones, by which sizes can be near any number.
_OTHER_ORDERS = (1, 12, 20)
# Blocks are no smaller: with fewer dimensions random signs are too far from a random rotation.
_FEWEST = 64
# Bits of the order of a small matrix, or one more: larger ones take longer in all.
_BITS = 4


def block_size(n_features: int) -> int:
    """Return the order P of the smallest Hadamard matrix here that is at least p, and 64."""
    least = max(n_features, _FEWEST)
    return min(order << (-(-least // order) - 1).bit_length() for order in _OTHER_ORDERS)


@cache
def small_matrices(order: int) -> tuple[Array, ...]:
    """Return Hadamard matrices, float32, whose Kronecker product has this order.

    Orders are a power of 2 times 1, 12 or 20: Paley (1933), "On orthogonal matrices".
    """
    from scipy.linalg import hadamard  # noqa: PLC0415  where it is needed

    for other in _OTHER_ORDERS:
        power = order // other
        if other * power == order and power & (power - 1) == 0:
            break
    else:
        raise ParameterError(f"{order} is no order of a Hadamard matrix; the file is damaged.")
    matrices = [] if other == 1 else [_paley(other - 1)]
    bits = power.bit_length() - 1
    n_factors = max(-(-(bits - 1) // _BITS), min(bits, 1))
    matrices += [hadamard(1 << (bits + factor) // n_factors) for factor in range(n_factors)]
    return tuple(matrix.astype(np.float32) for matrix in matrices)


def _paley(prime: int) -> Floats:
    """Return the Hadamard matrix of order q + 1, q a prime that leaves 3 when divided by 4."""
    squares = np.zeros(prime, dtype=bool)
    squares[np.arange(1, prime) ** 2 % prime] = True
    difference = (np.arange(prime)[None, :] - np.arange(prime)[:, None]) % prime
    matrix = np.ones((prime + 1, prime + 1))
    matrix[1:, 1:] = np.where(squares[difference], 1.0, -1.0)
    return matrix


def transform(
    values: Array, other: Array, matrices: Sequence[Array], *, transposed: bool = False
) -> tuple[Array, Array]:
    """Multiply vectors (..., P) by the Kronecker product of some matrices, or its transpose.

    Values, which are contiguous, are overwritten, and so is the memory to work in beside them; of
    these two the products are returned first, and then the one that is free.
    """
    before, after = math.prod(values.shape[:-1]), values.shape[-1]
    for matrix in matrices:
        order = len(matrix)
        after //= order
        of_axis = matrix.T if transposed else matrix
        if after == 1:
            shape: tuple[int, ...] = (before, order)
            np.matmul(values.reshape(shape), of_axis.T, out=other.reshape(shape))
        else:
            shape = (before, order, after)
            np.matmul(of_axis, values.reshape(shape), out=other.reshape(shape))
        values, other = other, values
        before *= order
    return values, other


# Deviations from zero of a mean whose products, in single precision, would lose digits.
_FAR = 64.0
_TURN = 2.0 * math.pi
# Inputs of frequencies that are written out at a time, and rows that are few beside these.
_ROWS, _FEW = 64, 32


class Frequencies:
    """A projection on frequencies (L, p) that are held one by one, O(p L) a row."""

    def __init__(self, frequencies: Floats) -> None:
        if frequencies.ndim != 2:
            raise ParameterError(
                f"expected frequencies (L, p), found shape {frequencies.shape}; the file is "
                f"damaged."
            )
        # In the order that a file gives them back in, or products would differ in their last bits.
        self.frequencies = np.ascontiguousarray(frequencies)
        self.n_draws, self.n_features = frequencies.shape
        self.n_factors = self.n_features  # that are read for an angle

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:
        """Return a function that writes the angles (n, L) of rows (n, p) to its second argument."""
        frequencies = scratch.copied("frequencies", self.frequencies, dtype)

        @cache
        def by_inputs() -> Array:
            turned = scratch.array("frequencies by inputs", frequencies.shape[::-1], dtype)
            turned[...] = frequencies.T
            return turned

        def project(X: Array | SparseRows, angles: Array) -> None:
            if isinstance(X, SparseRows):
                np.copyto(angles, X.times(by_inputs()))
                return
            # BLAS takes a sixth more time where frequencies lie one by one; turning them, too.
            turned = frequencies.T if len(X) < _FEW else by_inputs()
            np.matmul(X.astype(dtype, copy=False), turned, out=angles)

        return project

    def in_turns(self, scratch: Scratch) -> Callable[[Array, Array], Any]:  # noqa: ARG002
        """Return a function that writes angles over 2 pi (L, n) of rows (n, p), the same anywhere.

        Rows and frequencies are rounded so that nothing else is.
        """
        bits = factor_bits(self.n_features)
        frequencies = coarse(self.frequencies / _TURN, bits)
        return lambda X, turns: np.matmul(frequencies, coarse(X.astype(float), bits).T, out=turns)

    def pulled_back(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], Any]:
        """Return a function that writes sum_k s_k w_k (n, p) of slopes (n, L), maybe lost."""
        frequencies = scratch.copied("frequencies", self.frequencies, dtype)
        return lambda slopes, out: np.matmul(slopes, frequencies, out=out)

    def folded(self, standardizer: Standardizer, dtype: Any) -> "FoldedFrequencies":
        """Return the projection of sparse rows that this one is of standardised rows."""
        by_inputs, offsets = standardizer.folded(self.frequencies)
        far = np.abs(standardizer.mean / standardizer.deviation).max() > _FAR
        product = np.dtype(np.float64) if far else dtype
        return FoldedFrequencies(by_inputs.astype(product), offsets.astype(product))

    def rows(self, indices: Array) -> Floats:
        return self.frequencies[indices]

    def first(self, n_draws: int) -> "Frequencies":
        return Frequencies(self.frequencies[:n_draws])

    def arrays(self) -> dict[str, Array]:
        return {"frequencies": self.frequencies}

    @classmethod
    def restore(cls, arrays: Mapping[str, Array]) -> Self:
        return cls(arrays["frequencies"])


class FoldedFrequencies:
    """Frequencies of sparse rows that a standardizer is part of: (x - m) / s W = x (W / s) - c.

    Products are of what is stored: `by_inputs` (p, L) is W / s, and `offsets` (L,) are c = m / s W.
    """

    def __init__(self, by_inputs: Array, offsets: Array) -> None:
        self.by_inputs, self.offsets = by_inputs, offsets
        self.n_features, self.n_draws = by_inputs.shape
        self.n_factors = self.n_features

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Any, Array], None]:  # noqa: ARG002
        def project(X: SparseRows, angles: Array) -> None:
            np.subtract(X.times(self.by_inputs), self.offsets, out=angles, casting="same_kind")

        return project


class HadamardProjection:
    """Angles by blocks of frequencies l_k (H D_1 H D_2 H D_3)_k, O(L log p) a row.

    H is a Hadamard matrix of order P over sqrt(P), D_1 to D_3 are diagonal: `inputs` (B, p) are the
    diagonals of D_3, `signs` (B, 2, P) those of D_2 and D_1.  Inputs are filled up with zeros to P
    numbers.  `lengths` (L,) are those of the first L frequencies of all blocks.

    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar (2016), "Orthogonal random features".
    """

    def __init__(self, inputs: Floats, signs: Array, lengths: Floats) -> None:
        L = lengths.size
        P = signs.shape[-1] if signs.ndim == 3 else 1
        if (
            inputs.ndim != 2
            or not 1 <= inputs.shape[1] <= P
            or lengths.ndim != 1
            or not (len(inputs) - 1) * P < L <= len(inputs) * P
            or signs.shape != (len(inputs), 2, P)
            or not (np.abs(signs) == 1).all()
        ):
            raise ParameterError(
                f"expected inputs (B, p), signs (B, 2, P) and lengths (L,) of B blocks, found "
                f"shapes {inputs.shape}, {signs.shape} and {lengths.shape}; the file is damaged."
            )
        small_matrices(P)
        self.inputs, self.signs, self.lengths = inputs, signs, lengths
        self.n_draws, self.n_features, self.n_factors = L, inputs.shape[1], 3

    @property
    def frequencies(self) -> Floats:
        return self.rows(np.arange(self.n_draws))

    def prepared(
        self, dtype: Any, scratch: Scratch, bits: int | None = None
    ) -> Callable[[Array, Array], None]:
        B, _, P = self.signs.shape
        p, L = self.n_features, self.n_draws
        inputs, signs, lengths, matrices = self._as(dtype)

        def project(X: Array, angles: Array) -> None:
            values, other = (scratch.array(f"blocks {i}", (len(X), B, P), dtype) for i in range(2))
            np.multiply(X[:, None, :], inputs, out=values[:, :, :p], casting="same_kind")
            values[:, :, p:] = 0.0
            if bits is not None:
                values[...] = coarse(values, bits)
            values, other = transform(values, other, matrices)
            for diagonal in (0, 1):
                values *= signs[:, diagonal]
                values, other = transform(values, other, matrices)
            np.multiply(values.reshape(len(X), B * P)[:, :L], lengths, out=angles)

        return project

    def in_turns(self, scratch: Scratch) -> Callable[[Array, Array], None]:
        """Return what `Frequencies.in_turns` does."""
        # Three transforms make P^2 times the largest number at most, of P terms each.
        bits = coarse_bits(self.signs.shape[2] ** 2)
        write = self.prepared(np.dtype(np.float64), scratch, bits)

        def project(X: Array, turns: Array) -> None:
            angles = scratch.array("angles", (len(X), self.n_draws), np.float64)
            write(X.astype(np.float64), angles)
            np.divide(angles.T, _TURN, out=turns)

        return project

    def pulled_back(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:
        B, _, P = self.signs.shape
        p, L = self.n_features, self.n_draws
        inputs, signs, lengths, matrices = self._as(dtype)

        def pull_back(slopes: Array, out: Array) -> None:
            n = len(slopes)
            values, other = (scratch.array(f"blocks {i}", (n, B, P), dtype) for i in range(2))
            flat = values.reshape(n, B * P)
            np.multiply(slopes, lengths, out=flat[:, :L])
            flat[:, L:] = 0.0
            values, other = transform(values, other, matrices, transposed=True)
            for diagonal in (1, 0):
                values *= signs[:, diagonal]
                values, other = transform(values, other, matrices, transposed=True)
            np.einsum("nbp,bp->np", values[:, :, :p], inputs, out=out)

        return pull_back

    def _as(self, dtype: Any) -> tuple[Array, Array, Array, list[Array]]:
        P = self.signs.shape[2]
        # Over P^(3/2), since the matrices here are not divided by sqrt(P).
        lengths = self.lengths * float(P) ** -1.5
        matrices = [matrix.astype(dtype) for matrix in small_matrices(P)]
        return self.inputs.astype(dtype), self.signs.astype(dtype), lengths.astype(dtype), matrices

    def rows(self, indices: Array) -> Floats:
        """Return some frequencies (K, p): the angles of rows that are 1 in one input."""
        found, p = np.empty((len(indices), self.n_features)), self.n_features
        project = self.prepared(np.dtype(np.float64), Scratch())
        for start in range(0, p, _ROWS):
            inputs = np.eye(min(_ROWS, p - start), p, start)
            angles = np.empty((len(inputs), self.n_draws))
            project(inputs, angles)
            found[:, start : start + _ROWS] = angles[:, indices].T
        return found

    def first(self, n_draws: int) -> "HadamardProjection":
        """Return the projection on the first frequencies, with no more blocks than they need."""
        n_blocks = -(-n_draws // self.signs.shape[2])
        return HadamardProjection(
            self.inputs[:n_blocks], self.signs[:n_blocks], self.lengths[:n_draws]
        )

    def arrays(self) -> dict[str, Array]:
        return {"inputs": self.inputs, "signs": self.signs, "lengths": self.lengths}

    @classmethod
    def restore(cls, arrays: Mapping[str, Array]) -> Self:
        return cls(arrays["inputs"], arrays["signs"], arrays["lengths"])


Projection: TypeAlias = Frequencies | HadamardProjection
