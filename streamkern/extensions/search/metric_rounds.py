"""The rounds of one kernel and map: fit, gradients, a new metric, and again.

Every fit is to a part of the sample; by its errors on the rest a round chooses its length scale and
penalty, and rounds are compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.choice.held_out_trial import HeldOutResult, HeldOutTrial, Sample, far_steps
from streamkern.choice.time_limit import OutOfTimeError
from streamkern.engine.scheduler import compute, delayed
from streamkern.extensions.search.budget import LEARNING, run_in_time
from streamkern.features import Standardizer
from streamkern.features.metric import learning_of, metric_of, root_of
from streamkern.parameters.fit_options import FitOptions

# Half octaves about the kernel's own length scale, in the first round; later about the last best.
_FIRST, _NEXT = (0, -1, 1, -2, 2, -3, -4), (-1, 0, 1)
_MOST_STEPS = 4
# Fewer rows to fit, for every input, say nothing of directions.
ROWS_AN_INPUT = 10
# Eigenvalues of the metric of a round that are reported.
_SHOWN = 10


class Round(NamedTuple):
    """A fit in one metric, on the sample, with what the next round needs."""

    number: int  # 0 is that of plain distances
    best: HeldOutResult
    feature_map: str
    standardizer: Standardizer
    n_rows: int
    flops: float
    grows: bool  # the next has more rows or features
    is_weighted: bool  # they began with weights by descent

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
    trial = HeldOutTrial.of(options, plain.with_linear(weights), n_rows)
    every = replace(trial, n_rows=len(sample.rows)).with_components(most_components)
    trials = [trial]
    few = trial.n_training < ROWS_AN_INPUT * len(plain.columns)
    diagonal = True if kernel.along_axes else learning.diagonal
    kinds = [False, True] if diagonal is None else [diagonal]
    steps: Sequence[int] = _FIRST
    least, begun, number, side, going_on = np.inf, 0, 0, -1, trial
    while True:
        brackets = trials[0].n_rows <= most_bracketed
        most = _MOST_STEPS if brackets or not number else 1
        found = [_length_scale(one, sample, kernel, steps, most, far=not number) for one in trials]
        trial, best, own, middle, _ = min(found, key=lambda each: each.best.relative_mse)
        # Few rows say little of a length scale: at first the kernel's own stays.
        taken = best if number or best.beats(own) else own
        flops = sum(each.n_tried for each in found) * trial.flops
        told = 0 if trial.standardizer.linear is None else number + is_weighted
        is_better = best.relative_mse < least
        if is_better:
            least, going_on = best.relative_mse, trial
            if number and middle != steps[-1]:  # the last one was no better
                side = -side
            steps = [middle + step for step in _NEXT] if brackets else (middle, middle + side)
        grows = not is_better or number - begun == learning.n_rounds
        how = options.feature_map, trial.standardizer, trial.n_rows, flops, grows, is_weighted
        yield Round(told, taken, *how)
        if few:
            return
        if grows:
            n, D = going_on.n_rows, going_on.n_components
            more = min(2 * n, every.n_rows), max(D, min(2 * D, every.n_components))
            if more == (n, D):
                return
            going_on = replace(going_on, n_rows=more[0]).with_components(more[1])
            trials, least, begun = [going_on], np.inf, number + 1
        else:
            slopes = "metric-gradients", trial.gradients, best, sample.X, sample.s
            outer = next(iter(run_in_time(sample.clock, [slopes], LEARNING)), None)
            if outer is None:
                return
            metrics = [plain.with_linear(_linear(outer, diagonal=kind)) for kind in kinds]
            trials = [replace(trial, standardizer=each, made_from=None) for each in metrics]
        number += 1


class BestLengthScale(NamedTuple):
    """The best length scale of a kernel, and its own, of so many that were tried."""

    trial: HeldOutTrial
    best: HeldOutResult
    own: HeldOutResult
    step: int  # of the best, in half octaves from its own
    n_tried: int


def _length_scale(
    trial: HeldOutTrial, sample: Sample, kernel: Any, steps: Sequence[int], most: int, *, far: bool
) -> BestLengthScale:
    """Try length scales so many half octaves from the kernel's own, and about the best of them.

    In the first round, those that are far from it as well.
    """
    rows = trial.standardizer(sample.rows)
    own = kernel.resolved(rows, weights=sample.weights)
    if far:
        steps = [*steps, *far_steps(own, rows)]
    chosen = delayed(trial.representatives, own, sample.X, sample.s, name="metric-landmarks")
    trial = replace(trial, made_from=compute(chosen))
    tried: dict[int, HeldOutResult] = {}
    for _ in range(most):
        new = [step for step in steps if step not in tried]
        calls = [trial.call(own, step, sample) for step in new]
        made = run_in_time(sample.clock, calls, LEARNING)
        tried.update(zip(new, made, strict=False))
        if not tried:
            raise OutOfTimeError
        middle = min(tried, key=lambda step: (tried[step].relative_mse, step))
        if {middle - 1, middle + 1} <= tried.keys() or len(made) < len(new):
            break
        steps = (middle - 1, middle, middle + 1)
    return BestLengthScale(trial, tried[middle], tried.get(0, tried[middle]), middle, len(tried))


def _linear(outer: Floats, *, diagonal: bool) -> Floats | None:
    """Return A of the metric of gradients, scaled so that the inputs weigh 1 on average."""
    trace = float(np.trace(outer))
    if not (np.isfinite(trace) and trace > 0):
        return None
    metric = outer * (len(outer) / trace)
    return root_of(np.diag(np.diagonal(metric)) if diagonal else metric)
