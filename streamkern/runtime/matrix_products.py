"""Products of large matrices on all cores, with one BLAS thread each."""

import numpy as np

from streamkern._typing import Array
from streamkern.runtime.memory import usable_cores
from streamkern.runtime.threads import in_pieces

# Multiply-adds that are one piece of work, and rows of a product that are one at the least.
_PIECE, _FEWEST_ROWS = 1 << 24, 64


def product(left: Array, right: Array) -> Array:
    """Return the product (m, k) of two matrices (m, n) and (n, k).

    Its rows are cut into the same strips whatever the number of cores, which changes no bit.
    """
    made = np.empty((len(left), right.shape[1]), np.result_type(left, right))
    step = max(_PIECE // max(right.size, 1), _FEWEST_ROWS)

    @np.errstate(all="ignore")  # threads of a pool do not know what is ignored outside
    def strip(start: int) -> None:
        np.matmul(left[start : start + step], right, out=made[start : start + step])

    in_pieces(strip, range(0, len(left), step), usable_cores())
    return made
