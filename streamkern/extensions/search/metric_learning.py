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
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.choice.sample_choice import in_given_metric
from streamkern.choice.small_fit import (
    ISOTROPIC,
    LEARNT,
    HeldOutResult,
    Sample,
    SmallFit,
    far_steps,
)
from streamkern.choice.time_limit import OutOfTimeError
from streamkern.engine.scheduler import compute, delayed
from streamkern.extensions.search.budget import LEARNING, Clock, run_in_time
from streamkern.extensions.search.metric_beginnings import (
    ROWS_AN_INPUT,
    Pair,
    screening_round,
    start_of_rounds,
)
from streamkern.extensions.search.settings import MetricSettings
from streamkern.features import Standardizer
from streamkern.features.metric import GivenMetric, learning_of, metric_of, root_of
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
# Half octaves about the kernel's own length scale, in the first round; later about the last best.
_FIRST, _NEXT = (0, -1, 1, -2, 2, -3, -4), (-1, 0, 1)
_MOST_STEPS = 4
# Eigenvalues of the metric of a round that are reported.
_SHOWN = 10


class Round(NamedTuple):
    """A fit in one metric, on the sample."""

    number: int  # 0 is that of plain distances
    best: HeldOutResult
    feature_map: str
    standardizer: Standardizer
    n_rows: int
    flops: float
    is_weighted: bool  # they began with weights by descent

    @property
    def error(self) -> float:
        return self.best.relative_mse

    @property
    def is_plain(self) -> bool:
        return self.standardizer.linear is None

    def as_dict(self) -> dict[str, Any]:
        best, linear, p = self.best, self.standardizer.linear, len(self.standardizer.columns)
        values = np.linalg.eigvalsh(metric_of(linear, np.arange(p), p))[::-1]
        return {
            "kernel": best.kernel.name,
            "feature_map": self.feature_map,
            "number": self.number,
            "is_weighted": self.is_weighted,
            "length_scale": float(np.asarray(best.kernel.length_scale)),
            "relative_mse": best.relative_mse,
            "alpha": best.alpha,
            "n_rows": self.n_rows,
            "n_components": len(best.coef),
            "eigenvalues": (values / values.sum())[:_SHOWN].tolist(),
        }


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
            learnt = LearntMetric((), {}, 0.0, 0.0)
    learnt = replace(learnt, seconds=time.perf_counter() - begun)
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
    has_time = clock is not None and clock.left(LEARNING) > _MORE_SECONDS
    most = min(options.n_components, _MORE_COMPONENTS if has_time else _COMPONENTS)
    options = replace(options, n_components=min(options.n_components, _COMPONENTS))
    n_rows = large_sample(summary.standardizer.n_features + summary.sample.y.shape[1])
    sample, plain = Sample.of(summary, n_rows, clock), summary.standardizer
    kept, flops = screening_round(sample, plain, options, pairs)
    beginnings, fit, weighing = start_of_rounds(sample, summary, options, kept, pairs[0], plan)
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
    contenders = {}
    for place in _best(every) if clock is None else _best_of_each(found):
        each = every[place]
        pair, turned = (each.best.kernel, each.feature_map), each.standardizer.linear
        name = ISOTROPIC if each.is_plain else LEARNT
        contenders[place] = MetricSettings(name, summary.in_metric(turned), [pair])
    flops += weighing + sum(each.flops for each in every)
    return LearntMetric(tuple(each.as_dict() for each in every), contenders, flops, 0.0)


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


def rounds_of(
    sample: Sample,
    plain: Standardizer,
    options: FitOptions,
    kernel: Any,
    *,
    weights: Floats | None = None,
    most_components: int,
    n_rows: int,
    most_bracketed: int,
) -> Iterator[Round]:
    """Yield the rounds of one kernel and map, of some rows, up to one no better than before.

    They begin in plain distances, or with weights (p,) of the inputs.
    From there on the best goes on with twice as many features, up to the most, and rows, up to all.
    Rounds after the first bracket the length scale, or of more rows than `most_bracketed` try one
    beside the last, on either side in turn.
    """
    learning: Any = learning_of(options.metric)
    is_weighted = weights is not None
    fit = SmallFit.of(options, plain.with_linear(weights), n_rows)
    all_rows = len(sample.rows)
    most_components = fit.sized(all_rows, most_components).n_components
    few = fit.n_training < ROWS_AN_INPUT * len(plain.columns)
    diagonal = True if kernel.along_axes else learning.diagonal
    kinds = [False, True] if diagonal is None else [diagonal]
    fits, steps = [fit], list(_FIRST)
    least, begun, number, side, going_on = np.inf, 0, 0, -1, fit
    while True:
        brackets = fits[0].n_rows <= most_bracketed
        most = _MOST_STEPS if brackets or not number else 1
        found = [_length_scale(one, sample, kernel, steps, most, far=not number) for one in fits]
        fit, best, own, middle, _ = min(found, key=lambda each: each.best.relative_mse)
        # Few rows say little of a length scale: at first the kernel's own stays.
        taken = best if number or best.beats(own) else own
        flops = sum(each.n_tried for each in found) * fit.flops
        told = 0 if fit.standardizer.linear is None else number + is_weighted
        yield Round(
            told, taken, options.feature_map, fit.standardizer, fit.n_rows, flops, is_weighted
        )
        if few:
            return
        is_better = best.relative_mse < least
        if is_better:
            least, going_on = best.relative_mse, fit
            if number and middle != steps[-1]:  # the last one was no better
                side = -side
            steps = [middle + step for step in (_NEXT if brackets else (0, side))]
        if is_better and number - begun < learning.n_rounds:
            slopes = "metric-gradients", fit.gradients, best, sample.X, sample.s
            outer = next(iter(run_in_time(sample.clock, [slopes], LEARNING)), None)
            if outer is None:
                return
            metrics = [plain.with_linear(_linear(outer, diagonal=kind)) for kind in kinds]
            fits = [replace(fit, standardizer=each, landmarks=None) for each in metrics]
        else:
            n, D = going_on.n_rows, going_on.n_components
            more = min(2 * n, all_rows), max(D, min(2 * D, most_components))
            if more == (n, D):
                return
            going_on = going_on.sized(*more)
            fits, least, begun = [going_on], np.inf, number + 1
        number += 1


class BestLengthScale(NamedTuple):
    """The best length scale of a kernel, and its own, of so many that were tried."""

    fit: SmallFit
    best: HeldOutResult
    own: HeldOutResult
    step: int  # of the best, in half octaves from its own
    n_tried: int


def _length_scale(
    fit: SmallFit, sample: Sample, kernel: Any, steps: Sequence[int], most: int, *, far: bool
) -> BestLengthScale:
    """Try length scales so many half octaves from the kernel's own, and about the best of them.

    In the first round, those that are far from it as well.
    """
    rows = fit.standardizer(sample.rows)
    own = kernel.resolved(rows, weights=sample.weights)
    steps = [*steps, *(far_steps(own, rows) if far else [])]
    found = delayed(fit.found_landmarks, own, sample.X, sample.s, name="metric-landmarks")
    fit = replace(fit, landmarks=compute(found))
    tried: dict[int, HeldOutResult] = {}
    for _ in range(most):
        new = [step for step in steps if step not in tried]
        calls = [fit.held_out_call("metric-try", own, step, sample) for step in new]
        made = run_in_time(sample.clock, calls, LEARNING)
        tried.update(zip(new, made, strict=False))
        if not tried:
            raise OutOfTimeError
        middle = min(tried, key=lambda step: (tried[step].relative_mse, step))
        steps = [middle - 1, middle, middle + 1]
        if tried.keys() >= set(steps) or len(made) < len(new):
            break
    return BestLengthScale(fit, tried[middle], tried.get(0, tried[middle]), middle, len(tried))


def _linear(outer: Floats, *, diagonal: bool) -> Floats | None:
    """Return A of the metric of gradients, scaled so that the inputs weigh 1 on average."""
    trace = float(np.trace(outer))
    if not (np.isfinite(trace) and trace > 0):
        return None
    metric = outer * (len(outer) / trace)
    return root_of(np.diag(np.diagonal(metric)) if diagonal else metric)


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
