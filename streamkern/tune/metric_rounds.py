"""The rounds of one kernel and map: fit, gradients, a new metric, and again.

Every fit is to a part of the sample; by its errors on the rest a round chooses its length scale and
penalty, and rounds are compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import compute, delayed, scatter
from streamkern.features import FeatureMap, FromRows, Standardized, Standardizer, drawn_from
from streamkern.features.metric import learning_of, metric_of, root_of
from streamkern.kernels import ShiftInvariantKernel
from streamkern.parameters.cost_estimate import fit_flops
from streamkern.parameters.fit_options import FitOptions
from streamkern.passes.column_summary import ColumnSummary
from streamkern.predict.gradients import GradientOuterProduct
from streamkern.predict.predictor import Predictor
from streamkern.solve import Cholesky
from streamkern.solve.penalty_grid import even_grid
from streamkern.solve.ridge import largest_eigenvalue
from streamkern.solve.solution import precision_floor
from streamkern.sources import Block
from streamkern.statistics import dtype_of_features, precision_of_features
from streamkern.tune.budget import LEARNING, Clock, run_in_time
from streamkern.tune.settings import far_steps
from streamkern.tune.time_limit import OutOfTimeError, look_at_clock
from streamkern.tune.trials import SHIFT_ROWS, Targets, moments_about

# Half octaves about the kernel's own length scale, in the first round; later about the last best.
_FIRST, _NEXT = (0, -1, 1, -2, 2, -3, -4), (-1, 0, 1)
_MOST_STEPS = 4
# Fewer rows to fit, for every input, say nothing of directions.
ROWS_AN_INPUT = 10
# Eigenvalues of the metric of a round that are reported.
_SHOWN = 10
# Features of a trial at the least, and rows a feature.
_FEWEST_COMPONENTS, _ROWS_A_FEATURE = 256, 2
# How far from the best penalty of the grid, at first the middle one, the next are that are tried.
_WIDTHS = 8, 4, 2, 1
# Of the sample, the part that fits.
TRAINING = 3 / 4


class Sample(NamedTuple):
    """The rows of the sample and their weights, here and where the tasks run; the targets there."""

    rows: Array
    weights: Floats | None
    X: Any
    y: Any
    s: Any
    clock: Clock | None = None  # which says whether more are tried

    @classmethod
    def of(cls, summary: ColumnSummary, n_rows: int, clock: Clock | None = None) -> "Sample":
        """Return the first rows, which are in the order of their hashes: a sample too."""
        rows, weights = summary.sample.X[:n_rows], summary.weights
        weights = None if weights is None else weights[:n_rows]
        sent = scatter(rows), scatter(summary.targets[:n_rows]), scatter(weights)
        return cls(rows, weights, *sent, clock)


class HeldOutResult(NamedTuple):
    """What one length scale came to."""

    kernel: ShiftInvariantKernel
    relative_mse: float
    alpha: float
    coef: Floats  # of the training part
    squares: Floats  # of the errors of rows that are held out, the means over targets
    weights: Floats  # how often these rows count

    def beats(self, other: "HeldOutResult") -> bool:
        """Return whether the error is smaller by more than a standard error of the difference."""
        less, weights = other.squares - self.squares, self.weights
        mean = np.average(less, weights=weights)
        return bool(mean * weights.sum() > np.linalg.norm(weights * (less - mean)))


@dataclass(frozen=True)
class HeldOutTrial:
    """Fits of one round: to the first rows of the sample, with errors on the others that count."""

    options: FitOptions
    standardizer: Standardizer  # with the metric
    n_components: int
    n_rows: int
    made_from: Array | None = None  # what maps are drawn from, where that was found already

    @classmethod
    def of(cls, options: FitOptions, standardizer: Standardizer, n_rows: int) -> "HeldOutTrial":
        """Return the fits to so many rows, at no more features than these can bear."""
        made = cls(options, standardizer, options.n_components, n_rows)
        return made.with_components(max(options.n_components, _FEWEST_COMPONENTS))

    def with_components(self, D: int) -> "HeldOutTrial":
        D = min(D, max(self.n_training // _ROWS_A_FEATURE, 2))
        return replace(self, n_components=D - D % 2, made_from=None)

    @property
    def n_training(self) -> int:
        return int(TRAINING * self.n_rows)

    @property
    def flops(self) -> float:
        return fit_flops(self.n_training, self.standardizer.n_outputs, self.n_components, 1)

    def call(self, kernel: ShiftInvariantKernel, step: int, sample: Sample) -> tuple[Any, ...]:
        stretched = kernel.stretched(2.0 ** (step / 2))
        return "metric-try", self, stretched, sample.X, sample.y, sample.s

    def representatives(
        self, kernel: ShiftInvariantKernel, X: Array, weights: Floats | None
    ) -> Array | None:
        """Return what maps of the kernel are drawn from at every length scale, if that is so."""
        inner = self.options.map_of(kernel, self.n_components)
        given = self._standardized(X, weights)
        return inner.chosen(*given) if isinstance(inner, FromRows) else None

    def __call__(
        self, kernel: ShiftInvariantKernel, X: Array, y: Floats, weights: Floats | None
    ) -> HeldOutResult:
        """Fit the training part at the best of a grid of penalties."""
        n, X, y = self.n_training, X[: self.n_rows], y[: self.n_rows]
        counted = np.ones(len(X) - n) if weights is None else weights[n : self.n_rows]
        dtype = dtype_of_features(self.options.precision)
        feature_map = self._map(kernel, X, weights)
        features = np.empty((max(len(X) - n, SHIFT_ROWS), feature_map.n_components), dtype)
        some = features[: min(n, SHIFT_ROWS)]
        moments = moments_about(feature_map, X, some, y.shape[1])
        moments.update(self._training(X, y, weights))
        centred = moments.centred(intercept=self.options.fit_intercept)
        held, targets, shift = X[n:], y[n:], moments.feature_shift
        features = features[: len(held)]
        feature_map.evaluate(held, features, shift.astype(dtype))
        beside = feature_map.scale * shift - centred.feature_mean
        largest = largest_eigenvalue(centred.gram)
        alphas = even_grid(precision_floor(centred, largest), largest)

        def tried(alpha: float) -> HeldOutResult:
            look_at_clock()
            try:
                coef = Cholesky.of_shifted(centred.gram, alpha, 1).solve(centred.cross)
            except np.linalg.LinAlgError:  # so small a penalty is lost in rounding
                return HeldOutResult(kernel, np.inf, alpha, centred.cross, counted, counted)
            constant = centred.target_mean + beside @ coef
            errors = features @ (feature_map.scale * coef).astype(dtype) + constant - targets
            squares = np.square(errors).mean(axis=1)
            error = float(np.average(squares, weights=counted))
            return HeldOutResult(kernel, error, alpha, coef, squares, counted)

        found: dict[int, HeldOutResult] = {}
        for width in _WIDTHS:
            near = min(found, key=lambda i: found[i].relative_mse, default=len(alphas) // 2)
            for i in (near - width, near, near + width):
                if i not in found and 0 <= i < len(alphas):
                    found[i] = tried(float(alphas[i]))
        return min(found.values(), key=lambda each: each.relative_mse)

    def gradients(self, best: HeldOutResult, X: Array, weights: Floats | None) -> Floats:
        """Return the average gradient outer product on the training part, before the metric."""
        feature_map, zero = self._map(best.kernel, X, weights), np.zeros(best.coef.shape[1])
        precision = precision_of_features(self.options.precision)
        outer = GradientOuterProduct(Predictor(feature_map, best.coef, zero, precision=precision))
        outer.update(self._training(X, np.empty((len(X), 0)), weights))
        return outer.mean

    def _map(self, kernel: ShiftInvariantKernel, X: Array, weights: Floats | None) -> FeatureMap:
        inner, known = self.options.map_of(kernel, self.n_components), self.made_from
        if known is None:
            drawn = drawn_from(inner, *self._standardized(X, weights))
        else:
            drawn = inner.draw(known.shape[1], known)
        return Standardized(self.standardizer, drawn)

    def _standardized(self, X: Array, weights: Floats | None) -> tuple[Array, Floats | None]:
        there = slice(self.n_training)
        return self.standardizer(X[there]), None if weights is None else weights[there]

    def _training(self, X: Array, y: Floats, weights: Floats | None) -> Iterator[Block]:
        return Targets(y, weights).blocks(np.arange(self.n_training), X)


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
