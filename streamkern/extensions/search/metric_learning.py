"""Learning the metric of a kernel on a sample of the rows, before the pass that fits.

The average gradient outer product of a fitted function says which directions of the inputs it
changes along.  Taken for the metric of the kernel, it makes those directions count, and the next
function fits better; so a few rounds of fit, gradients and new metric follow each other.  Every fit
is to a part of the sample; by its errors on the rest a round chooses its length scale and penalty,
and rounds are compared.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from streamkern.choice.small_fit import Sample
from streamkern.choice.time_limit import OutOfTimeError
from streamkern.extensions.search.budget import LEARNING, Clock
from streamkern.extensions.search.metric_beginnings import screening_round, start_of_rounds
from streamkern.extensions.search.metric_rounds import Round, rounds_of
from streamkern.extensions.search.settings import LEARNT, MetricSettings, Pair
from streamkern.parameters.fit_options import FitOptions, large_sample
from streamkern.parameters.fit_report import ISOTROPIC, FitReport, with_seconds
from streamkern.parameters.plan import Plan
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


@dataclass(frozen=True)
class LearntMetric:
    """What the rounds of every kernel and map led to, one after the other, if there was time."""

    rounds: tuple[dict[str, Any], ...]
    # The best rounds of every map, and of plain distances, by their places; the best first.
    metrics: dict[int, MetricSettings]
    seconds: float = 0.0
    place: int | None = 0  # of the metric that is fitted, None of linear ridge

    def reported(self, report: FitReport) -> FitReport:
        """Return the report of moments with how the metric was learnt, and which round was kept."""
        report = with_seconds(report, metric=self.seconds)
        if self.place is None or not self.rounds:
            return report
        kept = list(self.metrics)
        plain = next(i for i in kept if self.rounds[i]["number"] == 0)  # of a plain fit, too
        own = kept[self.place] if self.place < len(kept) else plain
        metric = (report["metric"] or {}) | {"rounds": list(self.rounds), "kept": own}
        learnt: FitReport = {"metric": metric}
        return report | learnt


def learnt_metric(
    summary: ColumnSummary,
    options: FitOptions,
    pairs: Sequence[Pair],
    plan: Plan,
    clock: Clock | None = None,
) -> LearntMetric:
    """Learn a metric for each of some kernels and maps, and return those that predict best.

    By a clock, rounds begin while there is time; then the best metric of each pair is
    returned, and none without time for a first round.
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), "Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models".
    """
    begun = time.perf_counter()
    with blas_threads(1):  # roots are part of the result
        try:
            learnt = _learnt(summary, options, pairs, plan, clock)
        except OutOfTimeError:
            learnt = LearntMetric((), {})
    return replace(learnt, seconds=time.perf_counter() - begun)


def _learnt(
    summary: ColumnSummary,
    options: FitOptions,
    pairs: Sequence[Pair],
    plan: Plan,
    clock: Clock | None,
) -> LearntMetric:
    """Learn metrics while there is time.

    Two kernels of every map have a first metric, and two kernels that have one weight an input, or
    by a clock any, begin with weights by descent as well; the best two of all these go on.
    """
    has_time = clock is not None and clock.left(LEARNING) > _MORE_SECONDS
    most = min(options.n_components, _MORE_COMPONENTS if has_time else _COMPONENTS)
    options = replace(options, n_components=min(options.n_components, _COMPONENTS))
    n_rows = large_sample(summary.standardizer.n_features + summary.sample.y.shape[1])
    sample, plain = Sample.of(summary, n_rows, clock), summary.standardizer
    kept = screening_round(sample, plain, options, pairs)
    beginnings, fit = start_of_rounds(sample, summary, options, kept, pairs[0], plan)
    how: Any = {"most_components": most, "n_rows": fit.n_rows}
    how["most_bracketed"] = len(sample.rows) if clock is None else _MANY_ROWS
    several, found = list[Iterator[Round]](), list[list[Round]]()
    for (kernel, name), of_inputs, n_first in beginnings:
        mine = replace(options, feature_map=name, n_components=fit.n_components)
        rounds = rounds_of(sample, plain, mine, kernel, weights=of_inputs, **how)
        if made := _in_time(islice(rounds, n_first)):
            several.append(rounds)
            found.append(made)
        if not several:
            raise OutOfTimeError
    least = [min(one.error for one in made) for made in found]
    for i in np.argsort(least, kind="stable")[:_GO_ON].tolist():
        found[i] += _in_time(several[i])
    every = [each for made in found for each in made]
    metrics = {}
    for place in _best(every) if clock is None else _best_of_each(found):
        each = every[place]
        pair, turned = (each.best.kernel, each.feature_map), each.standardizer.linear
        name = ISOTROPIC if each.is_plain else LEARNT
        metrics[place] = MetricSettings(name, summary.in_metric(turned), [pair])
    return LearntMetric(tuple(each.as_dict() for each in every), metrics)


def _in_time(rounds: Iterator[Round]) -> list[Round]:
    """Return the rounds that end in time, each told of as it ends."""
    made = list[Round]()
    with suppress(OutOfTimeError):
        for one in rounds:
            made.append(one)
            kernel = one.best.kernel.name
            setting = f"{one.feature_map}, {kernel}, round {one.number} of a metric"
            tell_of_job("tried", setting=setting, error=float(np.sqrt(one.error)))
    return made


def _best(every: Sequence[Round]) -> list[int]:
    """Return the places of the best rounds of every map, and of plain distances, the best first."""
    # A learnt metric counts where it beats plain distances by more than a standard error.
    ranked = np.argsort([each.error for each in every], kind="stable").tolist()
    plain = next(i for i in ranked if every[i].is_plain)
    firsts: dict[str, int] = {}
    for i in ranked:
        if every[i].is_plain or every[i].best.beats(every[plain].best):
            firsts.setdefault(every[i].feature_map, i)
    return sorted({*firsts.values(), plain}, key=lambda i: (every[i].error, i))


def _best_of_each(found: Sequence[Sequence[Round]]) -> list[int]:
    """Return the places, in all rounds, of the best of every beginning, and of plain distances.

    Errors on other rows say nothing beside those on more, which come first.
    """
    every = [(each, i) for i, some in enumerate(found) for each in some]
    ranked = sorted(range(len(every)), key=lambda i: (-every[i][0].n_rows, every[i][0].error))
    firsts = {every[i][1]: i for i in reversed(ranked)}
    plain = next(i for i in ranked if every[i][0].is_plain)
    return [i for i in ranked if i in {plain, *firsts.values()}]
