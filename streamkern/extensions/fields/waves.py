"""What is asked of the drawn map of a field: its lattice, its angles, and how far it reaches."""

from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import warn
from streamkern.extensions.fields.frequency_grid import GridFourierFeatures
from streamkern.extensions.fields.lattice import Lattice
from streamkern.extensions.fields.trend import Trended
from streamkern.features import FeatureMap, Standardized, innermost


def lattice_of(feature_map: FeatureMap) -> Lattice | None:
    """Return of pairs of waves whose frequencies are equispaced which of them they are, or None."""
    if isinstance(feature_map, Standardized):
        return lattice_of(feature_map.inner)
    if isinstance(feature_map, Trended):
        found = lattice_of(feature_map.inner)
        return None if found is None else found._replace(n_before=feature_map.n_terms)
    return feature_map.lattice if isinstance(feature_map, GridFourierFeatures) else None


def trend_and_angles(feature_map: FeatureMap, cell: Floats, X: Array) -> tuple[Floats, Floats]:
    """Return the trend (n, k) of rows, and the angles (n, p) of one cell along every input."""
    rows, trend, inner = np.asarray(X), np.empty((len(X), 0)), innermost(feature_map)
    if isinstance(feature_map, Standardized):
        rows = feature_map.standardizer(rows)
    if isinstance(inner, Trended):
        trend, rows = inner.trend_and_rest(rows)
    return trend, rows * cell


def warn_of_period(feature_map: FeatureMap, ends: Floats, known: Any) -> None:
    """Warn of rows between ends (2, p) that reach beyond the period, with a range that is known."""
    if (lattice := lattice_of(feature_map)) is None:
        return
    if known is not None and np.shape(known) == (feature_map.n_features, 2):
        low, high = np.transpose(known)
        ends = np.stack([np.minimum(ends[0], low), np.maximum(ends[1], high)])
    angles = trend_and_angles(feature_map, lattice.cell, ends)[1]
    if (np.ptp(angles, axis=0) > 2.0 * np.pi).any():
        warn(
            "the grid of frequencies was laid for other rows, and these reach beyond the period "
            "after which its functions repeat, so that rows far apart are taken for neighbours; "
            "fit all rows at once, or like some from end to end."
        )
