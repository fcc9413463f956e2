"""Additive statistics: what one pass over the rows reduces them to, a kind a file."""

from streamkern.statistics.base import Statistic, Together
from streamkern.statistics.columns import ColumnStatistics
from streamkern.statistics.moments import CentredMoments, Moments
from streamkern.statistics.sample import RowSample
from streamkern.statistics.scores import PredictionErrors

__all__ = [
    "CentredMoments",
    "ColumnStatistics",
    "Moments",
    "PredictionErrors",
    "RowSample",
    "Statistic",
    "Together",
]
