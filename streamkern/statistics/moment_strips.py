"""Moments in strips of the triangle: a pass each, where memory does not hold the whole."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamkern.errors import ParameterError
from streamkern.statistics.triangle import Triangle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern.statistics.feature_sums import FeatureSums


def moment_strips(empty: FeatureSums, n_strips: int) -> list[Any]:
    """Return empty moments that together hold what these do, each a strip of the triangle.

    A strip needs the features up to its last row, and no more.  Raises ParameterError if the map
    has no leading part, and there is more than one strip.
    """
    D = empty.feature_map.n_components
    cuts = Triangle.strips(D, n_strips)
    if len(cuts) == 1:
        return [empty.zero()]
    return [
        replace(
            empty,
            feature_map=empty.feature_map if stop == D else empty.feature_map.first(stop),
            feature_shift=empty.feature_shift[:stop],
            first_row=first,
        )
        for first, stop in cuts
    ]


def joined_moments(strips: Sequence[Any]) -> Any:
    """Return the moments of which these are all strips, sharing their memory."""
    last = strips[-1]
    if any(strip.n_rows != last.n_rows for strip in strips):
        counts = ", ".join(f"{strip.n_rows:,}" for strip in strips)
        raise ParameterError(
            f"strips of one triangle must be sums over the same rows, but these are over {counts} "
            f"rows; compute them again."
        )
    whole = copy(last)
    whole.first_row = 0
    if last.gram is not None:
        panels = [panel for strip in strips if strip.gram for panel in strip.gram.panels]
        whole.gram = Triangle.of_panels(panels)
    return whole
