"""Additive statistics: what one pass over the rows reduces them to, a kind a file.

A statistic of your own derives from `Statistic`: read `base.py`, and `declared_sums.py` for how
its sums are declared.
"""

# ruff: noqa: I001  in lines, as those of kernels and features are
from streamkern.statistics.base import Statistic, Sums, Composite
from streamkern.statistics.centred_moments import CentredMoments, Precision, dtype_of_features
from streamkern.statistics.centred_moments import precision_of_features
from streamkern.statistics.column_statistics import ColumnStatistics
from streamkern.statistics.declared_sums import concatenated, joint, maximum, merged_by, minimum
from streamkern.statistics.declared_sums import part, parts, total
from streamkern.statistics.feature_moments import Moments
from streamkern.statistics.feature_sums import FeatureSums, joined_moments, moment_strips
from streamkern.statistics.folds import (
    FoldStatistics,
    Folds,
    ListedFolds,
    RangeFolds,
    RowFolds,
    Split,
)
from streamkern.statistics.folds import block_folds, rows_by_fold, shard_folds, unplaced_folds
from streamkern.statistics.row_hashes import RowIndex, RowSample
from streamkern.statistics.triangle import Triangle
from streamkern.statistics.work import Work

__all__ = [
    "CentredMoments", "ColumnStatistics", "Composite", "FeatureSums", "FoldStatistics", "Folds",
    "ListedFolds", "Moments", "Precision", "RangeFolds",
    "RowFolds", "RowIndex", "RowSample", "Split", "Statistic", "Sums",
    "Triangle", "Work", "block_folds", "concatenated", "dtype_of_features",
    "joined_moments", "joint", "maximum", "merged_by",
    "minimum", "moment_strips", "part", "parts", "precision_of_features", "rows_by_fold",
    "shard_folds", "total", "unplaced_folds",
]  # fmt: skip
