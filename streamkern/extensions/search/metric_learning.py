"""Learning the metric of a kernel on a sample of the rows, before the pass that fits.

The average gradient outer product of a fitted function says which directions of the inputs it
changes along.  Taken for the metric of the kernel, it makes those directions count, and the next
function fits better; so a few rounds of fit, gradients and new metric follow each other.  Every fit
is to a part of the sample; by its errors on the rest a round chooses its length scale and penalty,
and rounds are compared.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.choice.input_weights import (
    DESCENT_TARGETS,
    ROWS_AN_INPUT,
    descent_bytes,
    descent_rows,
    has_descent,
    weights_by_descent,
)
from streamkern.choice.small_fit import (
    ISOTROPIC,
    TRAINING,
    HeldOutResult,
    Sample,
    SmallFit,
    far_steps,
)
from streamkern.choice.time_limit import OutOfTimeError, TimeLimit
from streamkern.engine.scheduler import compute, delayed, scatter
from streamkern.extensions.search.budget import LEARNING, Clock, run_in_time
from streamkern.extensions.search.settings import LEARNT, MetricSettings, Pair
from streamkern.features import FAMILIES, Standardizer
from streamkern.features.metric import learning_of, metric_of, root_of
from streamkern.parameters.cost_estimate import rough_flops_per_second
from streamkern.parameters.fit_options import FitOptions, large_sample
from streamkern.parameters.fit_report import FitReport, with_seconds
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
# Half octaves about the kernel's own length scale, in the first round; later about the last best.
_FIRST, _NEXT = (0, -1, 1, -2, 2, -3, -4), (-1, 0, 1)
_MOST_STEPS = 4
# Eigenvalues of the metric of a round that are reported.
_SHOWN = 10
# Kernels of every map that have a metric, chosen by fits of so many features to so many rows.
_KERNELS_A_MAP, _FEW_COMPONENTS, _FEW_ROWS = 2, 256, 4096
# Of several pairs, rounds that all have, the plain one included.
_FIRST_ROUNDS = 2
# Half octaves about a kernel's own length scale, of the small fits.
_COARSE = (-4, -2, 0, 2)
# Fits of a round; what one takes beside its products, as multiply-adds over D^3, as it was measured
# on so many cores; and rows and features that they have at least, however little time there is.
_ROUND_FITS, _SOLVING, _CORES, _FEWEST_TIMED, _LEAST_COMPONENTS = 8, 16, 2, 1000, 256
# What a value of a kernel at a landmark takes of the same, and for every input one along the axes;
# its gradients take so many times as much as that, for every target, on one thread.
_VALUE, _ALONG_AXES, _GRADIENT = 100, 8, 8
# Kernels that have a descent of weights, the last.
_DESCENTS = 2
# Rows of a descent, at the least and at the most.
_DESCENT_ROWS = 500, 3000
# What descents may take of the seconds for metrics, or else each of seconds of a core by formula.
_SHARE, _SECONDS = 0.25, 10.0


class Round(NamedTuple):
    """A fit in one metric, on the sample."""

    number: int  # 0 is that of plain distances
    best: HeldOutResult
    feature_map: str
    standardizer: Standardizer
    n_rows: int
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
    seconds: float = 0.0
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


def learnt_metric(
    summary: ColumnSummary,
    options: FitOptions,
    pairs: Sequence[Pair],
    plan: Plan,
    clock: Clock | None = None,
) -> LearntMetric:
    """Learn a metric for each of some kernels and maps, and return those that predict best.

    By a clock, rounds begin while there is time; then each pair has its best round among the
    contenders, and there are none without time for a first round.
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
    contenders = {}
    for place in _best(every) if clock is None else _best_of_each(found):
        each = every[place]
        pair, turned = (each.best.kernel, each.feature_map), each.standardizer.linear
        name = ISOTROPIC if each.is_plain else LEARNT
        contenders[place] = MetricSettings(name, summary.in_metric(turned), [pair])
    return LearntMetric(tuple(each.as_dict() for each in every), contenders)


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


def screening_round(
    sample: Sample, plain: Standardizer, options: FitOptions, pairs: Sequence[Pair]
) -> Sequence[Pair]:
    """Return the best kernels of every map, by small fits in plain distances.

    These are one of a distance, and one along the axes.
    """
    if max(Counter(name for _, name in pairs).values()) <= _KERNELS_A_MAP:
        return pairs
    n_rows, calls = min(len(sample.rows), _FEW_ROWS), list[Any]()
    for kernel, name in pairs:
        few = replace(options, feature_map=name, n_components=_FEW_COMPONENTS)
        fit = SmallFit.of(few, plain, n_rows)
        own = kernel.resolved(plain(sample.rows), weights=sample.weights)
        calls += [fit.held_out_call("metric-try", own, step, sample) for step in _COARSE]
    if len(made := run_in_time(sample.clock, calls, LEARNING)) < len(calls):
        raise OutOfTimeError
    errors = np.array([tried.relative_mse for tried in made]).reshape(len(pairs), -1)
    # Few features say little of rough kernels: the best of a distance and the best along the axes.
    kept: dict[tuple[str, bool], int] = {}
    for i in np.argsort(errors.min(axis=1), kind="stable").tolist():
        kernel, name = pairs[i]
        kept.setdefault((name, kernel.along_axes), i)
    return [pairs[i] for i in sorted(kept.values())]


def start_of_rounds(  # noqa: PLR0917  rows, and then what is tried
    sample: Sample,
    summary: ColumnSummary,
    options: FitOptions,
    pairs: Sequence[Pair],
    usual: Pair,
    plan: Plan,
) -> tuple[list[tuple[Pair, Floats | None, int]], SmallFit]:
    """Return pairs as they are, and some with weights (p,) by descents.

    With each comes how many rounds it has before the best are known; then the first fit, of so
    many rows and features.

    Weights are for pairs whose metric is diagonal, or of a search that has so many seconds for any.
    Rounds and descents are then of as many rows as there is time for, otherwise of the same number
    anywhere.  Descents never see rows that the first rounds hold out.
    """
    plain, n_targets, clock = summary.standardizer, summary.targets.shape[1], sample.clock
    seconds = None if clock is None else max(clock.left(LEARNING) / clock.slowness, 0.0)
    p, n_slots, groups = len(plain.columns), plan.n_slots, summary.groups
    fit = SmallFit.of(options, plain, len(sample.rows))
    suited = _suited(pairs, options, n_targets, is_search=seconds is not None)
    # A descent has one thread, however many there are.
    at_once = max(min(n_slots, len(suited)), 1)
    flops, n_bytes = _SECONDS * _rate("double"), math.inf
    if seconds is not None:
        flops = _SHARE * seconds * _rate("double") * at_once / max(len(suited), 1)
        n_bytes = plan.allowed_bytes / at_once
    n_descent = descent_rows(fit.n_training, p, flops, n_bytes, _DESCENT_ROWS)
    if n_descent < ROWS_AN_INPUT * (groups.max() + 1):
        suited = []
    # Gradients say less of one weight an input than a descent does; in a search one of several
    # pairs is there as what a plain fit has, and some gradients take longer than all else.
    once = [pair for pair in suited if pair[0].along_axes]
    if seconds is not None:
        once += [usual] if len(pairs) > 1 else []
        once += [pair for pair in pairs if _is_dear(fit, pair, n_targets)]
    rounds = [(pair, 1 if pair in once else _FIRST_ROUNDS) for pair in pairs]
    rounds += [(pair, 1) for pair in suited]
    if seconds is not None:
        left = (1.0 - _SHARE if suited else 1.0) * seconds * n_slots
        fit = _within(left * _rate(options.precision), fit, n_targets, rounds, n_slots)
    weights, n_descent = list[Any](), min(n_descent, fit.n_training)
    if suited:
        rows, sent = plain(sample.rows), (sample.y, sample.s, groups)
        kernels = [kernel.resolved(rows, weights=sample.weights) for kernel, _ in suited]
        there, name = scatter(rows[:n_descent]), "metric-weights"
        calls = [(name, weights_by_descent, each, there, *sent) for each in kernels]
        room = max(min(at_once, int(plan.allowed_bytes // descent_bytes(n_descent, p))), 1)
        make = partial(TimeLimit.compute_all, n_threads=room)
        weights = run_in_time(clock, calls, LEARNING, make)
    starts = [None] * len(pairs) + weights
    found = [(pair, start, n) for (pair, n), start in zip(rounds, starts, strict=False)]
    return found, fit


def _suited(
    pairs: Sequence[Pair], options: FitOptions, n_targets: int, *, is_search: bool
) -> list[Pair]:
    """Return the last pairs of different kernels that have descents."""
    learning: Any = learning_of(options.metric)
    is_free = is_search or learning.diagonal is not False
    suited = [pair for pair in pairs if has_descent(pair[0]) and (is_free or pair[0].along_axes)]
    last = {kernel.name: (kernel, name) for kernel, name in suited}
    return [*last.values()][-_DESCENTS:] if n_targets <= DESCENT_TARGETS else []


def _within(
    flops: float, fit: SmallFit, n_targets: int, rounds: Sequence[tuple[Pair, int]], n_slots: int
) -> SmallFit:
    """Return the fit to as many rows as there are flops for, of rounds of every pair.

    But a thousand rows at least, and so many that directions of all inputs can be told; where these
    take too much, there are fewer features.
    """
    p = len(fit.standardizer.columns)
    fewest = max(_FEWEST_TIMED, math.ceil(ROWS_AN_INPUT * p / TRAINING))
    while True:
        n, D, needed = fit.n_rows, fit.n_components, 0.0
        for pair, number in rounds:
            fits, slopes = _round_flops(fit, pair, n_targets)
            # Those of one target are in what fits were measured to take.
            needed += number * fits + n_slots * (n_targets - 1) * (number - 1) * slopes
        if needed <= flops or max(n / fewest, D / _LEAST_COMPONENTS) <= 1:
            return fit
        if n > fewest:
            fit = SmallFit.of(fit.options, fit.standardizer, max(n - n // 4, fewest))
        else:
            fit = fit.sized(n, max(D // 2, _LEAST_COMPONENTS))


def _round_flops(fit: SmallFit, pair: Pair, n_targets: int) -> tuple[float, float]:
    """Return what the fits of a round take, and the average gradient outer product of one target.

    Those are as multiply-adds of products, as they were measured on two cores.
    """
    (kernel, name), n, D, p = pair, float(fit.n_rows), fit.n_components, fit.standardizer.n_outputs
    a_fit, a_slope = fit.flops + _SOLVING * D**3 + n_targets * D * (n + _SOLVING * D), 2 * p
    if FAMILIES[name].rows_a_feature:  # values of the kernel at landmarks
        a_fit += n * D * (_VALUE + _ALONG_AXES * kernel.along_axes * p)
        a_slope = _GRADIENT * _ALONG_AXES * p if kernel.along_axes else _VALUE + 2 * p
    return _ROUND_FITS * a_fit, fit.n_training * (D * a_slope + p**2)


def _is_dear(fit: SmallFit, pair: Pair, n_targets: int) -> bool:
    fits, slopes = _round_flops(fit, pair, n_targets)
    return n_targets > 1 and n_targets * slopes > fits


def _rate(precision: str) -> float:
    """Return the multiply-adds that a core does a second, as it was measured on two."""
    return rough_flops_per_second(precision) / _CORES


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
        fit, best, own, middle = min(found, key=lambda each: each.best.relative_mse)
        # Few rows say little of a length scale: at first the kernel's own stays.
        taken = best if number or best.beats(own) else own
        told = 0 if fit.standardizer.linear is None else number + is_weighted
        yield Round(told, taken, options.feature_map, fit.standardizer, fit.n_rows, is_weighted)
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
    """The best length scale of a kernel, and its own, of those that were tried."""

    fit: SmallFit
    best: HeldOutResult
    own: HeldOutResult
    step: int  # of the best, in half octaves from its own


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
    return BestLengthScale(fit, tried[middle], tried.get(0, tried[middle]), middle)


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
