"""What a fit is of, and how its rows are read: planned before the first read, and carried."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from streamkern.engine.reduction import PassResult, accumulate
from streamkern.parameters.fit_options import SAMPLE_ROWS, FitOptions
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.parameters.plan import Plan
from streamkern.parameters.planning import plan_here
from streamkern.parameters.template import Template
from streamkern.sources import Shard, Source
from streamkern.statistics.folds import PlacedFolds
from streamkern.storage.checkpoints import Checkpoint


@dataclass(frozen=True)
class FitContext:
    """The rows of a fit, its options and its plan; steps of the fit hand on a changed copy."""

    source: Source
    options: FitOptions
    plan: Plan
    n_sample: int = SAMPLE_ROWS  # rows that the first pass brings along
    # What is to become of the rows.
    like: Template | None = None  # whose map the fit takes
    indexed: bool = False  # whether the sums are to know their rows
    more_to_come: bool = False
    penalty: PenaltyOptions | None = None  # for a solver that needs it with the sums
    target_range: tuple[float, float] | None = None
    # The checkpoint folder, and the candidates of a search, which are part of the identity of the
    # checkpointed job.
    folder: str | Path | None = None
    searched: Sequence[Any] = ()
    plan_arguments: dict[str, Any] = field(default_factory=dict)  # of `plan_fit`, by keyword
    # What steps found.
    checkpoint: Checkpoint | None = None
    fold_rule: Any = None  # `Folds`; None until the first pass has told regions
    crowding: Any = None  # how rows crowd, where folds are to see that and guard the penalty
    facts: FitReport = field(default_factory=FitReport)  # of the choices that were made

    @property
    def grows(self) -> bool:
        """Whether these are some of the rows of a model, to which others come."""
        return self.like is not None or self.indexed or self.more_to_come

    @property
    def empty_folds(self) -> bool:
        """Whether rows need not reach every fold, because others come.

        Of rows that come in single shards, one fold would get all.
        """
        return self.like is not None or (self.more_to_come and self.plan.fold_by != "shards")

    @property
    def skips(self) -> bool:
        """Whether rows that are not finite are left out."""
        return self.options.on_bad_rows == "skip"

    def planned_again(self, options: FitOptions, n_sample: int) -> Self:
        """Return the context with other options, planned with a sample of so many rows."""
        plan = plan_here(self.source, options, n_sample, **self.plan_arguments).accepted()
        return replace(self, options=options, plan=plan, n_sample=n_sample)

    def told(self, **facts: Any) -> Self:
        """Return the context with more facts of the choices that were made."""
        known: Any = facts
        return replace(self, facts=self.facts | known)

    def merge_group_of(self, shard: Shard) -> int:
        """Return a number: the sums of shards that have the same one are merged first.

        It is the fold of a shard's first row, as far as its place says that.
        """
        is_placed = isinstance(self.fold_rule, PlacedFolds)
        return int(self.fold_rule.at(np.array([shard.start]))[0]) if is_placed else 0

    def read(
        self, statistic: Any, label: str, *, block_rows: int | None = None, **how: Any
    ) -> PassResult[Any]:
        """Add a statistic up over all rows, in one pass."""
        how = {"read_rows": block_rows or self.plan.block_rows, **how}
        return accumulate(
            self.source,
            statistic,
            shard_rows=self.plan.shard_rows,
            block_rows=block_rows or self.plan.fewest_rows,
            skip_bad_rows=self.skips,
            label=label,
            n_threads=self.plan.n_threads,
            checkpoint=self.checkpoint,
            **how,
        )
