"""Additive statistics: what one pass over the rows reduces them to, a kind a file."""

from streamkern.statistics.base import (
    Statistic,
    Sums,
    Together,
    Work,
    concatenated,
    joint,
    maximum,
    merged_by,
    minimum,
    part,
    parts,
    total,
)
from streamkern.statistics.centred_moments import CentredMoments, Precision
from streamkern.statistics.column_statistics import ColumnStatistics
from streamkern.statistics.feature_moments import Moments
from streamkern.statistics.folds import (
    ByFold,
    Folds,
    ListedFolds,
    RowFolds,
    block_folds,
    rows_by_fold,
    shard_folds,
    unplaced_folds,
)
from streamkern.statistics.row_hashes import RowIndex, RowSample
from streamkern.statistics.triangle import Triangle

__all__ = [
    "ByFold",
    "CentredMoments",
    "ColumnStatistics",
    "Folds",
    "ListedFolds",
    "Moments",
    "Precision",
    "RowFolds",
    "RowIndex",
    "RowSample",
    "Statistic",
    "Sums",
    "Together",
    "Triangle",
    "Work",
    "block_folds",
    "concatenated",
    "joint",
    "maximum",
    "merged_by",
    "minimum",
    "part",
    "parts",
    "rows_by_fold",
    "shard_folds",
    "total",
    "unplaced_folds",
]
