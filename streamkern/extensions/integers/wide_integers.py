"""Integers of 175 bits in arrays: three words each, int64, the lowest first, to base 2^56.

All but the last word are from 0 to 2^56 - 1, so that equal numbers have equal words.
"""

from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.statistics.declared_sums import Sum, declared

N_WORDS, _BITS = 3, 56
_MASK = (1 << _BITS) - 1


def wide_total(*shape: int | str) -> Any:
    """Declare an attribute that is added, and starts at 0: an array of wide integers."""
    return declared(
        Sum(
            0,
            (*shape, N_WORDS),
            np.int64,
            merge=lambda mine, theirs: _carried(mine + theirs),
            subtract=lambda mine, theirs: _carried(mine - theirs),
        )
    )


def add_shifted(words: Array, values: Array, shift: int) -> None:
    """Add values (...) of int64 times 2^shift to wide integers (..., 3), in place."""
    first, shift = divmod(shift, _BITS)
    if first == N_WORDS - 1:
        words[..., first] += values << shift
        return
    rest = _BITS - shift
    words[..., first] += (values & ((1 << rest) - 1)) << shift
    words[..., first + 1] += values >> rest
    _carried(words)


def as_floats(words: Array) -> Floats:
    """Return wide integers (..., 3) in double."""
    negative = words[..., -1] < 0
    sizes = np.where(negative[..., None], _carried(-words), words)  # of words with one sign
    total = sizes[..., -1].astype(float)
    for word in range(N_WORDS - 2, -1, -1):
        total = total * 2.0**_BITS + sizes[..., word]
    return np.where(negative, -total, total)


def _carried(words: Array) -> Array:
    for word in range(N_WORDS - 1):
        words[..., word + 1] += words[..., word] >> _BITS
        words[..., word] &= _MASK
    return words
