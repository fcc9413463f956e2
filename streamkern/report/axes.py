"""Axes of charts: their range, scale and round tick labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamkern.report.numbers import number, power

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """What an axis spans, and where it is labelled."""

    low: float
    high: float
    is_log: bool = False
    ticks: Sequence[tuple[float, str]] | None = None

    @classmethod
    def over(cls, values: Iterable[float], *, room: float = 0.05, **options: Any) -> Axis:
        """Return an axis that holds values, with a little room at both ends."""
        finite = [float(value) for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(finite), max(finite)
        if options.get("is_log"):
            low, high = math.log(low), math.log(high)
        wide = (high - low) or abs(high) or 1.0
        low, high = low - room * wide, high + room * wide
        if options.get("is_log"):
            low, high = math.exp(low), math.exp(high)
        return cls(low, high, **options)

    def share(self, value: float) -> float:
        """Return where a value is, from 0 at the low end to 1."""
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = math.log(max(value, 1e-300)), math.log(low), math.log(high)
        return (value - low) / (high - low)

    def labels(self) -> list[tuple[float, str]]:
        """Return places and labels of ticks, inside the axis."""
        ticks = self.ticks
        if ticks is None:
            ticks = _decades(self.low, self.high) if self.is_log else _round(self.low, self.high)
        return [(value, label) for value, label in ticks if -1e-9 <= self.share(value) <= 1 + 1e-9]


def _round(low: float, high: float, most: int = 6) -> list[tuple[float, str]]:
    """Return multiples of 1, 2, 2.5 or 5 times a power of ten, no more than so many."""
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(s * size for s in _STEPS if (high - low) / (s * size) < most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(i * step, number(float(f"{i * step:.12g}"), 6)) for i in range(first, last + 1)]


def _decades(low: float, high: float, most: int = 7) -> list[tuple[float, str]]:
    """Return powers of ten, or 1, 2 and 5 times them where that is too few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    if last - first <= 2:
        values = [m * 10.0**e for e in range(first, last + 1) for m in (1.0, 2.0, 5.0)]
        return [(value, number(value)) for value in values]
    every = -(-(last - first) // most)
    exponents = range(first - first % every, last + 1, every)
    plain = first >= -3 and last <= 4
    return [(10.0**e, number(10.0**e) if plain else f"10{power(e)}") for e in exponents]
