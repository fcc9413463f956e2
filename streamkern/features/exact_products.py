"""Products of matrices that no order of summation and no library rounds."""

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import OverflowedError

_MANTISSA = np.finfo(float).nmant + 1
# Of means and deviations on which integers and scales by ranks depend, whoever computes them.
SURE_BITS = 20


def sure(values: Floats) -> Floats:
    """Return values rounded to 20 bits: those of sums in any order, but for a rare few."""
    mantissas, exponents = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(mantissas, SURE_BITS)), exponents - SURE_BITS)


def coarse(values: Floats, bits: int) -> Floats:
    """Return values rounded to so many bits of the largest power of two in their row (last axis).

    Sums of products of such rows are multiples of one number: exact where they are less than 2^53
    times as large.
    """
    largest = np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    if not np.isfinite(largest).all():
        raise OverflowedError("inputs are not finite numbers; standardise or rescale them.")
    _, exponents = np.frexp(largest)
    # Beside so large a number the lower bits have no place.
    large = np.ldexp(1.5, exponents - bits + _MANTISSA - 1)
    return (values + large) - large


def coarse_bits(growth: int) -> int:
    """Return the bits of numbers whose sums, up to so many times the largest, are exact."""
    return _MANTISSA - (growth - 1).bit_length()


def factor_bits(n_terms: int) -> int:
    """Return the bits of rows of which products of so many terms are exact."""
    return coarse_bits(n_terms) // 2
