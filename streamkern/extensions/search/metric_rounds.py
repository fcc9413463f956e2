"""Rounds of a metric, of one kernel and map: a fit, its gradients, and the metric they say."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.choice.held_out_fit import HeldOutFit, HeldOutResult, far_steps
from streamkern.choice.input_weights import ROWS_AN_INPUT
from streamkern.choice.small_fit import Sample
from streamkern.choice.time_limit import OutOfTimeError
from streamkern.engine.scheduler import compute, delayed
from streamkern.extensions.search.budget import LEARNING, run_in_time
from streamkern.features import Standardizer
from streamkern.features.metric import learning_of, metric_of, root_of
from streamkern.parameters.fit_options import FitOptions

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
    fit = HeldOutFit.of(options, plain.with_linear(weights), n_rows)
    all_rows = len(sample.rows)
    most_components = fit.sized(all_rows, most_components).n_components
    few = fit.n_fitted < ROWS_AN_INPUT * len(plain.columns)
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

    fit: HeldOutFit
    best: HeldOutResult
    own: HeldOutResult
    step: int  # of the best, in half octaves from its own


def _length_scale(
    fit: HeldOutFit, sample: Sample, kernel: Any, steps: Sequence[int], most: int, *, far: bool
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
        kind = own.name, fit.options.feature_map, fit.n_rows, fit.n_components
        made = run_in_time(sample.clock, calls, LEARNING, kind=kind)
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
