"""Additive statistics: what one pass over the rows reduces them to, a kind a file."""

from streamkern.statistics.base import Statistic, Together
from streamkern.statistics.centred import CentredMoments
from streamkern.statistics.class_errors import ClassErrors, own_weights
from streamkern.statistics.class_scores import HeldOutScores, ScoreTable
from streamkern.statistics.columns import ColumnStatistics
from streamkern.statistics.folds import (
    ByFold,
    Folds,
    ListedFolds,
    RowFolds,
    block_folds,
    shard_folds,
    unplaced_folds,
)
from streamkern.statistics.gradients import GradientOuterProduct
from streamkern.statistics.held_out import HeldOutPairs, PairBins
from streamkern.statistics.leave_one_out import LeaveOneOut
from streamkern.statistics.moments import Moments
from streamkern.statistics.penalty_errors import PenaltyErrors
from streamkern.statistics.predicted_classes import HeldOutClasses, PredictedClasses
from streamkern.statistics.rounds import RoundErrors, StagedErrors
from streamkern.statistics.row_index import RowIndex
from streamkern.statistics.sample import RowSample
from streamkern.statistics.scores import PredictionErrors
from streamkern.statistics.triangle import Triangle
from streamkern.statistics.work import Work

__all__ = [
    "ByFold",
    "CentredMoments",
    "ClassErrors",
    "ColumnStatistics",
    "Folds",
    "GradientOuterProduct",
    "HeldOutClasses",
    "HeldOutPairs",
    "HeldOutScores",
    "LeaveOneOut",
    "ListedFolds",
    "Moments",
    "PairBins",
    "PenaltyErrors",
    "PredictedClasses",
    "PredictionErrors",
    "RoundErrors",
    "RowFolds",
    "RowIndex",
    "RowSample",
    "ScoreTable",
    "StagedErrors",
    "Statistic",
    "Together",
    "Triangle",
    "Work",
    "block_folds",
    "own_weights",
    "shard_folds",
    "unplaced_folds",
]
