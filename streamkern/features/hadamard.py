"""Hadamard matrices, and fast products with them.

A Hadamard matrix has entries 1 and -1 and orthogonal rows.  That of a product of orders is the
Kronecker product of theirs, so a row of P numbers is transformed by small matrices along the axes
of an array: P times the sum of the orders, and not P^2, multiply-adds.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError

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
