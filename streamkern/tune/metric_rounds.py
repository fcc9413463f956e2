"""The rounds of one kernel and map: fit, gradients, a new metric, and again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.engine.scheduler import run, run_all, task
from streamkern.features.metric import metric_of, root_of
from streamkern.tune.candidates import Contender
from streamkern.tune.kernel_trials import ISOTROPIC, LEARNT
from streamkern.tune.metric_trial import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern._typing import Floats
    from streamkern.features import Standardizer
    from streamkern.features.metric import Learning
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.tune.column_pass import Survey
    from streamkern.tune.metric_trial import Sample, Tried

# Half octaves about the kernel's own length scale, in the first round; later about the last best.
_FIRST, _NEXT = (-4, -3, -2, -1, 0, 1, 2), (-1, 0, 1)
_MOST_STEPS = 4
# Fewer rows to fit, for every input, say nothing of directions.
_ROWS_AN_INPUT = 10
# Eigenvalues that are told of the metric of a round.
_SHOWN = 10


@dataclass(frozen=True)
class Round:
    """A fit in one metric, on the sample.

    Parameters
    ----------
    kernel, feature_map : str
    number : int
        0 is the one of plain distances.
    length_scale : float
        The best one.
    relative_mse : float
        Mean squared error held out over the variance of the target; the mean over targets.
    alpha : float
        The best penalty, in the units of the trial.
    n_rows, n_components : int
        Of the trial.
    eigenvalues : tuple of float
        The largest of the metric, as parts of their sum.
    """

    kernel: str
    feature_map: str
    number: int
    length_scale: float
    relative_mse: float
    alpha: float
    n_rows: int
    n_components: int
    eigenvalues: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return vars(self) | {"eigenvalues": list(self.eigenvalues)}


class Found(NamedTuple):
    """A round, with what the next one needs."""

    number: int
    best: Tried
    feature_map: str
    standardizer: Standardizer
    n_rows: int
    flops: float

    def contender(self, seen: Survey) -> Contender:
        """Return what goes on from the round."""
        linear = self.standardizer.linear
        name = ISOTROPIC if linear is None else LEARNT
        return Contender(name, turned(seen, linear), [(self.best.kernel, self.feature_map)])

    def described(self) -> Round:
        """Return what is told of the round."""
        linear, p = self.standardizer.linear, len(self.standardizer.columns)
        metric = metric_of(linear, np.arange(p), p)
        values = np.linalg.eigvalsh(metric)[::-1]
        return Round(
            self.best.kernel.name,
            self.feature_map,
            self.number,
            float(np.asarray(self.best.kernel.length_scale)),
            self.best.relative_mse,
            self.best.alpha,
            self.n_rows,
            len(self.best.coef),
            tuple((values / values.sum())[:_SHOWN].tolist()),
        )


def rounds_of(
    sample: Sample,
    plain: Standardizer,
    options: FitOptions,
    learning: Learning,
    kernel: Any,
) -> Iterator[Found]:
    """Yield the rounds of one kernel and map, up to the first that does no better than before."""
    n_rows = len(sample.rows)
    trial = Trial.of(options, plain, n_rows)
    steps: Sequence[int] = _FIRST
    least = np.inf
    for number in range(learning.n_rounds + 1):
        own = kernel.resolved(trial.standardizer(sample.rows), weights=sample.weights)
        chosen = task(trial.representatives, own, sample.X, sample.s, name="metric-landmarks")
        trial = replace(trial, made_from=run(chosen))
        tried: dict[int, Tried] = {}
        for _ in range(_MOST_STEPS):
            new = [step for step in steps if step not in tried]
            tasks = [trial.task(own, step, sample) for step in new]
            tried.update(zip(new, run_all(tasks), strict=True))
            middle = min(tried, key=lambda step: (tried[step].relative_mse, step))
            if {middle - 1, middle + 1} <= tried.keys():
                break
            steps = (middle - 1, middle, middle + 1)
        best = tried[middle]
        # Few rows say little of a length scale: in plain distances the kernel's own stays.
        taken = best if number or best.beats(tried[0]) else tried[0]
        flops = len(tried) * trial.flops
        yield Found(number, taken, options.feature_map, trial.standardizer, n_rows, flops)
        few = trial.n_training < _ROWS_AN_INPUT * len(plain.columns)
        if not best.relative_mse < least or number == learning.n_rounds or few:
            return
        least, steps = best.relative_mse, tuple(middle + step for step in _NEXT)
        outer = run(task(trial.gradients, best, sample.X, sample.s, name="metric-gradients"))
        metric = _linear(outer, diagonal=learning.diagonal or kernel.along_axes)
        trial = replace(trial, standardizer=plain.with_linear(metric), made_from=None)


def _linear(outer: Floats, *, diagonal: bool) -> Floats | None:
    """Return A of the metric of gradients, scaled so that the inputs weigh 1 on average."""
    trace = float(np.trace(outer))
    if not (np.isfinite(trace) and trace > 0):
        return None
    metric = outer * (len(outer) / trace)
    return root_of(np.diag(np.diagonal(metric)) if diagonal else metric)


def turned(seen: Survey, linear: Floats | None) -> Survey:
    """Return a survey with a metric, as A of A^T A, or without one."""
    return replace(seen, standardizer=seen.standardizer.with_linear(linear))
