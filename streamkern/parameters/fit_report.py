"""Fit report: what a fit says of itself, by the keys of `docs/reference/reports.md`."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

FitReport = dict[str, Any]
ISOTROPIC = "isotropic"  # the metric of plain distances


def with_seconds(report: FitReport, **parts: float) -> FitReport:
    """Return a report with the seconds of more parts of the work, which the total counts too."""
    seconds = report["seconds"]
    added = {name: seconds.get(name, 0.0) + spent for name, spent in parts.items()}
    total = seconds["total"] + sum(parts.values())
    return report | {"seconds": seconds | added | {"total": total}}


def map_in_words(tried: Mapping[str, Any]) -> str:
    """Return the map of a setting that was tried, with its metric."""
    name: str = tried["feature_map"]
    return name if tried["metric"] == ISOTROPIC else f"{name}, {tried['metric']}"


def error_of(tried: dict[str, Any]) -> float:
    """Return the root of its mean squared error, over sd(y)."""
    return math.sqrt(tried["relative_mse"])


def first_scale(tried: Mapping[str, Any]) -> float:
    """Return its length scale, or that of the first input; 0 where it has none."""
    scale = tried["length_scale"]
    return float(np.ravel(scale)[0] if scale else 0.0)
