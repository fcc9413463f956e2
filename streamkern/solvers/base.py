"""What holds the normal equations of a fit, and how it sums them up over the rows."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from streamkern.engine.reduction import PassResult
from streamkern.engine.scheduler import compute, delayed
from streamkern.errors import DataError
from streamkern.features import FeatureMap, Standardized, gram_map
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.passes.column_summary import ColumnSummary
from streamkern.passes.fit_context import FitContext
from streamkern.runtime.threads import blas_threads
from streamkern.solve.progressive_validation import progressive_error
from streamkern.statistics import FeatureSums, FoldStatistics, joined_moments, moment_strips
from streamkern.statistics.folds import Weighting


@dataclass(frozen=True)
class Completion(ABC):
    """What is added to a solution where sums are of some combinations of features."""

    n_components: int  # of the features
    penalty: PenaltyOptions  # how it is chosen by these sums
    note: str  # what to know of the solution

    @abstractmethod
    def completed(self, solved: Any) -> Any:
        """Return a solution with what the sums do not tell of it."""


@dataclass(frozen=True)
class FoldSums:
    """The sums of every fold, and what was done for them."""

    folds: Any  # a task of FoldStatistics, which stays where it was merged, or a FoldStatistics
    feature_map: FeatureMap  # whose features were summed
    weights: dict[int, float]  # of the rows of every fold
    passes: Sequence[PassResult[Any]]
    facts: FitReport
    completion: Completion | None = None


@dataclass(frozen=True)
class Solver(ABC):
    """What holds the normal equations of a fit: one class for each form of them.

    It sums them up; `fold_solution.py` solves what it summed.
    A solver of your own is a class with `takes` and `empty`, and a row of the table of solvers.
    """

    context: FitContext
    summary: ColumnSummary
    weighting: Weighting | None = None

    makes_features: ClassVar[bool] = True  # for every block of rows

    @classmethod
    @abstractmethod
    def takes(cls, context: FitContext, feature_map: Standardized) -> bool:
        """Say whether it is for a fit, of those that no solver before it takes."""

    @abstractmethod
    def empty(self, feature_map: FeatureMap) -> FeatureSums:
        """Return the sums of no rows, with shifts and units that suit the rows to come."""

    def facts(self, sums: FoldSums) -> FitReport:  # noqa: ARG002
        """Return what is reported of the sums beside their passes."""
        return {"iterations": 0}

    def sums(self, drawn: Standardized) -> FoldSums:
        """Read the rows once for the sums of folds; more often if memory holds but strips."""
        with blas_threads(1):  # the shift of features is part of the result
            feature_map = gram_map(drawn)
            empty = self.empty(feature_map) if self.known is None else self.known
        found = self.read(empty, feature_map)
        return replace(found, facts=self.facts(found))

    @property
    def known(self) -> FeatureSums | None:
        """The empty sums of the template, or None."""
        return None if self.context.like is None else self.context.like.empty

    def read(self, empty: FeatureSums, feature_map: FeatureMap, *, keep: bool = True) -> FoldSums:
        """Add up all rows, each to the sums of its fold."""
        context, plan = self.context, self.context.plan
        strips = moment_strips(empty, plan.n_strips)
        rows_alone = max(plan.block_rows, plan.column_block_rows)
        how: Any = {
            "group": context.merge_group_of,
            "keep": keep,
            "validate": self._validation,
            "read_rows": plan.block_rows if self.makes_features else rows_alone,
        }
        n = len(strips)
        labels = ["moments"] if n == 1 else [f"moments-{i}-of-{n}" for i in range(1, n + 1)]
        by_fold = FoldStatistics if self.weighting is None else self.weighting.by_fold
        asked = [by_fold(context.fold_rule, strip) for strip in strips]
        passes = [context.read(*each, **how) for each in zip(asked, labels, strict=True)]
        # The last strip has every sum but the rows of the triangle that the other strips hold.
        folds: Any = passes[-1].statistic
        weights: dict[int, float] = compute(delayed(_weights_of_folds, folds, name="weights"))
        self._check(weights)
        if n > 1:
            folds = delayed(_joined, *(passed.statistic for passed in passes), name="join")
        return FoldSums(folds, feature_map, weights, passes, {})

    @property
    def _validation(self) -> Any:
        """What tells the error on rows to come, where these have their own targets."""
        if self.weighting is not None and not self.weighting.keeps_targets:
            return None
        return partial(progressive_error, intercept=self.context.options.fit_intercept)

    def _check(self, weights: dict[int, float]) -> None:
        n_folds = self.context.fold_rule.n_folds
        for fold in range(n_folds):
            if not weights.get(fold) and not self.context.empty_folds:
                raise DataError(
                    f"fold {fold + 1} of {n_folds} has no rows that could be used; take fewer "
                    f"folds, or another fold_by (--fold-by)."
                )


def _weights_of_folds(folds: FoldStatistics) -> dict[int, float]:
    return {fold: part.weight for fold, part in folds.parts.items()}


def _joined(*strips: FoldStatistics) -> FoldStatistics:
    """Return the folds of which these are strips."""
    last, *_ = strips
    parts = {k: joined_moments([strip.parts[k] for strip in strips]) for k in last.parts}
    return FoldStatistics.of(last.rule, parts)
