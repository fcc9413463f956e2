"""The trials of a search: as many as its budget pays for, and their best."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from streamkern._typing import Array
from streamkern.engine.scheduler import scatter
from streamkern.parameters.fit_options import FitOptions
from streamkern.runtime.events import tell_of_job
from streamkern.runtime.threads import blas_threads
from streamkern.statistics import dtype_of_features
from streamkern.tune.budget import Ledger, run_in_time
from streamkern.tune.candidates import MetricSettings, ScaledSetting, Setting, beyond, sober, tiers
from streamkern.tune.search_result import Search, configurations
from streamkern.tune.time_limit import TimeLimit
from streamkern.tune.trials import N_FOLDS, Result, Trial, trial_bytes


class SearchTrials:
    """The trials of a search: those that were made, and how more are."""

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
        self.attempts: list[Result] = []
        self.settings: list[Setting] = []
        self._rows: list[Any] = []  # of every contender, in its metric, where the tasks run
        # What maps of an arm are drawn from, by their number of features.
        self._chosen: dict[tuple[int, int], Any] = {}
        first = contenders[0].summary
        targets = first.targets[:n_rows]
        self.n_rows, self._n_inputs = len(targets), len(first.standardizer.columns)
        self._targets, self._folds = scatter(targets), folds
        self._weights = scatter(None if first.weights is None else first.weights[:n_rows])
        for contender in contenders:
            self.add(contender)
        self._winner: tuple[ScaledSetting, Result] | None = None

    def add(self, contender: MetricSettings) -> int:
        """Add a contender, and return the number of its first arm."""
        summary, n_rows, before = contender.summary, self.n_rows, len(self.settings)
        with blas_threads(1):  # the turned rows are part of the result
            rows = summary.standardizer(summary.sample.X[:n_rows])
        weights = None if summary.weights is None else summary.weights[:n_rows]
        columns, place = summary.standardizer.outputs, len(self.contenders)
        for kernel, feature_map in contender.pairs:
            setting = Setting(kernel, kernel, feature_map, contender.metric, place)
            if not setting.is_linear:
                resolved = kernel.resolved(rows, columns, weights)
                setting = setting._replace(kernel=resolved, tried=resolved.restricted(columns))
            self.settings.append(setting)
        self.contenders.append(contender)
        self._rows.append(scatter(rows.astype(dtype_of_features(self.options.precision))))
        return before

    @property
    def n_folds(self) -> int:
        return N_FOLDS if self._folds is None else len(np.unique(self._folds))

    def of_first_rung(
        self,
        candidates: Sequence[ScaledSetting],
        finer: Sequence[ScaledSetting],
        n_components: int,
        share: float,
    ) -> list[list[ScaledSetting]]:
        """Try candidates, those beyond them while the last do as well as any, and finer ones."""
        done, tried = list(candidates), self.try_some(candidates, n_components, share)
        more = done
        while more and len(tried) == len(done):
            more = beyond(done, tried)
            tried += self.try_some(more, n_components, share)
            done += more
        if len(tried) == len(done):
            tried += self.try_some(finer, n_components, share)
        return self.ranked([*done, *finer], tried, first=True)

    def of_last_rung(
        self, candidates: Sequence[ScaledSetting], default: ScaledSetting, n_components: int
    ) -> None:
        """Compare candidates and a default, if there are several, on the folds of the fit."""
        others = [
            one
            for one in candidates
            if one.setting != default.setting or not np.isclose(one.factor, 1.0)
        ]
        if others:
            several = [others[0], default, *others[1:]]
            self.ranked(several, self.try_some(several, n_components, 1.0, last=True, fewest=2))

    def ranked(
        self,
        candidates: Sequence[ScaledSetting],
        tried: Sequence[Result],
        *,
        first: bool = False,
        default: int | None = None,
    ) -> list[list[ScaledSetting]]:
        """Note attempts at the first of some candidates, and return the tiers of these.

        A default, by its place, stays unless others beat it.
        """
        if not tried:
            return []
        self.attempts += tried
        scores = [attempt.relative_mse for attempt in tried]
        if first:
            scores = sober(candidates[: len(tried)], tried)
        eligible: Sequence[int] = range(len(tried))
        if default is not None:
            better = [i for i, attempt in enumerate(tried) if attempt.beats(tried[default])]
            eligible = better or [default]
        best = min(eligible, key=scores.__getitem__)
        self._winner = candidates[best], tried[best]
        return tiers(self.settings, candidates[: len(tried)], scores)

    def try_some(
        self,
        candidates: Sequence[ScaledSetting],
        n_components: int,
        share: float,
        *,
        last: bool = False,
        fewest: int = 1,
    ) -> list[Result]:
        """Try candidates, as many as the share of the budget pays for, or fewer than the fewest.

        Those of the last rung have the folds of the fit.
        """
        ledger, n_folds = self.ledger, self.n_folds if last else N_FOLDS
        n = ledger.affordable(len(candidates), self.n_rows, n_components, share, n_folds)
        if n < max(fewest, 1):
            return []
        make = partial(self.try_all, n_components=n_components, last=last)
        tried = run_in_time(ledger.clock, candidates[:n], share, make, fewest=ledger.fewest)
        return tried if len(tried) >= fewest else []

    def try_all(
        self,
        limit: TimeLimit,
        candidates: Sequence[ScaledSetting],
        n_components: int,
        *,
        last: bool,
    ) -> list[Result]:
        """Try candidates within the time of each, and return the first ones that end."""
        own = last or self.is_guarded or self.options.fold_column is not None
        folds, n_folds = (self._folds, self.n_folds) if own else (None, N_FOLDS)
        plan, calls, sent = self.ledger.plan, list[Any](), scatter(folds)
        trials = {setting: self._trial(setting, n_components) for setting, _ in candidates}
        itemsize = dtype_of_features(self.options.precision).itemsize
        a_trial = trial_bytes(self.n_rows, plan.n_features, n_components, itemsize, n_folds)
        at_once = max(min(plan.allowed_bytes // a_trial, plan.n_threads), 1)
        self._choose(trials, limit, at_once)
        for setting, factor in candidates:
            trial = trials[setting]
            name = f"try-{trial.options.feature_map}-{trial.kernel.name}-{trial.n_components}"
            sample = self._rows[self.settings[setting].place], self._targets, factor, self._weights
            calls.append(
                (name, trial, *sample, sent, self._chosen.get((setting, trial.n_components)))
            )
        made = limit.compute_all(calls, at_once)
        self.ledger.pay(made)
        if last:
            self.ledger.measure(made)
        for attempt in made:
            tried = f"{attempt.feature_map}, {attempt.kernel}, {attempt.n_components} components"
            tell_of_job("tried", setting=tried, error=float(np.sqrt(attempt.relative_mse)))
        return made

    def _trial(self, setting: int, n_components: int) -> Trial:
        _, kernel, family, metric, _ = self.settings[setting]
        own = replace(self.options, kernel=kernel, feature_map=family)
        D = self._n_inputs if own.is_identity else n_components
        return Trial(own, D, metric, is_guarded=self.is_guarded)

    def _choose(self, trials: dict[int, Trial], limit: TimeLimit, at_once: int) -> None:
        """Choose landmarks of settings that have none yet, once for all length scales."""
        wanted = {
            (setting, trial.n_components): ("landmarks", trial.chosen, rows, self._weights)
            for setting, trial in trials.items()
            for rows in [self._rows[self.settings[setting].place]]
            if trial.options.family.rows_a_feature
            and (setting, trial.n_components) not in self._chosen
        }
        made = limit.compute_all([*wanted.values()], at_once) if wanted else []
        self._chosen.update(zip(wanted, map(scatter, made), strict=False))

    def found(self) -> Search:
        assert self._winner is not None  # noqa: S101  a trial is always paid
        (number, factor), chosen = self._winner
        setting = self.settings[number]
        if not setting.is_linear:
            kernel, tried = setting.kernel.stretched(factor), setting.tried.stretched(factor)
            setting = setting._replace(kernel=kernel, tried=tried)
        ledger, n_folds = self.ledger, self.options.n_folds
        tried_sizes = configurations(self.attempts, chosen, ledger.plan, n_folds)
        return Search(setting, self.attempts, tried_sizes, ledger.passes, ledger.seconds)
