"""The modified Bessel function of the second kind, for small and large arguments and orders."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamkern._typing import Floats

# Beyond this, exp(-x) is 0 and the library's function may be undefined.
_LARGE = 1e4


def log_bessel_k(order: float, x: Floats) -> Floats:
    """Return log K_v(x) for x > 0 and |v| up to about 100, beyond the range of K itself.

    NIST Digital Library of Mathematical Functions, 10.31.1 and 10.40.2.
    """
    from scipy.special import kve  # noqa: PLC0415  imported where it is needed

    v = abs(order)
    scaled = kve(v, np.minimum(x, _LARGE))
    is_known = np.isfinite(scaled) & (scaled > 0)
    values = np.log(np.where(is_known, scaled, 1.0)) - x
    if is_known.all():
        return values
    # For small x and v > 0: Gamma(v) / 2 (2 / x)^v sum_k Gamma(v - k) / Gamma(v) (-x^2 / 4)^k / k!
    small = x[~is_known]
    series, term = np.ones_like(small), np.ones_like(small)
    for k in range(1, min(math.ceil(v), 6)):
        term = term * -(small**2) / (4.0 * k * (v - k))
        series += term
    values[~is_known] = math.lgamma(v) - math.log(2.0) + v * np.log(2.0 / small) + np.log(series)
    return values
