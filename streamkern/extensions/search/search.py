"""A search: the trials that its budget pays for, their best, and error against cost of all."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from streamkern._typing import Array
from streamkern.choice.time_limit import TimeLimit
from streamkern.choice.trials import N_FOLDS, Result, Trial, trial_bytes
from streamkern.engine.scheduler import scatter
from streamkern.extensions.search.budget import Ledger, run_in_time
from streamkern.extensions.search.settings import (
    ERROR,
    MetricSettings,
    Setting,
    beyond,
    by_error,
    sober,
    tiers,
)
from streamkern.parameters.cost_estimate import fit_flops, solve_flops
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.job_plan import Plan
from streamkern.runtime.events import tell_of_job
from streamkern.runtime.threads import blas_threads
from streamkern.statistics import dtype_of_features

# Fewer length scales than these have edges that say nothing: rounds of a metric tried others.
_FEWEST_TRIED = 3
# What a result says of its trial alone.
_OF_TRIAL = ("n_rows", "alpha", "n_folds")


class Search:
    """Settings that are tried on the sample of a column pass, and what came of them."""

    def __init__(
        self,
        contenders: Sequence[MetricSettings],
        n_rows: int,
        options: FitOptions,
        ledger: Ledger,
        folds: Array | None,
        *,
        is_guarded: bool = False,
    ) -> None:
        # Trials have rows in the metric already.
        self.options = replace(options, metric=None)
        self.ledger, self.is_guarded = ledger, is_guarded  # by the folds, as a fit is
        self.contenders: list[MetricSettings] = []
        self.settings: list[Setting] = []  # at their own length scales
        self.tried: list[Result] = []
        self.best: Any = None  # of these
        self._rows: list[Any] = []  # of every contender, in its metric, where the tasks run
        # What maps of a setting are drawn from, by their number of features.
        self._chosen: dict[tuple[int, int], Any] = {}
        first = contenders[0].summary
        targets = first.targets[:n_rows]
        self.n_rows, self._n_inputs = len(targets), len(first.standardizer.columns)
        self._targets, self._folds = scatter(targets), folds
        self._weights = scatter(None if first.weights is None else first.weights[:n_rows])
        for contender in contenders:
            self.add(contender)

    def add(self, contender: MetricSettings) -> list[Setting]:
        """Add a contender, and return its settings."""
        summary, n_rows, before = contender.summary, self.n_rows, len(self.settings)
        with blas_threads(1):  # the turned rows are part of the result
            rows = summary.standardizer(summary.sample.X[:n_rows])
        weights = None if summary.weights is None else summary.weights[:n_rows]
        columns, place = summary.standardizer.outputs, len(self.contenders)
        for kernel, family in contender.pairs:
            own = tried = kernel
            if family != "identity":
                own = kernel.resolved(rows, columns, weights)
                tried = own.restricted(columns)
            number = len(self.settings)
            self.settings.append(Setting(number, place, own, tried, family, contender.metric))
        self.contenders.append(contender)
        self._rows.append(scatter(rows.astype(dtype_of_features(self.options.precision))))
        return self.settings[before:]

    @property
    def n_folds(self) -> int:
        return N_FOLDS if self._folds is None else len(np.unique(self._folds))

    def first_rung(
        self, settings: Sequence[Setting], finer: Sequence[Setting], n_components: int, share: float
    ) -> list[list[Setting]]:
        """Try settings, those beyond them while the last do as well as any, and finer ones."""
        tried, more = list[Result](), settings
        while more:
            tried += (made := self.try_some(more, n_components, share))
            if len(made) < len(more):
                return self.ranked(tried, first=True)
            more = beyond(tried)
        tried += self.try_some(finer, n_components, share)
        return self.ranked(tried, first=True)

    def last_rung(self, settings: Sequence[Setting], default: Setting, n_components: int) -> None:
        """Compare settings and a default, if there are several, on the folds of the fit."""
        others = [
            one
            for one in settings
            if one.number != default.number or not np.isclose(one.factor, 1.0)
        ]
        if others:
            several = [others[0], default, *others[1:]]
            self.ranked(self.try_some(several, n_components, 1.0, last=True, fewest=2))

    def ranked(
        self, tried: Sequence[Result], *, first: bool = False, default: Setting | None = None
    ) -> list[list[Setting]]:
        """Note results and the best of them, and return the tiers of their settings.

        A default stays the best unless others beat it.
        """
        if not tried:
            return []
        self.tried += tried
        tried = sober(tried) if first else tried
        plain = [each for each in tried if each.setting == default]
        better = [each for each in tried if plain and each.beats(plain[0])]
        self.best = min(better or plain or tried, key=ERROR)
        return tiers(tried)

    def try_some(
        self,
        settings: Sequence[Setting],
        n_components: int,
        share: float = 1.0,
        *,
        last: bool = False,
        fewest: int = 1,
    ) -> list[Result]:
        """Try settings, as many as the share of the budget pays for, or fewer than the fewest.

        Those of the last rung have the folds of the fit.
        """
        ledger, n_folds = self.ledger, self.n_folds if last else N_FOLDS
        n = ledger.affordable(len(settings), self.n_rows, n_components, share, n_folds)
        if n < max(fewest, 1):
            return []
        make = partial(self.try_all, n_components=n_components, last=last)
        tried = run_in_time(ledger.clock, settings[:n], share, make, fewest=ledger.fewest)
        return tried if len(tried) >= fewest else []

    def try_all(
        self, limit: TimeLimit, settings: Sequence[Setting], n_components: int, *, last: bool
    ) -> list[Result]:
        """Try settings within the time of each, and return what came of the first ones that end."""
        own = last or self.is_guarded or self.options.fold_column is not None
        folds, n_folds = (self._folds, self.n_folds) if own else (None, N_FOLDS)
        plan, calls, sent = self.ledger.plan, list[Any](), scatter(folds)
        trials = {one.number: self._trial(one, n_components) for one in settings}
        itemsize = dtype_of_features(self.options.precision).itemsize
        a_trial = trial_bytes(self.n_rows, plan.n_features, n_components, itemsize, n_folds)
        at_once = max(min(plan.allowed_bytes // a_trial, plan.n_threads), 1)
        self._choose(trials, limit, at_once)
        for one in settings:
            trial = trials[one.number]
            name = f"try-{one.feature_map}-{trial.kernel.name}-{trial.n_components}"
            sample = self._rows[one.place], self._targets, one.factor, self._weights
            chosen = self._chosen.get((one.number, trial.n_components))
            calls.append((name, trial, *sample, sent, chosen))
        results = limit.compute_all(calls, at_once)
        made = [replace(each, setting=s) for each, s in zip(results, settings, strict=False)]
        self.ledger.pay(made)
        if last:
            self.ledger.measure(made)
        for each in made:
            tried = f"{each.feature_map}, {each.kernel}, {each.n_components} components"
            tell_of_job("tried", setting=tried, error=float(np.sqrt(each.relative_mse)))
        return made

    def _trial(self, setting: Setting, n_components: int) -> Trial:
        own = replace(self.options, kernel=setting.tried, feature_map=setting.feature_map)
        D = self._n_inputs if own.is_identity else n_components
        return Trial(own, D, setting.metric, is_guarded=self.is_guarded)

    def _choose(self, trials: dict[int, Trial], limit: TimeLimit, at_once: int) -> None:
        """Choose landmarks of settings that have none yet, once for all length scales."""
        wanted = {
            (number, trial.n_components): ("landmarks", trial.chosen, rows, self._weights)
            for number, trial in trials.items()
            for rows in [self._rows[self.settings[number].place]]
            if trial.options.family.rows_a_feature
            and (number, trial.n_components) not in self._chosen
        }
        made = limit.compute_all([*wanted.values()], at_once) if wanted else []
        self._chosen.update(zip(wanted, map(scatter, made), strict=False))

    def report(self) -> FitReport:
        ledger = self.ledger
        return {
            "tuning": [each.as_dict() for each in self.tried],
            "tuning_note": _note_of(self.best, self.tried),
            "tuning_passes": ledger.passes,
            "frontier": configurations(self.tried, self.best, ledger.plan, self.options.n_folds),
        }


def _note_of(best: Result, tried: Sequence[Result]) -> str:
    """Return one sentence where the chosen length scale is the shortest or longest tried, or ''."""
    if best.setting.is_linear:
        return ""
    name = best.metric, best.feature_map, best.kernel
    mine = [each for each in tried if (each.metric, each.feature_map, each.kernel) == name]
    # Of several length scales, the first: all are multiplied alike.
    scales = [float(np.atleast_1d(each.length_scale)[0]) for each in mine]
    chosen = float(np.atleast_1d(best.length_scale)[0])
    if min(scales) < chosen < max(scales) or len(scales) < _FEWEST_TRIED:
        return ""
    return (
        f"the best length scale, {chosen:.4g}, is at the edge of those tried; search again "
        f"about it with length_scale {chosen:.4g}."
    )


def configurations(
    tried: Sequence[Result], chosen: Result, plan: Plan, n_folds: int
) -> list[dict[str, Any]]:
    """Return what was tried at the best length scale of each, the cheapest first, for JSON."""
    best = {
        (each.metric, each.feature_map, each.kernel, each.n_components): each
        for each in (*reversed(by_error(tried)), chosen)
    }
    found = [_configuration(each, each is chosen, plan, n_folds) for each in best.values()]
    found.sort(key=lambda each: (each["seconds"], each["relative_mse"]))
    least = np.inf
    for each in found:  # the best are those that nothing cheaper is as good as
        each["is_best"] = each["relative_mse"] < least
        least = min(least, each["relative_mse"])
    return found


def _configuration(tried: Result, is_chosen: bool, plan: Plan, n_folds: int) -> dict[str, Any]:
    """Return a result with the passes and seconds, on all threads, of a fit to all rows."""
    D, cost, facts = tried.n_components, tried.cost, tried.as_dict()
    solving = solve_flops(D, n_folds) / solve_flops(D, tried.n_folds)
    shared = cost.sums * plan.n_rows / tried.n_rows + cost.errors * solving
    return {name: facts[name] for name in facts if name not in _OF_TRIAL} | {
        "passes": fit_flops(plan.n_rows, plan.n_features, D, n_folds) / plan.flops,
        "seconds": cost.drawing + shared / plan.n_slots,
        "is_best": False,
        "is_chosen": is_chosen,
    }
