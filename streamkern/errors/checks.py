"""Checks of an integer (a bool is none, and those of NumPy are), of a choice and of a range."""

import math
from collections.abc import Collection
from numbers import Integral
from typing import Any, TypeGuard

from streamkern.errors import ParameterError
from streamkern.errors.formatting import unknown


def is_integer(value: Any, least: int | None = None) -> TypeGuard[int]:
    """Say whether a value is an integer, and at least as large as given."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and (least is None or int(value) >= least)


def checked_integer(value: Any, sentence: str, least: int | None = None) -> int:
    """Return a value as an int, or raise ParameterError with a sentence that shows it as {!r}."""
    if not is_integer(value, least):
        raise ParameterError(sentence.format(value))
    return int(value)


def check_choice(name: str, value: Any, choices: Collection[str], other: str = "") -> None:
    """Raise ParameterError unless a value is one of some; `other` says what else would be."""
    if not (isinstance(value, str) and value in choices):
        raise ParameterError(
            f"{name} must be one of {', '.join(choices)}{other}, not {unknown(value, choices)}; "
            f"choose one of them."
        )


def checked_range(given: Any) -> tuple[float, float] | None:
    """Return the ends of a range, infinite where there is None, or raise ParameterError."""
    try:
        ends = zip((-math.inf, math.inf), given or (None, None), strict=True)
        low, high = (end if value is None else float(value) for end, value in ends)
        if low < high:
            return None if high - low == math.inf and low == -high else (low, high)
    except (TypeError, ValueError):
        pass
    raise ParameterError(
        f"target_range must be two numbers, the lower first, or one and None, not {given!r}; give "
        f"(0, 1), or (0, None) for no upper end (--range 0,)."
    )
