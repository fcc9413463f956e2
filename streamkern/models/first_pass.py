"""The first pass of a fit and what follows from it: folds, and the kernel where rows crowd."""

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from streamkern.errors import DataError, ParameterError, warn
from streamkern.kernels import ShiftInvariantKernel
from streamkern.parameters.fit_options import CHOICE_ROWS, FitOptions
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.job_plan import Plan
from streamkern.parameters.parameters import AUTO
from streamkern.parameters.plan import plan_for
from streamkern.parameters.template import Template
from streamkern.passes.column_summary import ColumnPass, block_of, run_column_pass, warn_of_outliers
from streamkern.passes.fold_rules import column_folds, placed_folds, region_folds
from streamkern.sources import Source
from streamkern.statistics import Folds, RowIndex
from streamkern.storage.checkpoints import Checkpoint
from streamkern.tune.crowding import Crowding, crowding
from streamkern.tune.sample_choice import chosen_where_rows_crowd


class Found(NamedTuple):
    """What the first pass found, and the options, plan and folds of what follows."""

    seen: ColumnPass
    options: FitOptions
    plan: Plan
    folds: Folds
    scaled: FitReport  # the scale, and how rows crowd if they do


@dataclass(frozen=True)
class FirstPass:
    """The first pass over the rows of a fit; `solution` is what `plan_for` counts of it."""

    source: Source
    n_sample: int
    solution: dict[str, Any]
    like: Template | None
    _: KW_ONLY
    indexed: bool
    more_to_come: bool
    target_range: tuple[float, float] | None = None

    @property
    def _grows(self) -> bool:
        return self.like is not None or self.indexed or self.more_to_come

    def placed_folds(self, options: FitOptions, plan: Plan, *, few_rows: bool) -> Folds | None:
        """Return the folds, or None if they are regions, which the pass tells."""
        by_column = options.n_folds > 1 and options.fold_column is not None
        if plan.fold_by != "space" and not by_column:
            turned = self.like is not None
            return placed_folds(self.source, plan, options, few_rows=few_rows, turned=turned)
        if self._grows:
            raise ParameterError(
                f"folds by {plan.fold_by} are of rows that are all there, but moments are for "
                f"others to come; take fold_by 'rows' or 'blocks' (--fold-by rows)."
            )
        if by_column:
            if options.is_in_time and plan.solves_by_passes:
                raise ParameterError(
                    "conjugate gradients leave out every fold from all others, but windows of time "
                    "are predicted from those before; take solver 'direct' (--solver direct), or "
                    "fold_by 'blocks' (--fold-by blocks)."
                )
            return column_folds(self.source, options)
        if self.source.sparse_row_bytes:
            raise ParameterError(
                "regions are of distances between all inputs, but these rows are sparse; take "
                "fold_by 'rows' or 'blocks' (--fold-by rows), or dense rows."
            )
        return None

    def read(
        self,
        options: FitOptions,
        plan: Plan,
        folds: Folds | None,
        saved: Checkpoint | None,
        *,
        is_open: bool,
    ) -> Found:
        """Read the rows, and where they crowd let folds see the gaps, in a map that holds there.

        Map and kernel are chosen if they are open, and if predictions swing where no rows are; a
        search among some tries these itself.
        """
        index = RowIndex(folds) if self.indexed else None
        how: Any = {"like": self.like, "index": index, "more_to_come": self.more_to_come}
        how["checkpoint"] = saved
        seen = run_column_pass(self.source, options, plan, self.n_sample, **how)
        self._check_targets(seen)
        scaled = FitReport(scale=options.scale)
        if folds is None:
            folds = region_folds(seen, options.n_folds, options.random_state)
        if self.like is None:
            warn_of_outliers(self.source, seen)
        crowded = None if self._grows else self._crowding(seen, options)
        if crowded is None:
            return Found(seen, options, plan, folds, scaled)
        warn(crowded.note())
        scaled["crowding"] = crowded._asdict() | {"note": crowded.note()}
        if plan.fold_by != "shards":  # which are blocks
            options = replace(options, fold_by=crowded.fold_by)
        is_open = is_open and crowded.swings
        if is_open and options.may_take_landmarks:
            options = replace(options, feature_map="nystroem", metric=None)
        n_sample = max(self.n_sample, options.sample_rows(self.source) * is_open)
        plan = plan_for(self.source, options, n_sample, **self.solution)
        if len(seen.sample.X) < min(n_sample, seen.passed.n_rows):
            again = {**how, "label": "columns again"}
            seen = run_column_pass(self.source, options, plan, n_sample, **again)
        regions = region_folds(seen, options.n_folds, options.random_state)
        folds = regions
        if plan.fold_by != "space":
            folds = placed_folds(self.source, plan, options)
        if is_open and options.chooses_kernel:
            of_sample = regions.of(block_of(seen.sample.first(CHOICE_ROWS)))
            if options.scale == AUTO:
                options = replace(options, scale="standard")
            options, facts = chosen_where_rows_crowd(seen, options, of_sample)
            scaled |= facts
        return Found(seen, options, plan, folds, scaled)

    def _check_targets(self, seen: ColumnPass) -> None:
        low, high = self.target_range or (-np.inf, np.inf)
        p = self.source.n_features
        least, largest = seen.columns.minimum[p:], seen.columns.maximum[p:]
        for j in np.flatnonzero((least < low) | (largest > high)).tolist():
            raise DataError(
                f"target {j} has values from {least[j]:.6g} to {largest[j]:.6g}, which are not all "
                f"in target_range, from {low:g} to {high:g}; give a wider one (--range), or leave "
                f"out the rows outside."
            )

    def _crowding(self, seen: ColumnPass, options: FitOptions) -> Crowding | None:
        """Return how rows crowd, where folds choose the penalty and nobody named them.

        A grid holds where no rows are.
        """
        of_distances = isinstance(options.kernel, ShiftInvariantKernel) and not options.is_identity
        is_open = options.n_folds > 1 and options.fold_by == AUTO and not options.has_grid
        if not (is_open and of_distances) or self.source.sparse_row_bytes:
            return None
        regions = partial(region_folds, seen, options.n_folds, options.random_state)
        return crowding(seen, regions, options.random_state)
