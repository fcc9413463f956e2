"""The check of an integer: a bool is none, and those of NumPy are."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeGuard

from streamkern.errors import ParameterError


def is_integer(value: Any, least: int | None = None) -> TypeGuard[int]:
    """Say whether a value is an integer, and at least as large as given."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and (least is None or int(value) >= least)


def checked_integer(value: Any, sentence: str, least: int | None = None) -> int:
    """Return a value as an int, or raise ParameterError with a sentence that shows it as {!r}."""
    if not is_integer(value, least):
        raise ParameterError(sentence.format(value))
    return int(value)
