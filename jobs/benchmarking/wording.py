"""Cases in words: for the table, the picture and the progress of a run."""

from __future__ import annotations

import math
from statistics import mode
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

AXES = ("rows", "inputs", "components", "precision", "codec", "workers", "latency", "place")
_LETTERS = {"rows": "n", "inputs": "p", "components": "D"}
_UNSAID = {"codec": "none", "latency": 0.0, "place": "processes"}
# With more axes than this, only what is unusual about a case is said.
_FEW_AXES = 2


class Wording:
    """What cases have in common, and what sets each apart.

    Parameters
    ----------
    cases : iterable of dict

    Attributes
    ----------
    axes : list of str
        Along which the cases differ.
    """

    def __init__(self, cases: Iterable[Mapping[str, Any]]) -> None:
        together = list(cases)
        self.axes = [axis for axis in AXES if len({case[axis] for case in together}) > 1]
        self._usual = {axis: mode(case[axis] for case in together) for axis in AXES}

    def apart(self, case: Mapping[str, Any]) -> str:
        """Say what sets a case apart from the others."""
        axes = self.axes
        if len(axes) > _FEW_AXES:
            axes = [axis for axis in axes if case[axis] != self._usual[axis]]
            if not axes:
                return "as usual"
        return ", ".join(said(axis, case[axis]) for axis in axes)

    def common(self) -> str:
        """Say what the cases have in common, or what is usual of them."""
        many = len(self.axes) > _FEW_AXES
        return ("Usually " if many else "") + ", ".join(
            said(axis, value)
            for axis, value in self._usual.items()
            if (many or axis not in self.axes) and value != _UNSAID.get(axis)
        )


def said(axis: str, value: Any) -> str:
    """Return an axis with a value, in words."""
    if axis in _LETTERS:
        return f"{_LETTERS[axis]} = {value:,}"
    words = {
        "precision": f"{value} precision",
        "codec": "uncompressed" if value == "none" else str(value),
        "workers": f"{value} worker{'s' * (value != 1)}",
        "place": f"on {value}",
    }
    return f"{1000.0 * value:g} ms a chunk" if axis == "latency" else words[axis]


def machine_of(results: Mapping[str, Any]) -> str:
    """Say what was measured on."""
    machine = results["machine"]
    kinds = sorted({pool["architecture"] for pool in machine["blas"] if pool["architecture"]})
    blas = f", BLAS for {' and '.join(kinds)}" if kinds else ""
    return f"{machine['processor']}, {machine['cores']} cores{blas}"


def spread_of(seconds: Mapping[str, float]) -> str:
    """Return a median, to three digits, with the ends."""
    digits = min(max(2 - math.floor(math.log10(seconds["median"])), 0), 4)
    median, low, high = (f"{seconds[key]:.{digits}f}" for key in ("median", "min", "max"))
    return f"{median} ({low} to {high})"
