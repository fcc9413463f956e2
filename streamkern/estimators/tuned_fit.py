"""From rows to the moments of a kernel, map and metric that were chosen on a sample of them."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from streamkern.errors import DataError, ParameterError
from streamkern.features.metric import standardizer_of
from streamkern.fitting.draw_features import drawn
from streamkern.fitting.planned_fit import check_metric_of, planned_fit
from streamkern.fitting.sum_features import sum_features
from streamkern.fitting.summarize import summarize
from streamkern.kernels import Gaussian, Kernel, Linear
from streamkern.models.data_moments import DataMoments
from streamkern.models.fitted_model import described_kernel
from streamkern.parameters.fit_options import FitOptions, large_sample
from streamkern.parameters.fit_report import with_seconds
from streamkern.parameters.parameters import AUTO, Parameters, first_kernel_of
from streamkern.parameters.plan import plan_here, tell_of_solution
from streamkern.passes.checkpoint_job import checkpointed
from streamkern.passes.column_summary import block_of
from streamkern.passes.fit_context import FitContext
from streamkern.runtime.events import tell_of_job
from streamkern.sources import Source
from streamkern.tune.budget import Budget, Clock, Ledger, direct_seconds
from streamkern.tune.candidates import MetricSettings, kernels_to_try, maps_to_try, pairs_to_try
from streamkern.tune.contenders import contenders_of
from streamkern.tune.finalists import compare
from streamkern.tune.halving import budgeted_rows, search
from streamkern.tune.search_trials import SearchTrials
from streamkern.tune.trials import LEARNT

# Of a search: more are thirds.
_MOST_FOLDS = 10
# What is learnt of metrics in a search within seconds.
_METRIC = "auto:8"
# What a search may take where neither that nor a kernel or map is named; and the map that models
# have by themselves, than which landmarks do better with as many features.
_USUAL_BUDGET, _USUAL_MAP = "1m", "orthogonal"
# What a plain fit is expected to take of the seconds of the one before.
_AGAIN = 1.5
# What a report says of the search.
OF_SEARCH = (
    *("tuning", "tuning_note", "tuning_passes", "tuning_kernels", "tuning_maps", "tuning_budget"),
    "frontier",
)


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


def _trials(rows: FitContext, contenders: Sequence[MetricSettings], **how: Any) -> SearchTrials:
    """Return the trials of contenders, which where rows crowd the folds of the fit guard."""
    some = contenders[0].summary.sample.first(how["n_rows"])
    folds = rows.folds.of(block_of(some))
    crowds = rows.crowding is not None
    are_own = crowds or 2 <= rows.folds.n_folds <= _MOST_FOLDS
    return SearchTrials(contenders, folds=folds if are_own else None, is_guarded=crowds, **how)


class SearchedFit:
    """What a search chooses among, and what it may take, checked before a row is read."""

    def __init__(
        self,
        parameters: Parameters,
        *,
        kernels: Kernel | str | Sequence[Kernel | str] | None,
        maps: str | Sequence[str] | None,
        budget: float | str | None,
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
            if self.budget.in_seconds and checkpoint is not None:
                raise ParameterError(
                    "a search within seconds may choose otherwise when it is made again, so it "
                    "has no checkpoint; give the budget in passes."
                )
        if kernels is None and AUTO in (maps, parameters.feature_map):
            kernels = AUTO if kernel == Gaussian() else None  # as good as that
        self.kernels, self.maps = kernels_to_try(kernels, kernel), maps
        self.options = _search_options(parameters, self.kernels or [kernel], maps)

    def moments(self, source: Source) -> DataMoments:
        """Choose on a sample of the rows, and read them all with what was chosen."""
        tell_of_job("searching", seconds=0.0 if self.budget is None else self.budget.seconds)
        names = maps_to_try(self.maps, self.parameters.feature_map, source.n_features)
        options, tried, allowed, clock = self.options, self.kernels, self.budget, None
        pairs = pairs_to_try(tried, names, options, source)
        if allowed is not None and allowed.in_seconds:
            options, pairs = self._widened(options, pairs, source)
            clock = allowed.clock(self.parameters, options, source, self.begun)
        options = replace(options, kernel=pairs[0][0], feature_map=pairs[0][1])
        options = self.parameters.for_rows(options, source)
        n_rows = large_sample(source.n_features + source.n_targets)
        if allowed is not None and clock is None:
            n_rows = budgeted_rows(source, options, len(pairs), allowed)
        # A map may be made from more rows than are searched on.
        penalty = self.parameters.penalty
        how: Any = {"pairs": pairs, "n_sample": n_rows, "searched": [*tried, *names, str(allowed)]}
        how |= {"n_left_out": penalty.n_left_out} | self.parameters.solution_by_passes(options)
        how |= {"target_range": self.parameters.target_range, "penalty": penalty}
        how |= {"folder": self.checkpoint}
        with checkpointed(planned_fit(source, options, **how)) as planned:
            rows, summary = summarize(planned)
            rows, contenders, learnt = contenders_of(rows, summary, pairs, clock)
            spent = 0.0 if learnt is None else learnt.flops
            ledger = Ledger(allowed, rows.plan, spent, clock)
            trials_of = partial(_trials, rows, options=options, n_rows=n_rows, ledger=ledger)
            if learnt is not None and clock is not None:
                trials = trials_of(self._with_linear(contenders, rows.options))
                D = self.parameters.for_rows(self.options, source).n_components
                found = compare(trials, D, adds=self.is_free)
            else:
                plain = self.parameters.feature_map if self.maps in (None, AUTO) else None
                found = search(trials := trials_of(contenders), plain)
            best, setting = trials.contenders[found.setting.place], found.setting
            in_time = self._in_time(rows.options, source, clock)
            late = "" if clock is None else clock.note
            del trials  # and the rows that it holds
            new: Any = {"kernel": setting.kernel, "feature_map": setting.feature_map}
            new["scale"] = best.scale or rows.options.scale
            is_learnt = learnt is None or bool(learnt.rounds)
            new |= {} if is_learnt and not setting.is_linear else {"metric": None}
            # Of kernels, the search says more.
            options = replace(in_time, **new)
            tell_of_solution(source, options, rows.plan, how)  # what comes before, nobody can say
            chosen = replace(rows, options=options).told(scale=new["scale"], kernel_errors={})
            moments = sum_features(chosen, drawn(chosen, best.summary))
        report = with_seconds(moments.report, search=found.seconds) | found.as_dict()
        report |= {
            "tuning_kernels": list(map(described_kernel, tried)),
            "tuning_maps": names,
            "tuning_note": " ".join(filter(None, [found.note, late])),
            "tuning_budget": None if self.budget is None else str(self.budget),
        }
        if learnt is not None and (setting.is_linear or not is_learnt):
            report = with_seconds(report, metric=learnt.seconds)
        elif learnt is not None:
            # Of several metrics, the first that was learnt.
            places = sorted(best.parts, key=lambda i: contenders[i].metric != LEARNT)
            report = learnt.reported(report, (*places, setting.place)[0])
        return replace(moments, report=report, search_note=report["tuning_note"])

    def leaves_time(self, ridge: Any) -> bool:
        """Say whether a plain fit of all rows can be made, too, where something else was chosen."""
        if not (self.is_free and self.budget is not None and self.budget.in_seconds):
            return False
        linear, moments = standardizer_of(ridge.feature_map).linear, ridge.moments
        has_metric = moments.options.metric is not None or linear is not None
        is_plain = not has_metric and moments.options.feature_map == _USUAL_MAP
        is_plain |= bool(moments.crowding_note)  # whose folds say nothing of neighbours
        seconds, parts = ridge.seconds, ("scale", "columns", "pass", "solve")
        again = _AGAIN * sum(seconds.get(part, 0.0) for part in parts)
        left = self.begun + self.budget.amount - time.perf_counter()
        return not is_plain and ridge.settled.cv_rmse is not None and again < left

    def _in_time(self, options: FitOptions, source: Source, clock: Clock | None) -> FitOptions:
        """Return options with D halved while a fit, at the speed of trials, ends too late."""
        D: Any = self.parameters.n_components
        if clock is None or D == AUTO:
            return options
        while options.n_components > D:
            plan = plan_here(source, options, **self.parameters.solution_by_passes(options))
            seconds = clock.slowness * direct_seconds(plan, self.parameters, options)
            if plan.solves_by_passes or seconds <= clock.until_end:
                break
            options = replace(options, n_components=options.n_components // 2)
        return options

    def _with_linear(
        self, contenders: Sequence[MetricSettings], options: FitOptions
    ) -> Sequence[MetricSettings]:
        """Return contenders, with linear ridge on inputs in the usual scale if that can be fitted.

        It is far ahead where a few values lie far out along a straight line.
        """
        found = list(contenders)
        place = next((i for i, each in enumerate(found) if not each.pairs), -1)
        plain = found[place]
        p, scale = len(plain.summary.standardizer.columns), plain.scale or options.scale
        # The plan is of kernels' features, which are more.
        suits = p <= options.n_components and self.parameters.sparse is None
        if not (self.is_free and suits):
            return contenders
        kernel, name = linear = Linear(), "identity"
        try:
            replace(options, kernel=kernel, feature_map=name, scale=scale, metric=None)
        except ParameterError:  # of integers, of phases, of a bounded scale
            return contenders
        found[place] = plain._replace(pairs=[*plain.pairs, linear])
        return found

    def _widened(
        self, options: FitOptions, pairs: list[Any], source: Source
    ) -> tuple[FitOptions, list[Any]]:
        """Return options with more features, a scale and a metric that are chosen, and their pairs.

        That is what seconds are for; passes are spent on kernels, maps and length scales alone.
        A metric is learnt if all kernels and maps have one; of automatic maps at landmarks, and
        with the first pair.
        """
        if self.parameters.n_components != AUTO and not self.parameters.penalty.n_left_out:
            D = self.budget.components(self.parameters, options, source)
            options = replace(options, n_components=D)
        if source.sparse_row_bytes:
            return options, pairs
        if self.parameters.scale_is_open:
            options = replace(options, scale="auto")
        # As a fit would choose it, for the contender that is one.
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
