"""Additive statistics: what one pass over the rows reduces them to, a kind a file.

A statistic of your own derives from `Statistic`: read `base.py`, and `declared_sums.py` for how
its sums are declared.
"""

# ruff: noqa: I001  in lines, as those of kernels and features are
from streamkern.statistics.base import Statistic as Statistic, Sums as Sums, Composite as Composite
from streamkern.statistics.centred_moments import CentredMoments as CentredMoments
from streamkern.statistics.centred_moments import Precision as Precision
from streamkern.statistics.centred_moments import dtype_of_features as dtype_of_features
from streamkern.statistics.centred_moments import precision_of_features as precision_of_features
from streamkern.statistics.column_statistics import ColumnStatistics as ColumnStatistics
from streamkern.statistics.declared_sums import concatenated as concatenated, joint as joint
from streamkern.statistics.declared_sums import maximum as maximum, merged_by as merged_by
from streamkern.statistics.declared_sums import minimum as minimum
from streamkern.statistics.declared_sums import part as part, parts as parts, total as total
from streamkern.statistics.feature_moments import Moments as Moments
from streamkern.statistics.feature_sums import FeatureSums as FeatureSums
from streamkern.statistics.feature_sums import joined_moments as joined_moments
from streamkern.statistics.feature_sums import moment_strips as moment_strips
from streamkern.statistics.folds import FoldStatistics as FoldStatistics, Folds as Folds
from streamkern.statistics.folds import ListedFolds as ListedFolds, RangeFolds as RangeFolds
from streamkern.statistics.folds import RowFolds as RowFolds, Split as Split
from streamkern.statistics.folds import block_folds as block_folds, rows_by_fold as rows_by_fold
from streamkern.statistics.folds import shard_folds as shard_folds, unplaced_folds as unplaced_folds
from streamkern.statistics.row_hashes import RowIndex as RowIndex, RowSample as RowSample
from streamkern.statistics.triangle import Triangle as Triangle
from streamkern.statistics.work import Work as Work
