"""The range that targets lie in: predictions and intervals are clipped to it."""

from typing import Any

import numpy as np

from streamkern.errors import ParameterError

Range = tuple[float | None, float | None]


def checked_range(given: Any) -> Range | None:
    """Return the ends of a range, None for one that is open, or raise ParameterError."""
    if given is None:
        return None
    try:
        low, high = (None if end is None else float(end) for end in given)
        known = [end for end in (low, high) if end is not None]
        if known and np.isfinite(known).all() and (np.diff(known) > 0).all():
            return low, high
    except (TypeError, ValueError):
        pass
    raise ParameterError(
        f"target_range must be two numbers, the lower first, or one and None, not {given!r}; give "
        f"(0, 1), or (0, None) for no upper end (--range 0,)."
    )


def limits_of(target_range: Range | None) -> tuple[float, float] | None:
    """Return the least and the largest prediction that there may be, infinite where open."""
    if target_range is None:
        return None
    low, high = target_range
    return (-np.inf if low is None else low), (np.inf if high is None else high)
