"""Numbers as people write them."""

import math
from typing import Any

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SMALL, _LARGE = 1e-3, 1e6
# Up to so many seconds, seconds are said, and then minutes with seconds.
_IN_SECONDS, _IN_MINUTES = 120.0, 3600.0


def number(value: Any, digits: int = 4) -> str:
    """Return a number with so many significant digits, or several with commas between."""
    if value is None:
        return "not known"
    if isinstance(value, (list, tuple)):
        shown = ", ".join(number(each, digits) for each in value[:4])
        return shown + (f", … ({len(value):,})" if len(value) > 4 else "")
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    rounded = float(f"{value:.{digits}g}")
    size = abs(rounded)
    if size and not _SMALL <= size < _LARGE:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        exponent_text = str(int(exponent)).translate(_SUPERSCRIPTS)
        return f"{mantissa} × 10{exponent_text}".replace("-", "−")
    return f"{rounded:,}".removesuffix(".0").replace("-", "−")


def percent(share: float, digits: int = 1) -> str:
    return f"{100.0 * share:.{digits}f}%".replace("-", "−")


def seconds(value: float) -> str:
    if value < _IN_SECONDS:
        return f"{value:.3g} s" if value < 99.95 else f"{value:.0f} s"
    if value < _IN_MINUTES:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest} s"
    hours, rest = divmod(round(value / 60.0), 60)
    return f"{hours} h {rest} min"


def shortened(name: str, longest: int = 24) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def counted(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")
