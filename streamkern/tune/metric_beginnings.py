"""What the rounds of a metric begin with: kernels and maps, weights of the inputs, and rows."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import run_all, shared, task
from streamkern.features import Standardizer
from streamkern.parameters.cost_estimate import rough_flops_per_second
from streamkern.parameters.fit_options import FitOptions
from streamkern.tune.input_weights import WeightDescent
from streamkern.tune.metric_rounds import ROWS_AN_INPUT, TRAINING, HeldOutTrial, Sample

# A kernel with a length scale, and the family of its maps.
Pair = tuple[Any, str]
# Kernels of every map that have a metric, chosen by fits of so many features to so many rows.
_KERNELS_A_MAP, _FEW_COMPONENTS, _FEW_ROWS = 2, 256, 4096
# Of several pairs, rounds that all have, the plain one included.
FIRST_ROUNDS = 2
# Half octaves about a kernel's own length scale, of the small fits.
_COARSE = (-4, -2, 0, 2)
# Fits of the first rounds; what one takes beside its products, as multiply-adds over D^3, as it was
# measured on so many cores; and rows that they have at least, however little time there is.
_FIRST_TRIALS, _SOLVING, _CORES, _FEWEST_TIMED = 16, 16, 2, 1000
# Descents of weights: of how many pairs, the last, what they may take of the time for metrics, or
# else of seconds of a core by formula, their rows at the least and at the most, and the targets at
# the most.
_DESCENTS, _SHARE, _SECONDS, _DESCENT_ROWS, _DESCENT_TARGETS = 2, 0.25, 40.0, (500, 3000), 16


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


def beginnings(
    sample: Sample,
    plain: Standardizer,
    pairs: Sequence[Pair],
    *,
    diagonal: bool | None,
    n_targets: int,
    seconds: float | None = None,
    n_slots: int = 1,
) -> list[Beginning]:
    """Return pairs as they are, and some with weights by descents.

    These are pairs whose metric is diagonal, or of a search that has so many seconds any; their
    descents are of as many rows as there is time for, otherwise of the same number anywhere.
    """
    suited = [pair for pair in pairs if WeightDescent.suits(pair[0])]
    if seconds is None:
        suited = [pair for pair in suited if pair[0].along_axes or diagonal is not False]
    suited = [] if n_targets > _DESCENT_TARGETS else suited[-_DESCENTS:]
    # Gradients say less of one weight an input than a descent does, and the first of several pairs
    # in a search is there as what a plain fit has.
    first = [1 if pair in suited and pair[0].along_axes else FIRST_ROUNDS for pair in pairs]
    if seconds is not None and len(pairs) > 1:
        first[0] = 1
    found = [Beginning(pair, None, n) for pair, n in zip(pairs, first, strict=True)]
    if not suited:
        return found
    seconds = _SECONDS if seconds is None else seconds
    # A descent has one thread, however many there are.
    at_once = min(n_slots, len(suited))
    flops = _SHARE * seconds * _rate("double") * at_once / len(suited)
    (fewest, most), p = _DESCENT_ROWS, len(plain.columns)
    n = min(int(TRAINING * len(sample.rows)), most)
    while n > fewest and WeightDescent.flops(n, p) > flops:
        n = max(n - n // 8, fewest)
    if WeightDescent.flops(n, p) > flops:
        return found
    rows, sent = plain(sample.rows), (sample.y, sample.s)
    kernels = [kernel.resolved(rows, weights=sample.weights) for kernel, _ in suited]
    there, name = shared(rows[:n]), "metric-weights"
    tasks = [task(WeightDescent(each).weights, there, *sent, name=name) for each in kernels]
    weights = run_all(tasks)
    return found + [Beginning(pair, each, 1) for pair, each in zip(suited, weights, strict=True)]


def rows_within(
    seconds: float, n_rows: int, plain: Standardizer, options: FitOptions, n_targets: int
) -> int:
    """Return as many of the rows as the first rounds of a pair take so many seconds of a core for.

    But a thousand at least, and so many that directions of all inputs can be told.
    """
    rate = _rate(options.precision)
    fewest = max(_FEWEST_TIMED, math.ceil(ROWS_AN_INPUT * len(plain.columns) / TRAINING))
    while n_rows > fewest:
        trial = HeldOutTrial.of(options, plain, n_rows)
        D = trial.n_components
        a_trial = trial.flops + _SOLVING * D**3 + n_targets * D * (n_rows + _SOLVING * D)
        if _FIRST_TRIALS * a_trial <= seconds * rate:
            break
        n_rows = max(n_rows - n_rows // 4, fewest)
    return n_rows


def _rate(precision: str) -> float:
    """Return the multiply-adds that a core does a second, as it was measured on two."""
    return rough_flops_per_second(precision) / _CORES
