"""How far two results may lie apart: a number of rounding steps of the dtype they were made in."""

import numpy as np


def assert_close(actual, expected, *, dtype=np.float64, steps=100.0, size=None):
    """Assert |actual - expected| <= steps eps size, in every element.

    `eps` is that of `dtype`, `size` the largest expected magnitude unless told.
    """
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    if size is None:
        size = float(np.abs(expected).max(initial=0.0))
    allowed = steps * float(np.finfo(dtype).eps) * size
    # The maximum is NaN where a NaN is, and the comparison then fails.
    apart = float(np.abs(actual - expected).max(initial=0.0))
    assert apart <= allowed, f"apart by {apart:.3g}, allowed {allowed:.3g}"
