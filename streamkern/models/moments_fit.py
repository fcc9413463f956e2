"""The job of a fit: columns and a sample first, then moments."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamkern.features.metric import GivenMetric
from streamkern.models.data_moments import DataMoments
from streamkern.models.field_kernel import with_chosen_kernel
from streamkern.models.first_pass import FirstPass
from streamkern.models.moments_pass import moments_pass
from streamkern.parameters.fit_options import SAMPLE_ROWS, FitOptions
from streamkern.parameters.parameters import AUTO
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.parameters.plan import plan_for
from streamkern.parameters.template import Template
from streamkern.passes.fit_context import RowPasses, checkpointed
from streamkern.sources import Source
from streamkern.tune.budget import Clock
from streamkern.tune.candidates import Contender
from streamkern.tune.metric_beginnings import Pair
from streamkern.tune.metric_learning import LearntMetric, check_metric_of, in_metric
from streamkern.tune.sample_choice import chosen_on_sample
from streamkern.tune.trials import ISOTROPIC, STANDARD


def fit_moments(
    source: Source,
    options: FitOptions,
    *,
    checkpoint: str | Path | None = None,
    penalty: PenaltyOptions | None = None,
    **job: Any,
) -> DataMoments:
    """Read the rows twice, lightly for the columns and a sample, then for the moments.

    Where the plan `solves_by_passes`, they may be read more often, for moments of the combinations
    of features that the choice of the penalty and the solution need.  `job` is as of `fit_job`.
    """
    with fit_job(source, options, checkpoint, **job) as (rows, (best, *_), learnt):
        passes, seen = with_chosen_kernel(rows, best.column_pass)
        return moments_pass(passes, seen, learnt=learnt, penalty=penalty)


@contextmanager
def fit_job(
    source: Source,
    options: FitOptions,
    folder: str | Path | None,
    *,
    pairs: Sequence[Pair] = (),
    n_sample: int | None = None,
    like: Template | None = None,
    indexed: bool = False,
    more_to_come: bool = False,
    searched: Sequence[Any] = (),
    clock: Clock | None = None,
    target_range: tuple[float, float] | None = None,
    **solution: Any,
) -> Iterator[tuple[RowPasses, list[Contender], LearntMetric | None]]:
    """Hold the passes of a fit after the column pass, the best metrics, and how they were learnt.

    Without `pairs` of kernel and map to choose from, the passes have the kernel in the best metric;
    with them the plan is of the map that is made of most rows, and of one that makes features where
    any does.  With a `clock` metrics are learnt, while there is time, and the last contender is a
    plain fit: of the first pair, to standardised inputs if the scale was chosen.  Where the kernel
    is open, it is what a fit would choose, and the one before has the standardised inputs and no
    kernel.  `solution` is what `plan_for` counts of what follows.
    """
    given = pairs or [(options.kernel, options.feature_map)]
    each = [replace(options, kernel=kernel, feature_map=name) for kernel, name in given]
    if like is not None:
        like.check(source)
        n_sample = SAMPLE_ROWS
    else:
        check_metric_of(options, [kernel for kernel, _ in given], source)
        n_sample = max(n_sample or 0, *(one.sample_rows(source) for one in each))
    heaviest = max(each, key=lambda one: one.heaviness)
    solution |= {"indexed": indexed, "few_rows": like is not None or more_to_come}
    plan = plan_for(source, heaviest, n_sample, **solution)
    # Of rows that come in single shards, one fold would get all.
    few_rows = like is not None or (more_to_come and plan.fold_by != "shards")
    grows: Any = {"indexed": indexed, "more_to_come": more_to_come}
    first = FirstPass(source, n_sample, solution, like, **grows, target_range=target_range)
    folds = first.placed_folds(options, plan, few_rows=few_rows)
    job: Any = {"like": like, "indexed": indexed, "searched": searched}
    with checkpointed(folder, source, options, plan, **job) as saved:
        seen, options, plan, folds, scaled = first.read(
            options, plan, folds, saved, is_open=options.chooses_kernel or not pairs
        )
        if "crowding" in scaled and (options.kernel, options.feature_map) not in given:
            given = [(options.kernel, options.feature_map)]
        wanted = options if like is None else replace(options, metric=None)  # its map has one
        plain, given_scale = seen, options.scale
        kernel_is_open = options.chooses_kernel and not options.has_grid
        if (options.scale == AUTO or kernel_is_open) and like is None:
            choosing = replace(options, chooses_kernel=kernel_is_open)
            seen, chosen_options, facts = chosen_on_sample(seen, choosing, clock)
            scaled |= facts
            # The kernel of a field is still to be chosen, in windows.
            is_field = options.chooses_kernel and not kernel_is_open
            options = replace(chosen_options, chooses_kernel=is_field)
            wanted = replace(wanted, scale=options.scale)
            if not pairs:
                given = [(options.kernel, options.feature_map)]
        contenders, learnt = in_metric(seen, wanted, given, plan, clock)
        chosen = wanted.scale != given_scale
        if clock is not None and (learnt is not None or chosen):
            name, scale = (STANDARD, "standard") if chosen else (ISOTROPIC, None)
            if isinstance(options.metric, GivenMetric):
                plain = in_metric(plain, wanted, given, plan)[0][0].column_pass
            default = Contender(name, plain, given[:1], scale, is_default=True)
            if kernel_is_open:
                if learnt is not None:  # linear ridge may be compared
                    contenders.append(default._replace(pairs=[], is_default=False))
                usual = [(options.kernel, options.feature_map)]
                default = Contender(ISOTROPIC, seen, usual, is_default=True)
            contenders.append(default)
        if not pairs:
            options = replace(options, kernel=contenders[0].pairs[0][0])
        passes = RowPasses(source, options, plan, saved, folds, like, few_rows, scaled)
        yield passes, contenders, learnt
