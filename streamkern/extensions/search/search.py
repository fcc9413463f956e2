"""A search: settings, their errors on folds of the sample, and what is best."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from streamkern._typing import Array
from streamkern.choice.cross_validated_fit import N_FOLDS, CrossValidatedFit, Result, fit_bytes
from streamkern.choice.time_limit import TimeLimit
from streamkern.engine.scheduler import scatter
from streamkern.extensions.search.budget import Clock, run_in_time
from streamkern.extensions.search.settings import ERROR, MetricSettings, Setting, by_error, tiers
from streamkern.parameters.cost_estimate import fit_flops, solve_flops
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.plan import Plan
from streamkern.runtime.events import tell_of_job
from streamkern.runtime.threads import blas_threads
from streamkern.statistics import dtype_of_features

# Fewer length scales than these have edges that say nothing: rounds of a metric tried others.
_FEWEST_TRIED = 3


class Search:
    """Settings that are tried on the sample of a column pass, and what came of them."""

    def __init__(
        self,
        metrics: Sequence[MetricSettings],
        n_rows: int,
        options: FitOptions,
        plan: Plan,
        *,
        clock: Clock | None = None,
        folds: Array | None = None,
        is_guarded: bool = False,
    ) -> None:
        # Small fits have rows in the metric already.
        self.options = replace(options, metric=None)
        self.clock: Any = clock
        self.plan, self._begun = plan, perf_counter()
        self.is_guarded = is_guarded  # by the folds, as a fit is
        self.metrics: list[MetricSettings] = []
        self.settings: list[Setting] = []  # at their own length scales
        self.tried: list[Result] = []
        self.best: Any = None  # of these
        self._fewest = 1  # trials that are made whatever they take
        self._rows: list[Any] = []  # in every metric, where the tasks run
        # What maps of a setting are drawn from, by their number of features.
        self._landmarks: dict[tuple[int, int], Any] = {}
        first = metrics[0].summary
        targets = first.targets[:n_rows]
        self.n_rows, self._n_inputs = len(targets), len(first.standardizer.columns)
        self._targets, self._folds = scatter(targets), folds
        self._weights = scatter(None if first.weights is None else first.weights[:n_rows])
        for each in metrics:
            self.add(each)

    def add(self, metric: MetricSettings) -> list[Setting]:
        """Add a metric, and return its settings."""
        summary, n_rows, before = metric.summary, self.n_rows, len(self.settings)
        with blas_threads(1):  # the turned rows are part of the result
            rows = summary.standardizer(summary.sample.X[:n_rows])
        weights = None if summary.weights is None else summary.weights[:n_rows]
        columns, place = summary.standardizer.outputs, len(self.metrics)
        for kernel, family in metric.pairs:
            own = tried = kernel
            if family != "identity":
                own = kernel.resolved(rows, columns, weights)
                tried = own.restricted(columns)
            number = len(self.settings)
            self.settings.append(Setting(number, place, own, tried, family, metric.name))
        self.metrics.append(metric)
        self._rows.append(scatter(rows.astype(dtype_of_features(self.options.precision))))
        return self.settings[before:]

    @property
    def seconds(self) -> float:
        return perf_counter() - self._begun

    @property
    def n_folds(self) -> int:
        return N_FOLDS if self._folds is None else len(np.unique(self._folds))

    def ranked(
        self, tried: Sequence[Result], among: Any = None, default: Setting | None = None
    ) -> list[list[Setting]]:
        """Note results and the best of some or all, and return the tiers of their settings.

        A default stays the best unless others beat it.
        """
        self.tried += tried
        tried = tried if among is None else among
        plain = [each for each in tried if each.setting == default]
        better = [each for each in tried if plain and each.beats(plain[0])]
        self.best = min(better or plain or tried, key=ERROR, default=self.best)
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
        """Try settings, as many as the share of the seconds is enough for, or the fewest.

        Those of the last rung have the folds of the fit.
        """
        make = partial(self.try_all, n_components=n_components, last=last)
        how: Any = {"fewest": self._fewest, "kind": (n_components, last)}
        tried = run_in_time(self.clock, settings, share, make, **how)
        return tried if len(tried) >= fewest else []

    def try_all(
        self, limit: TimeLimit, settings: Sequence[Setting], n_components: int, *, last: bool
    ) -> list[Result]:
        """Try settings within the time of each, and return what came of the first ones that end."""
        own = last or self.is_guarded or self.options.fold_column is not None
        folds, n_folds = (self._folds, self.n_folds) if own else (None, N_FOLDS)
        plan, itemsize = self.plan, dtype_of_features(self.options.precision).itemsize
        a_fit = fit_bytes(self.n_rows, plan.n_features, n_components, itemsize, n_folds)
        at_once = max(min(plan.allowed_bytes // a_fit, plan.n_threads), 1)
        others, calls = (self._targets, self._weights, scatter(folds), self.is_guarded), list[Any]()
        fits = {one.number: self._fit(one, n_components) for one in settings}
        self._find_landmarks(fits, n_components, limit, at_once)
        for one in settings:
            fit, landmarks = fits[one.number], self._landmarks.get((one.number, n_components))
            name = f"try-{one.feature_map}-{one.tried.name}-{fit.n_components}"
            call = fit.cross_validated, one.stretched(one.tried), self._rows[one.place]
            calls.append((name, *call, *others, landmarks))
        results = limit.compute_all(calls, at_once)
        made = [each._replace(setting=s) for each, s in zip(results, settings, strict=False)]
        self._fewest = 0 if made else self._fewest
        if last and self.clock is not None:
            self.clock.measure(made, plan)
        for each in made:
            _, name, kernel = each.setting.names
            tried = f"{name}, {kernel}, {each.n_components} components"
            tell_of_job("tried", setting=tried, error=float(np.sqrt(each.relative_mse)))
        return made

    def _fit(self, setting: Setting, n_components: int) -> CrossValidatedFit:
        own = replace(self.options, kernel=setting.tried, feature_map=setting.feature_map)
        return CrossValidatedFit(
            own, self._n_inputs if own.is_identity else n_components, self.n_rows
        )

    def _find_landmarks(
        self, fits: dict[int, CrossValidatedFit], n_components: int, limit: TimeLimit, at_once: int
    ) -> None:
        """Find landmarks of settings that have none yet, once for all length scales."""
        wanted = {}
        for number, fit in fits.items():
            place, one = (number, n_components), self.settings[number]
            if fit.options.family.rows_a_feature and place not in self._landmarks:
                rows = self._rows[one.place]
                wanted[place] = "landmarks", fit.found_landmarks, one.tried, rows, self._weights
        made = limit.compute_all([*wanted.values()], at_once) if wanted else []
        self._landmarks.update(zip(wanted, map(scatter, made), strict=False))

    def report(self) -> FitReport:
        return {
            "tuning": [_facts_of(each) for each in self.tried],
            "tuning_note": _note_of(self.best, self.tried),
            "frontier": configurations(self.tried, self.best, self.plan, self.options.n_folds),
        }


def _facts_of(tried: Result) -> dict[str, Any]:
    """Return a result as plain JSON values."""
    setting, numbers = tried.setting, ("relative_mse", "standard_error", "alpha", "n_folds")
    names = dict(zip(("metric", "feature_map", "kernel"), setting.names, strict=True))
    scale = None if setting.is_linear else tried.kernel.length_scale
    sizes = {"n_rows": tried.n_rows, "n_components": tried.n_components}
    facts = names | {"length_scale": np.asarray(scale).tolist()} | sizes
    return facts | {name: getattr(tried, name) for name in numbers}


def _note_of(best: Result, tried: Sequence[Result]) -> str:
    """Return one sentence where the chosen length scale is the shortest or longest tried, or ''."""
    if best.setting.is_linear:
        return ""
    mine = [each for each in tried if each.setting.names == best.setting.names]
    # Of several length scales, the first: all are multiplied alike.
    scales = [float(np.atleast_1d(each.kernel.length_scale)[0]) for each in mine]
    chosen = float(np.atleast_1d(best.kernel.length_scale)[0])
    if min(scales) < chosen < max(scales) or len(scales) < _FEWEST_TRIED:
        return ""
    return (
        f"the best length scale, {chosen:.4g}, is at the edge of those tried; search again "
        f"about it with length_scale {chosen:.4g}."
    )


def configurations(
    tried: Sequence[Result], chosen: Result, plan: Plan, n_folds: int
) -> list[dict[str, Any]]:
    """Return what was tried at the best length scale of each, the cheapest first, for JSON.

    Passes and seconds, on all threads, are those of a fit to all rows.
    """
    several = *reversed(by_error(tried)), chosen
    best = {(*each.setting.names, each.n_components): each for each in several}
    found = []
    for each in best.values():
        D, facts = each.n_components, _facts_of(each)
        for name in ("n_rows", "alpha", "n_folds"):
            del facts[name]
        solving = solve_flops(D, n_folds) / solve_flops(D, each.n_folds)
        shared = each.cost.sums * plan.n_rows / each.n_rows + each.cost.errors * solving
        facts["passes"] = fit_flops(plan.n_rows, plan.n_features, D, n_folds) / plan.flops
        facts["seconds"] = each.cost.drawing + shared / plan.n_slots
        found.append(facts | {"is_best": False, "is_chosen": each is chosen})
    found.sort(key=lambda each: (each["seconds"], each["relative_mse"]))
    least = np.inf
    for facts in found:  # the best are those that nothing cheaper is as good as
        facts["is_best"] = facts["relative_mse"] < least
        least = min(least, facts["relative_mse"])
    return found
