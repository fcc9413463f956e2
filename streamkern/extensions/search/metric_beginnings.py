"""Where rounds of metrics begin: kernels, weights of inputs, and rows that there is time for."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.choice.held_out_fit import TRAINING, HeldOutFit
from streamkern.choice.input_weights import (
    DESCENT_TARGETS,
    ROWS_AN_INPUT,
    descent_bytes,
    descent_rows,
    has_descent,
    weights_by_descent,
)
from streamkern.choice.small_fit import Sample
from streamkern.choice.time_limit import OutOfTimeError, TimeLimit
from streamkern.engine.scheduler import scatter
from streamkern.extensions.search.budget import LEARNING, run_in_time
from streamkern.extensions.search.settings import Pair
from streamkern.features import FAMILIES, Standardizer
from streamkern.features.metric import learning_of
from streamkern.parameters.cost_estimate import rough_flops_per_second
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.plan import Plan
from streamkern.passes.column_summary import ColumnSummary

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
        fit = HeldOutFit.of(few, plain, n_rows)
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
) -> tuple[list[tuple[Pair, Floats | None, int]], HeldOutFit]:
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
    fit = HeldOutFit.of(options, plain, len(sample.rows))
    suited = _suited(pairs, options, n_targets, is_search=seconds is not None)
    # A descent has one thread, however many there are.
    at_once = max(min(n_slots, len(suited)), 1)
    flops, n_bytes = _SECONDS * _rate("double"), math.inf
    if seconds is not None:
        flops = _SHARE * seconds * _rate("double") * at_once / max(len(suited), 1)
        n_bytes = plan.allowed_bytes / at_once
    n_descent = descent_rows(fit.n_fitted, p, flops, n_bytes, _DESCENT_ROWS)
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
    weights, n_descent = list[Any](), min(n_descent, fit.n_fitted)
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
    flops: float, fit: HeldOutFit, n_targets: int, rounds: Sequence[tuple[Pair, int]], n_slots: int
) -> HeldOutFit:
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
            fit = HeldOutFit.of(fit.options, fit.standardizer, max(n - n // 4, fewest))
        else:
            fit = fit.sized(n, max(D // 2, _LEAST_COMPONENTS))


def _round_flops(fit: HeldOutFit, pair: Pair, n_targets: int) -> tuple[float, float]:
    """Return what the fits of a round take, and the average gradient outer product of one target.

    Those are as multiply-adds of products, as they were measured on two cores.
    """
    (kernel, name), n, D, p = pair, float(fit.n_rows), fit.n_components, fit.standardizer.n_outputs
    a_fit, a_slope = fit.flops + _SOLVING * D**3 + n_targets * D * (n + _SOLVING * D), 2 * p
    if FAMILIES[name].rows_a_feature:  # values of the kernel at landmarks
        a_fit += n * D * (_VALUE + _ALONG_AXES * kernel.along_axes * p)
        a_slope = _GRADIENT * _ALONG_AXES * p if kernel.along_axes else _VALUE + 2 * p
    return _ROUND_FITS * a_fit, fit.n_fitted * (D * a_slope + p**2)


def _is_dear(fit: HeldOutFit, pair: Pair, n_targets: int) -> bool:
    fits, slopes = _round_flops(fit, pair, n_targets)
    return n_targets > 1 and n_targets * slopes > fits


def _rate(precision: str) -> float:
    """Return the multiply-adds that a core does a second, as it was measured on two."""
    return rough_flops_per_second(precision) / _CORES
