"""Learning the metric of a kernel on a sample of the rows, before the pass that fits.

The average gradient outer product of a fitted function says which directions of the inputs it
changes along.  Taken for the metric of the kernel, it makes those directions count, and the next
function fits better; so a few rounds of fit, gradients and new metric follow each other.
"""

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from streamkern.engine.scheduler import run_all, shared
from streamkern.errors import DataError
from streamkern.features import Standardizer
from streamkern.features.metric import GivenMetric, check_kernel_in_metric, learning_of
from streamkern.kernels import Kernel, Linear
from streamkern.parameters.cost_estimate import rough_flops_per_second
from streamkern.parameters.fit_options import FitOptions, large_sample
from streamkern.parameters.fit_report import FitReport, with_seconds
from streamkern.runtime.threads import blas_threads
from streamkern.sources import Source
from streamkern.tune.budget import Spent
from streamkern.tune.candidates import Contender
from streamkern.tune.column_pass import ColumnPass
from streamkern.tune.metric_rounds import (
    ROWS_AN_INPUT,
    TRAINING,
    HeldOutTrial,
    Round,
    Sample,
    rounds_of,
)
from streamkern.tune.trials import ISOTROPIC, LEARNT

# A kernel with a length scale, and the family of its maps.
Pair = tuple[Any, str]
# Features of the models whose gradients are averaged, where a fit has more; and more of them where
# there are so many seconds.
_COMPONENTS, _MORE_COMPONENTS, _MORE_SECONDS = 1024, 2048, 60.0
# Kernels of every map that have a metric, chosen by fits of so many features to so many rows.
_KERNELS_A_MAP, _FEW_COMPONENTS, _FEW_ROWS = 2, 256, 4096
# Of several pairs, rounds that all have, the plain one included, and pairs that have more.
_FIRST_ROUNDS, _GO_ON = 2, 2
# Rows of which rounds take so long that in a search within seconds there are rather more of them.
_MANY_ROWS = 5000
# Fits of the first rounds; what one takes beside its products, as multiply-adds over D^3, as it was
# measured on so many cores; and rows that they have at least, however little time there is.
_FIRST_TRIALS, _SOLVING, _CORES, _FEWEST_TIMED = 16, 16, 2, 1000
# What a round takes of the last, where it has twice the rows or features, or both.
_GROWTH = 4.0
# Half octaves about a kernel's own length scale, of the small fits.
_COARSE = (-4, -2, 0, 2)
_FEWEST_ROWS = 60


@dataclass(frozen=True)
class LearntMetric:
    """What the rounds of every kernel and map led to, one after the other."""

    rounds: tuple[dict[str, Any], ...]
    # The best rounds of every map, and of plain distances, by their places; the best first.
    contenders: dict[int, Contender]
    spent: Spent

    def reported(self, report: FitReport, place: int = 0) -> FitReport:
        """Return the report of moments with how the metric was learnt, and which round was kept."""
        kept = list(self.contenders)
        plain = next(i for i in kept if self.rounds[i]["number"] == 0)  # of a plain fit, too
        rounds = {"rounds": list(self.rounds), "kept": kept[place] if place < len(kept) else plain}
        learnt: FitReport = {"metric": {**(report["metric"] or {}), **rounds}}
        return with_seconds(report, metric=self.spent.seconds) | learnt


def check_metric_of(options: FitOptions, kernels: Sequence[Kernel], source: Source) -> None:
    """Raise an error unless a metric can be learnt, or taken, for these kernels and rows."""
    if options.metric is None:
        return
    if learning_of(options.metric) and source.n_samples < _FEWEST_ROWS:
        raise DataError(
            f"a metric is learnt of at least {_FEWEST_ROWS} rows, but there are "
            f"{source.n_samples}; add rows, or leave the metric out."
        )
    for kernel in kernels:
        check_kernel_in_metric(Linear() if options.is_identity else kernel)


def in_metric(
    seen: ColumnPass,
    options: FitOptions,
    pairs: Sequence[Pair],
    *,
    deadline: float | None = None,
    n_slots: int = 1,
) -> tuple[list[Contender], LearntMetric | None]:
    """Return the column pass in the metric of the options, of several the best first.

    Beyond a deadline, a reading of time.perf_counter(), no more rounds begin; then each pair has
    its best round among the contenders.
    """
    metric, learnt = options.metric, None
    if metric is None:
        return [Contender(ISOTROPIC, seen, pairs)], None
    with blas_threads(1):  # roots are part of the result
        if isinstance(metric, GivenMetric):
            linear = metric.linear(seen.standardizer.columns)
            return [Contender(metric.name, seen.in_metric(linear), pairs)], None
        learnt = learnt_metric(seen, options, pairs, deadline, n_slots)
        return list(learnt.contenders.values()), learnt


def learnt_metric(
    seen: ColumnPass,
    options: FitOptions,
    pairs: Sequence[Pair],
    deadline: float | None,
    n_slots: int,
) -> LearntMetric:
    """Learn a metric for each of some kernels and maps, and return those that predict best.

    Two kernels of every map have a first metric; the best two pairs of these go on.
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), "Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models".
    """
    begun = time.perf_counter()
    how: Any = {"learning": learning_of(options.metric)}
    has_time = deadline is not None and deadline - begun > _MORE_SECONDS
    most = _MORE_COMPONENTS if has_time else _COMPONENTS
    how["most_components"] = min(options.n_components, most)
    options = replace(options, n_components=min(options.n_components, _COMPONENTS))
    # In the order of their hashes, so that the first are a sample too.
    n_rows = large_sample(seen.standardizer.n_features + seen.sample.y.shape[1])
    rows = seen.sample.X[:n_rows]
    weights = None if seen.weights is None else seen.weights[:n_rows]
    sample = Sample(rows, weights, shared(rows), shared(seen.targets[:n_rows]), shared(weights))
    promising, flops = _promising(sample, seen.standardizer, options, pairs)
    how |= {"n_rows": len(rows), "most_bracketed": len(rows)}
    if deadline is not None:
        seconds = (deadline - time.perf_counter()) / len(promising)
        n_targets = seen.targets.shape[1]
        how["n_rows"] = _rows_within(
            seconds * n_slots, len(rows), seen.standardizer, options, n_targets
        )
        how["most_bracketed"] = _MANY_ROWS
    found, least, took = list[list[Round]](), list[float](), list[float]()
    rounds = [
        rounds_of(
            sample, seen.standardizer, replace(options, feature_map=name), kernel=kernel, **how
        )
        for kernel, name in promising
    ]
    for mine in rounds:
        some = [(one, time.perf_counter()) for one in islice(mine, _FIRST_ROUNDS)]
        found.append([one for one, _ in some])
        least.append(min(one.best.relative_mse for one, _ in some))
        took.append(some[-1][1] - some[0][1])
    for i in np.argsort(least, kind="stable")[:_GO_ON].tolist():
        last = took[i]
        while True:
            before = time.perf_counter()
            expected = _GROWTH * last if found[i][-1].grows else last
            is_late = deadline is not None and before + expected > deadline
            if is_late or (more := next(rounds[i], None)) is None:
                break
            found[i].append(more)
            last = time.perf_counter() - before
    every = [each for some in found for each in some]
    contenders = {}
    for place in _best(every) if deadline is None else _best_of_pairs(every):
        each = every[place]
        linear = each.standardizer.linear
        name, pair = ISOTROPIC if linear is None else LEARNT, (each.best.kernel, each.feature_map)
        contenders[place] = Contender(name, seen.in_metric(linear), [pair])
    return LearntMetric(
        tuple(each.as_dict() for each in every),
        contenders,
        Spent(flops + sum(each.flops for each in every), time.perf_counter() - begun),
    )


def _rows_within(
    seconds: float, n_rows: int, plain: Standardizer, options: FitOptions, n_targets: int
) -> int:
    """Return as many of the rows as the first rounds of a pair take so many seconds of a core for.

    But a thousand at least, and so many that directions of all inputs can be told.
    """
    rate = rough_flops_per_second(options.precision) / _CORES
    fewest = max(_FEWEST_TIMED, math.ceil(ROWS_AN_INPUT * len(plain.columns) / TRAINING))
    while n_rows > fewest:
        trial = HeldOutTrial.of(options, plain, n_rows)
        D = trial.n_components
        a_trial = trial.flops + _SOLVING * D**3 + n_targets * D * (n_rows + _SOLVING * D)
        if _FIRST_TRIALS * a_trial <= seconds * rate:
            break
        n_rows = max(n_rows - n_rows // 4, fewest)
    return n_rows


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


def _best_of_pairs(every: Sequence[Round]) -> list[int]:
    """Return the places of the best round of every kernel and map, and of plain distances.

    Errors on other rows say nothing beside those on more, which come first.
    """
    errors = [(-each.n_rows, each.best.relative_mse) for each in every]
    ranked = sorted(range(len(every)), key=errors.__getitem__)
    pairs = [(each.best.kernel.name, each.feature_map) for each in every]
    firsts = {pairs[i]: i for i in reversed(ranked)}
    plain = next(i for i in ranked if every[i].standardizer.linear is None)
    return [i for i in ranked if i in {plain, *firsts.values()}]


def _promising(
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
