"""Learning the metric of a kernel on a sample of the rows, before the pass that fits.

The average gradient outer product of a fitted function says which directions of the inputs it
changes along.  Taken for the metric of the kernel, it makes those directions count, and the next
function fits better; so a few rounds of fit, gradients and new metric follow each other.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkern.choice.held_out_trial import Sample
from streamkern.choice.sample_choice import in_given_metric
from streamkern.choice.time_limit import OutOfTimeError
from streamkern.choice.trials import ISOTROPIC, LEARNT
from streamkern.extensions.search.budget import LEARNING, Clock
from streamkern.extensions.search.metric_beginnings import Pair, screening_round, start_of_rounds
from streamkern.extensions.search.metric_rounds import Round, rounds_of
from streamkern.extensions.search.settings import MetricSettings
from streamkern.features.metric import GivenMetric
from streamkern.parameters.fit_options import FitOptions, large_sample
from streamkern.parameters.fit_report import FitReport, with_seconds
from streamkern.parameters.job_plan import Plan
from streamkern.passes.column_summary import ColumnSummary
from streamkern.runtime.events import tell_of_job
from streamkern.runtime.threads import blas_threads

# Features of the models whose gradients are averaged, where a fit has more; and more of them where
# there are so many seconds.
_COMPONENTS, _MORE_COMPONENTS, _MORE_SECONDS = 1024, 2048, 60.0
# Of several beginnings, how many go on.
_GO_ON = 2
# Rows of which rounds take so long that in a search within seconds there are rather more of them.
_MANY_ROWS = 5000
# What a round takes of the last, where it has twice the rows or features, or both.
_GROWTH = 4.0


@dataclass(frozen=True)
class LearntMetric:
    """What the rounds of every kernel and map led to, one after the other, if there was time."""

    rounds: tuple[dict[str, Any], ...]
    # The best rounds of every map, and of plain distances, by their places; the best first.
    contenders: dict[int, MetricSettings]
    flops: float
    seconds: float
    place: int | None = 0  # of the contender that is fitted, None of one that has no metric

    def reported(self, report: FitReport) -> FitReport:
        """Return the report of moments with how the metric was learnt, and which round was kept."""
        report = with_seconds(report, metric=self.seconds)
        if self.place is None or not self.rounds:
            return report
        kept = list(self.contenders)
        plain = next(i for i in kept if self.rounds[i]["number"] == 0)  # of a plain fit, too
        own = kept[self.place] if self.place < len(kept) else plain
        metric = (report["metric"] or {}) | {"rounds": list(self.rounds), "kept": own}
        learnt: FitReport = {"metric": metric}
        return report | learnt


def in_metric(
    summary: ColumnSummary,
    options: FitOptions,
    pairs: Sequence[Pair],
    plan: Plan,
    clock: Clock | None = None,
) -> tuple[list[MetricSettings], LearntMetric | None]:
    """Return the column pass in the metric of the options, of several the best first.

    By a clock, rounds begin while there is time; then each pair has its best round among the
    contenders, and there are none without time for a first round.
    """
    metric = options.metric
    if metric is None:
        return [MetricSettings(ISOTROPIC, summary, pairs)], None
    if isinstance(metric, GivenMetric):
        return [MetricSettings(metric.name, in_given_metric(summary, metric), pairs)], None
    begun = time.perf_counter()
    with blas_threads(1):  # roots are part of the result
        try:
            learnt = learnt_metric(summary, options, pairs, plan, clock)
        except OutOfTimeError:
            learnt = LearntMetric((), {}, 0.0, time.perf_counter() - begun)
        return list(learnt.contenders.values()), learnt


def best_metric(
    summary: ColumnSummary, options: FitOptions, plan: Plan
) -> tuple[Any, ColumnSummary, LearntMetric | None]:
    """Return the kernel and the column pass of the best metric, and how it was learnt."""
    pairs = [(options.kernel, options.feature_map)]
    (best, *_), learnt = in_metric(summary, options, pairs, plan)
    return best.pairs[0][0], best.summary, learnt


def learnt_metric(
    summary: ColumnSummary,
    options: FitOptions,
    pairs: Sequence[Pair],
    plan: Plan,
    clock: Clock | None,
) -> LearntMetric:
    """Learn a metric for each of some kernels and maps, and return those that predict best.

    Two kernels of every map have a first metric, and two kernels that have one weight an input, or
    by a clock any, begin with weights by descent as well; the best two of all these go on.
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), "Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models".
    """
    begun = time.perf_counter()
    has_time = clock is not None and clock.left(LEARNING) > _MORE_SECONDS
    most = min(options.n_components, _MORE_COMPONENTS if has_time else _COMPONENTS)
    options = replace(options, n_components=min(options.n_components, _COMPONENTS))
    n_rows = large_sample(summary.standardizer.n_features + summary.sample.y.shape[1])
    sample = Sample.of(summary, n_rows, clock)
    kept, flops = screening_round(sample, summary.standardizer, options, pairs)
    start = start_of_rounds(sample, summary, options, kept, usual=pairs[0], plan=plan)
    beginnings, trial, weighing = start
    how: Any = {"most_components": most, "n_rows": trial.n_rows}
    how["most_bracketed"] = len(sample.rows) if clock is None else _MANY_ROWS
    several = list[_RoundsSoFar]()
    for (kernel, name), of_inputs, n_first in beginnings:
        mine = replace(options, feature_map=name, n_components=trial.n_components)
        rounds = rounds_of(sample, summary.standardizer, mine, kernel, weights=of_inputs, **how)
        one = _RoundsSoFar(rounds, several[-1].seconds if several else 0.0)
        for number in range(n_first):  # that of the first is made whatever time is left
            one.go_on(clock if number or several else None)
        if one.rounds:
            several.append(one)
        if not several:
            raise OutOfTimeError
    found = [each.rounds for each in several]
    least = [min(one.best.relative_mse for one in rounds) for rounds in found]
    for i in np.argsort(least, kind="stable")[:_GO_ON].tolist():
        while several[i].go_on(clock):
            pass
    every = [each for rounds in found for each in rounds]
    contenders = {}
    for place in _best(every) if clock is None else _best_of_each(found):
        each = every[place]
        linear = each.standardizer.linear
        name, pair = ISOTROPIC if linear is None else LEARNT, (each.best.kernel, each.feature_map)
        contenders[place] = MetricSettings(name, summary.in_metric(linear), [pair])
    flops += weighing + sum(each.flops for each in every)
    seconds = time.perf_counter() - begun
    return LearntMetric(tuple(each.as_dict() for each in every), contenders, flops, seconds)


class _RoundsSoFar:
    """The rounds of one beginning, as far as they went."""

    def __init__(self, more: Iterator[Round], seconds: float) -> None:
        self._more, self.rounds = more, list[Round]()
        self.seconds = seconds  # of the last, or at first of another beginning's

    def go_on(self, clock: Clock | None = None) -> bool:
        """Make one more round, unless it would not end in time; return whether there is."""
        begun = time.perf_counter()
        expected = self.seconds * (_GROWTH if self.rounds and self.rounds[-1].grows else 1.0)
        if clock is not None and expected > clock.left(LEARNING):
            return False
        one = None
        with suppress(OutOfTimeError):
            one = next(self._more, None)
        if one is not None:
            self.rounds.append(one)
            best = one.best
            setting = f"{one.feature_map}, {best.kernel.name}, round {one.number} of a metric"
            tell_of_job("tried", setting=setting, error=float(np.sqrt(best.relative_mse)))
            self.seconds = time.perf_counter() - begun
        return one is not None


def _best(every: Sequence[Round]) -> list[int]:
    """Return the places of the best rounds of every map, and of plain distances, the best first."""
    # A learnt metric counts where it beats plain distances by more than a standard error.
    ranked = np.argsort([each.best.relative_mse for each in every], kind="stable").tolist()
    plain = [i for i in ranked if every[i].standardizer.linear is None]
    firsts: dict[str, int] = {}
    for i in ranked:
        if i in plain or every[i].best.beats(every[plain[0]].best):
            firsts.setdefault(every[i].feature_map, i)
    found = [*firsts.values(), plain[0]]
    return sorted(dict.fromkeys(found), key=lambda i: (every[i].best.relative_mse, i))


def _best_of_each(found: Sequence[Sequence[Round]]) -> list[int]:
    """Return the places, in all rounds, of the best of every beginning, and of plain distances.

    Errors on other rows say nothing beside those on more, which come first.
    """
    every = [(each, i) for i, some in enumerate(found) for each in some]
    errors = [(-each.n_rows, each.best.relative_mse) for each, _ in every]
    ranked = sorted(range(len(every)), key=errors.__getitem__)
    firsts = {every[i][1]: i for i in reversed(ranked)}
    plain = next(i for i in ranked if every[i][0].standardizer.linear is None)
    return [i for i in ranked if i in {plain, *firsts.values()}]
