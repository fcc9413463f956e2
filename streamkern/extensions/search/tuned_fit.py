"""From rows to the moments of a kernel, map and metric that were chosen on a sample of them."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from streamkern.choice.guarded_kernel import with_guarded_kernel
from streamkern.choice.sample_choice import in_given_metric, with_chosen_scale
from streamkern.errors import DataError, ParameterError
from streamkern.estimators.problems import Problem, job_of
from streamkern.extensions.search.budget import Budget, Clock, direct_seconds, run_in_time
from streamkern.extensions.search.finalists import FEWEST_COMPONENTS, compare
from streamkern.extensions.search.halving import halve
from streamkern.extensions.search.metric_learning import LearntMetric, learnt_metric
from streamkern.extensions.search.search import Search
from streamkern.extensions.search.settings import (
    LEARNT,
    STANDARD,
    MetricSettings,
    Pair,
    kernels_to_try,
    maps_to_try,
    pairs_to_try,
)
from streamkern.features.metric import GivenMetric, standardizer_of
from streamkern.fit import solve, sums_of
from streamkern.fitting.draw_features import Features, drawn
from streamkern.fitting.planned_fit import check_metric_of, planned_fit
from streamkern.kernels import Gaussian, Kernel, Linear
from streamkern.models.data_moments import DataMoments
from streamkern.models.fitted_model import described_kernel
from streamkern.parameters.fit_options import FitOptions, large_sample
from streamkern.parameters.fit_report import ISOTROPIC
from streamkern.parameters.parameters import AUTO, Parameters, first_kernel_of
from streamkern.parameters.planning import Job, plan_here, tell_of_plan
from streamkern.passes.column_summary import ColumnSummary, block_of
from streamkern.passes.fit_context import FitContext
from streamkern.runtime.events import tell_of_job
from streamkern.sources import Source


def metrics_to_try(
    context: FitContext,
    summary: ColumnSummary,
    pairs: Sequence[Pair],
    clock: Clock | None,
    *,
    adds_linear: bool,
) -> tuple[FitContext, list[MetricSettings], LearntMetric | None]:
    """Return the best metrics with their kernels and maps, and how the metrics were learnt.

    By a clock metrics are learnt while there is time, and the last one is a plain fit: of the first
    pair, to standardised inputs if the scale was chosen.  Where the kernel is open, it is
    what a fit would choose.  Linear ridge on the standardised inputs is added, if it can be fitted:
    it is far ahead where a few values lie far out along a straight line.
    """
    context = with_guarded_kernel(context, summary)
    options, given, plain = context.options, pairs, summary
    make = partial(run_in_time, clock, share=1.0)
    given_scale, kernel_is_open = options.scale, options.chooses_kernel and not options.is_field
    if context.crowding is not None and (options.kernel, options.feature_map) not in pairs:
        given = [(options.kernel, options.feature_map)]  # which holds where no rows are
    context, scaled = with_chosen_scale(context, summary, make)
    options = context.options
    learnt, metrics = None, [MetricSettings(ISOTROPIC, scaled, given)]
    if isinstance(options.metric, GivenMetric):
        inside, plain = (in_given_metric(each, options.metric) for each in (scaled, plain))
        metrics = [MetricSettings(options.metric.name, inside, given)]
    elif options.metric is not None:
        learnt = learnt_metric(scaled, options, given, context.plan, clock)
        metrics = list(learnt.metrics.values())
    chosen = options.scale != given_scale
    if clock is None or (learnt is None and not chosen):
        return context, metrics, learnt
    name, scale = (STANDARD, "standard") if chosen else (ISOTROPIC, None)
    adds_linear &= learnt is not None and _has_linear(options, plain, scale)
    linear: list[Pair] = [(Linear(), "identity")] if adds_linear else []
    default = MetricSettings(name, plain, [*given[:1], *linear], scale, is_default=True)
    if kernel_is_open:
        metrics.append(default._replace(pairs=linear, is_default=False))
        usual = [(options.kernel, options.feature_map)]
        default = MetricSettings(ISOTROPIC, scaled, usual, is_default=True)
    return context, [*metrics, default], learnt


def _has_linear(options: FitOptions, summary: ColumnSummary, scale: str | None) -> bool:
    """Say whether linear ridge can be fitted, by a plan of kernels' features, which are more."""
    linear: dict[str, Any] = {"kernel": Linear(), "feature_map": "identity", "metric": None}
    try:
        replace(options, **linear, scale=scale or options.scale)
    except ParameterError:  # of integers, of phases, of a bounded scale
        return False
    return len(summary.standardizer.columns) <= options.n_components


# Of a search: more are thirds.
_MOST_FOLDS = 10
# What is learnt of metrics in a search within seconds.
_METRIC = "auto:8"
# What a search may take where neither that nor a kernel or map is named; and the map that models
# have by themselves, than which landmarks do better with as many features.
_USUAL_BUDGET, _USUAL_MAP = "1m", "orthogonal"
# What a plain fit is expected to take of the seconds of the one before.
_AGAIN = 1.5


def _search_options(
    parameters: Parameters, kernels: Sequence[Kernel], maps: str | Sequence[str] | None
) -> FitOptions:
    """Return the options of a search and of the fit after it.

    They have the kernel and map that take most memory, of those that go together.
    """
    found, refusals = [], []
    for kernel, name in product(kernels, maps_to_try(maps, parameters.feature_map)):
        try:
            found.append(parameters.map_options(name, kernel))
        except ParameterError as error:
            refusals.append(error)
    if not found:
        raise refusals[0]
    return parameters.with_folds(max(found, key=lambda each: each.cost))


class SearchedFit:
    """What a search chooses among, and what it may take, checked before a row is read."""

    def __init__(
        self,
        parameters: Parameters,
        *,
        kernels: Kernel | str | Sequence[Kernel | str] | None,
        maps: str | Sequence[str] | None,
        budget: str | None,
        checkpoint: str | Path | None,
        begun: float | None = None,
    ) -> None:
        # Seconds count from this reading of the clock.
        self.begun = time.perf_counter() if begun is None else begun
        if parameters.trend is not None:
            raise ParameterError(
                "a search compares maps, which have no trend; leave it out, or take `fit`."
            )
        self.parameters, self.checkpoint = parameters, checkpoint
        kernel = first_kernel_of(parameters.kernel)
        usual = kernel == Gaussian() and parameters.feature_map == _USUAL_MAP
        if usual and all(each is None for each in (kernels, maps, budget, checkpoint)):
            budget = _USUAL_BUDGET
        self.budget: Any = Budget.of(budget)
        self.is_free = kernels in (None, AUTO) and maps in (None, AUTO)
        if self.budget is not None:
            kernels = AUTO if kernels is None else kernels
            maps = AUTO if maps is None else maps
            if checkpoint is not None:
                raise ParameterError(
                    "a search within seconds may choose otherwise when it is made again, so it "
                    "has no checkpoint; leave out the budget, and name kernels or maps."
                )
        if kernels is None and AUTO in (maps, parameters.feature_map):
            kernels = AUTO if kernel == Gaussian() else None  # as good as that
        self.kernels, self.maps = kernels_to_try(kernels, kernel), maps
        self.options = _search_options(parameters, self.kernels or [kernel], maps)

    def moments(self, source: Source) -> DataMoments:
        """Choose on a sample of the rows, and read them all with what was chosen."""
        tell_of_job("searching", seconds=0.0 if self.budget is None else self.budget.seconds)
        names = maps_to_try(self.maps, self.parameters.feature_map, source.n_features)
        options, clock = self.options, None
        pairs = pairs_to_try(self.kernels, names, options, source)
        if self.budget is not None:
            options, pairs = self._widened(options, pairs, source)
            clock = self.budget.clock(self.parameters, options, source, self.begun)
        options = replace(options, kernel=pairs[0][0], feature_map=pairs[0][1])
        options = self.parameters.for_rows(options, source)
        n_rows = large_sample(source.n_features + source.n_targets)
        # A map may be made from more rows than are searched on.
        penalty, searched = self.parameters.penalty, [*self.kernels, *names, str(self.budget)]
        how: Any = {"pairs": pairs, "n_sample": n_rows, "searched": searched}
        how |= {"n_loo_penalties": penalty.n_loo_penalties}
        how |= self.parameters.solution_by_passes(options)
        how |= {"target_range": self.parameters.target_range, "penalty": penalty}
        context = planned_fit(source, options, **how, folder=self.checkpoint)
        context = context.told(
            tuning_kernels=list(map(described_kernel, self.kernels)),
            tuning_maps=names,
            tuning_budget=None if self.budget is None else str(self.budget),
        )
        given: Any = {"given": options, "pairs": pairs, "n_rows": n_rows, "clock": clock}
        return sums_of(context, partial(self._drawn, **given))

    def _drawn(
        self,
        context: FitContext,
        summary: ColumnSummary,
        *,
        given: FitOptions,
        pairs: Sequence[Pair],
        n_rows: int,
        clock: Clock | None,
    ) -> tuple[FitContext, Features]:
        """Choose among pairs on rows of the sample, and draw the map of the best."""
        source = context.source
        linear = {"adds_linear": self.is_free and self.parameters.sparse is None}
        context, metrics, learnt = metrics_to_try(context, summary, pairs, clock, **linear)
        by_clock = learnt is not None and clock is not None
        # Where rows crowd the folds of the fit guard.
        crowds, folds = context.crowding is not None, None
        if crowds or 2 <= context.fold_rule.n_folds <= _MOST_FOLDS:
            folds = context.fold_rule.of(block_of(metrics[0].summary.sample.first(n_rows)))
        how: Any = {"clock": clock, "folds": folds, "is_guarded": crowds}
        search = Search(metrics, n_rows, given, context.plan, **how)
        if by_clock:
            D = self.parameters.for_rows(self.options, source).n_components
            compare(search, D, adds=self.is_free)
        else:
            halve(search, self.parameters.feature_map if self.maps in (None, AUTO) else None)
        setting = search.best.setting
        best = search.metrics[setting.place]
        new: Any = {"kernel": setting.stretched(setting.kernel), "feature_map": setting.feature_map}
        new["scale"] = best.scale or context.options.scale
        if learnt is not None:
            # Of several metrics, the first that was learnt.
            places = sorted(best.parts, key=lambda i: metrics[i].name != LEARNT)
            place = None if setting.is_linear else (*places, setting.place)[0]
            learnt = replace(learnt, place=place)
        if setting.is_linear or not (learnt is None or learnt.rounds):
            new["metric"] = None
        options, late = self._in_time(replace(context.options, **new), source, clock)
        # What comes before, nobody can say.
        tell_of_plan(source, options, context.plan, context.plan_arguments)
        facts: Any = search.report()
        facts["tuning_note"] = " ".join(filter(None, [facts["tuning_note"], late]))
        seconds = context.facts.get("seconds", {}) | {"search": search.seconds}
        # Of kernels, the search says more.
        told = context.told(scale=options.scale, kernel_errors={}, seconds=seconds, **facts)
        chosen = replace(told, options=options)
        return chosen, drawn(chosen, best.summary, learnt)

    def leaves_time(self, ridge: Any) -> bool:
        """Say whether a plain fit of all rows can be made, too, where something else was chosen."""
        if not self.is_free or self.budget is None:
            return False
        linear, moments = standardizer_of(ridge.feature_map).linear, ridge.moments
        has_metric = moments.options.metric is not None or linear is not None
        is_plain = not has_metric and moments.options.feature_map == _USUAL_MAP
        is_plain |= moments.crowds  # whose folds say nothing of neighbours
        seconds, parts = ridge.seconds, ("scale", "columns", "pass", "solve")
        again = _AGAIN * sum(seconds.get(part, 0.0) for part in parts)
        left = self.begun + self.budget.seconds - time.perf_counter()
        return not is_plain and ridge.outcome.cv_rmse is not None and again < left

    def _in_time(
        self, options: FitOptions, source: Source, clock: Clock | None
    ) -> tuple[FitOptions, str]:
        """Return options with as many features as have time, at the speed of trials, and a note."""
        asked = self.parameters.for_rows(self.options, source).n_components
        notes, fewest = list[str](), min(asked, FEWEST_COMPONENTS)
        while clock is not None and not options.is_identity:
            plan = plan_here(source, options, **self.parameters.solution_by_passes(options))
            seconds = clock.slowness * direct_seconds(plan, self.parameters, options)
            left = max(clock.until_end, 0.0)
            if plan.solves_by_passes or seconds <= left:
                break
            if options.n_components <= fewest:
                notes.append(
                    f"the fit was expected to take {seconds:.0f} s, but {left:.0f} s of the budget "
                    f"were left; give more seconds."
                )
                break
            # Decompositions take the cube, and products the square: these are not too few.
            part = float(np.clip(np.cbrt(left / seconds), 0.75, 0.98))
            fewer = int(part * options.n_components) // 2 * 2
            options = replace(options, n_components=max(fewer, fewest))
        if options.n_components < asked:
            notes.append(
                f"the fit has {options.n_components:,} components, not the {asked:,} that were "
                f"asked for, to end within the budget; give more seconds."
            )
        return options, " ".join(notes)

    def _widened(
        self, options: FitOptions, pairs: list[Any], source: Source
    ) -> tuple[FitOptions, list[Any]]:
        """Return options with more features, a scale and a metric that are chosen, and their pairs.

        That is what seconds are for.  A metric is learnt if all kernels and maps have one; of
        automatic maps at landmarks, and with the first pair.
        """
        if self.parameters.n_components != AUTO and not self.parameters.penalty.n_loo_penalties:
            D = self.budget.components(self.parameters, options, source)
            options = replace(options, n_components=D)
        if source.sparse_row_bytes:
            return options, pairs
        if self.parameters.scale_is_open:
            options = replace(options, scale="auto")
        # As a fit would choose it, for the settings that are those of one.
        chooses_kernel = self.is_free and self.parameters.chooses_kernel(pairs[0][1])
        options = replace(options, chooses_kernel=chooses_kernel)
        if options.metric is None:
            learning = replace(options, metric=_METRIC)
            with suppress(ParameterError, DataError):
                check_metric_of(learning, [kernel for kernel, _ in pairs], source)
                for kernel, name in pairs:
                    replace(learning, kernel=kernel, feature_map=name).check_map(source.n_features)
                if self.maps in (None, AUTO):
                    others = [pair for pair in pairs[1:] if pair[1] != _USUAL_MAP]
                    pairs = [pairs[0], *(others or pairs[1:])]
                return learning, pairs
        return options, pairs


def search_job(problem: Problem, parameters: Parameters, **search: Any) -> Job:
    """Return what is known of a search before its rows, with what takes most memory."""
    if not problem.is_squared:
        raise ParameterError(
            "tune chooses by squared errors, and this is another loss; tune without it, and fit "
            "with the kernel, map and scale that were chosen."
        )
    parameters = problem.prepared(parameters)
    solution = {"n_loo_penalties": parameters.penalty.n_loo_penalties}
    options = SearchedFit(parameters, **search).options
    return job_of(parameters, options, None, **solution | parameters.solution_by_passes(options))


def tune(
    problem: Problem,
    parameters: Parameters,
    rows: Any,
    *,
    keep_moments: bool = False,
    **search: Any,
) -> Any:
    """Choose kernel, map and length scale on a sample, and fit with them.

    `search` is `kernels`, `maps`, `budget` and `checkpoint`, and when it was `begun`.
    """
    parameters = problem.prepared(parameters)
    choice, source = SearchedFit(parameters, **search), problem.source(rows, parameters, None)
    moments, with_intervals = choice.moments(source), problem.has_intervals
    ridge = solve(moments, parameters, source, with_intervals=with_intervals)
    model = problem.made(ridge, source, keep_moments=keep_moments)
    if not choice.leaves_time(ridge):
        return model
    # Settings were compared on a sample; of all rows a plain fit may still be better.
    plain = problem.fit(parameters, rows, keep_moments=keep_moments)
    unit = model.ridge.target_unit
    errors = [each.ridge.outcome.cv_rmse / unit for each in (model, plain)]
    if np.mean(errors[0] ** 2) <= np.mean(errors[1] ** 2):
        return model
    report = model.ridge.report
    found = {name: report[name] for name in report if name.startswith(("tuning", "frontier"))}
    outcome = replace(plain.ridge.outcome, searched=True)
    ridge = replace(plain.ridge, report=plain.ridge.report | found, outcome=outcome)
    return ridge if plain.ridge is plain else replace(plain, ridge=ridge)
