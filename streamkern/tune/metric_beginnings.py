"""What the rounds of a metric begin with: kernels and maps, weights of the inputs, and rows."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import run_all, shared, task
from streamkern.features import Standardizer
from streamkern.features.metric import learning_of
from streamkern.parameters.cost_estimate import rough_flops_per_second
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.job_plan import Plan
from streamkern.tune.input_weights import (
    descent_bytes,
    descent_flops,
    has_descent,
    weights_by_descent,
)
from streamkern.tune.metric_rounds import ROWS_AN_INPUT, TRAINING, HeldOutTrial, Sample

# A kernel with a length scale, and the family of its maps.
Pair = tuple[Any, str]
# Kernels of every map that have a metric, chosen by fits of so many features to so many rows.
_KERNELS_A_MAP, _FEW_COMPONENTS, _FEW_ROWS = 2, 256, 4096
# Of several pairs, rounds that all have, the plain one included.
_FIRST_ROUNDS = 2
# Half octaves about a kernel's own length scale, of the small fits.
_COARSE = (-4, -2, 0, 2)
# Fits of a round; what one takes beside its products, as multiply-adds over D^3, as it was measured
# on so many cores; and rows and features that they have at least, however little time there is.
_ROUND_TRIALS, _SOLVING, _CORES, _FEWEST_TIMED, _LEAST_COMPONENTS = 8, 16, 2, 1000, 256
# What a value of a kernel at a landmark takes of the same, and for every input one along the axes.
_LANDMARKS, _VALUE, _ALONG_AXES = "nystroem", 100, 8
# Kernels that have a descent of weights, the last, and targets at the most.
_DESCENTS, _DESCENT_TARGETS = 2, 16
# Rows of a descent, at the least and at the most.
_DESCENT_ROWS = 500, 3000
# What descents may take of the seconds for metrics, or else each of seconds of a core by formula.
_SHARE, _SECONDS = 0.25, 10.0


def promising(
    sample: Sample, plain: Standardizer, options: FitOptions, pairs: Sequence[Pair]
) -> tuple[Sequence[Pair], float]:
    """Return the best kernels of every map, by small fits in plain distances, and their flops.

    These are one of a distance, and one along the axes.
    """
    if max(Counter(name for _, name in pairs).values()) <= _KERNELS_A_MAP:
        return pairs, 0.0
    n_rows, tasks, flops = min(len(sample.rows), _FEW_ROWS), [], 0.0
    for kernel, name in pairs:
        few = replace(options, feature_map=name, n_components=_FEW_COMPONENTS)
        trial = HeldOutTrial.of(few, plain, n_rows)
        own = kernel.resolved(plain(sample.rows), weights=sample.weights)
        tasks += [trial.task(own, step, sample) for step in _COARSE]
        flops += len(_COARSE) * trial.flops
    errors = np.array([tried.relative_mse for tried in run_all(tasks)]).reshape(len(pairs), -1)
    # Few features say little of rough kernels: the best of a distance and the best along the axes.
    kept: dict[tuple[str, bool], int] = {}
    for i in np.argsort(errors.min(axis=1), kind="stable").tolist():
        kernel, name = pairs[i]
        kept.setdefault((name, kernel.along_axes), i)
    return [pairs[i] for i in sorted(kept.values())], flops


class Beginning(NamedTuple):
    """A kernel and map, whose rounds begin in plain distances or with weights of the inputs."""

    pair: Pair
    weights: Floats | None  # (p,)
    n_rounds: int  # that it has before the best are known


class Start(NamedTuple):
    """What the rounds of a metric begin with."""

    beginnings: Sequence[Beginning]
    n_rows: int  # of the sample, that they have at first
    n_components: int
    flops: float  # of the descents


def start_of_rounds(
    sample: Sample,
    plain: Standardizer,
    options: FitOptions,
    pairs: Sequence[Pair],
    *,
    usual: Pair,
    n_targets: int,
    groups: Array,
    plan: Plan,
    seconds: float | None = None,
) -> Start:
    """Return pairs as they are, and some with weights by descents.

    These are pairs whose metric is diagonal, or of a search that has so many seconds any.  Rounds
    and descents are then of as many rows as there is time for, otherwise of the same number
    anywhere.  Descents never see rows that the first rounds hold out.
    """
    n, p, n_slots = len(sample.rows), len(plain.columns), plan.n_slots
    n_groups = int(groups.max()) + 1
    suited = _suited(pairs, options, n_targets, is_search=seconds is not None)
    # A descent has one thread, however many there are.
    at_once = max(min(n_slots, len(suited)), 1)
    flops, n_bytes = _SECONDS * _rate("double"), math.inf
    if seconds is not None:
        flops = _SHARE * seconds * _rate("double") * at_once / max(len(suited), 1)
        n_bytes = plan.allowed_bytes / at_once
    n_descent = _descent_rows(int(TRAINING * n), (p, n_groups), flops, n_bytes)
    if not n_descent:
        suited = []
    # Gradients say less of one weight an input than a descent does, and the first of several pairs
    # in a search is there as what a plain fit has.
    first = [1 if pair in suited and pair[0].along_axes else _FIRST_ROUNDS for pair in pairs]
    n_components = options.n_components
    if seconds is not None:
        if len(pairs) > 1 and usual in pairs:
            first[pairs.index(usual)] = 1
        left = (1.0 - _SHARE if suited else 1.0) * seconds * n_slots
        rounds = [*zip(pairs, first, strict=True), *((pair, 1) for pair in suited)]
        n, n_components = _sizes_within(left, n, plain, options, n_targets, rounds)
    found = [Beginning(pair, None, number) for pair, number in zip(pairs, first, strict=True)]
    if not suited:
        return Start(found, n, n_components, 0.0)
    n_descent = min(n_descent, int(TRAINING * n))
    rows, sent = plain(sample.rows), (sample.y, sample.s)
    kernels = [kernel.resolved(rows, weights=sample.weights) for kernel, _ in suited]
    there, name = shared(rows[:n_descent]), "metric-weights"
    tasks = [task(weights_by_descent, each, there, *sent, groups, name=name) for each in kernels]
    weights = run_all(tasks, max(min(at_once, plan.allowed_bytes // descent_bytes(n_descent)), 1))
    found += [Beginning(pair, each, 1) for pair, each in zip(suited, weights, strict=True)]
    return Start(found, n, n_components, len(suited) * descent_flops(n_descent, p))


def _suited(
    pairs: Sequence[Pair], options: FitOptions, n_targets: int, *, is_search: bool
) -> list[Pair]:
    """Return the last pairs of different kernels that have descents."""
    learning: Any = learning_of(options.metric)
    is_free = is_search or learning.diagonal is not False
    suited = [pair for pair in pairs if has_descent(pair[0]) and (is_free or pair[0].along_axes)]
    last = {kernel.name: (kernel, name) for kernel, name in suited}
    return [*last.values()][-_DESCENTS:] if n_targets <= _DESCENT_TARGETS else []


def _descent_rows(n_rows: int, sizes: tuple[int, int], flops: float, n_bytes: float) -> int:
    """Return the rows of a descent of so many flops and bytes at the most, 0 if these are few.

    Sizes are the numbers of inputs, and of their weights.
    """
    (n_features, n_weights), (fewest, most) = sizes, _DESCENT_ROWS

    def fits(n: int) -> bool:
        return descent_flops(n, n_features) <= flops and descent_bytes(n) <= n_bytes

    n = min(n_rows, most)
    while n > fewest and not fits(n):
        n = max(n - n // 8, fewest)
    return n if fits(n) and n >= ROWS_AN_INPUT * n_weights else 0


def _sizes_within(  # noqa: PLR0917  the seconds, and what they are for
    seconds: float,
    n_rows: int,
    plain: Standardizer,
    options: FitOptions,
    n_targets: int,
    rounds: Sequence[tuple[Pair, int]],
) -> tuple[int, int]:
    """Return as many of the rows as rounds take so many seconds of a core for, and their features.

    But a thousand rows at least, and so many that directions of all inputs can be told; where these
    are too many, there are fewer features.
    """
    flops = seconds * _rate(options.precision)
    fewest = max(_FEWEST_TIMED, math.ceil(ROWS_AN_INPUT * len(plain.columns) / TRAINING))
    while True:
        trial = HeldOutTrial.of(options, plain, n_rows)
        of_trials = [number * _trial_flops(trial, pair, n_targets) for pair, number in rounds]
        is_least = n_rows <= fewest and trial.n_components <= _LEAST_COMPONENTS
        if is_least or _ROUND_TRIALS * sum(of_trials) <= flops:
            return n_rows, options.n_components
        if n_rows > fewest:
            n_rows = max(n_rows - n_rows // 4, fewest)
        else:
            options = replace(options, n_components=trial.n_components // 2)


def _trial_flops(trial: HeldOutTrial, pair: Pair, n_targets: int) -> float:
    """Return what a trial takes as multiply-adds of products, as it was measured on two cores."""
    (kernel, name), n, D = pair, trial.n_rows, trial.n_components
    flops = trial.flops + _SOLVING * D**3 + n_targets * D * (n + _SOLVING * D)
    if name != _LANDMARKS:
        return flops
    return flops + n * D * (_VALUE + _ALONG_AXES * kernel.along_axes * trial.standardizer.n_outputs)


def _rate(precision: str) -> float:
    """Return the multiply-adds that a core does a second, as it was measured on two."""
    return rough_flops_per_second(precision) / _CORES
