"""Learning the metric of a kernel on a sample of the rows, before the pass that fits.

The average gradient outer product of a fitted function says which directions of the inputs it
changes along.  Taken for the metric of the kernel, it makes those directions count, and the next
function fits better; so a few rounds of fit, gradients and new metric follow each other, all on the
spread sample of the survey, at a reduced number of features.  A part of the sample is held out: by
it every round chooses its length scale and penalty, and the rounds are compared, the one of plain
distances among them.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.errors import DataError
from streamkern.features import Standardized
from streamkern.kernels import Linear
from streamkern.metric import (
    GivenMetric,
    check_kernel_in_metric,
    learning_of,
    metric_of,
    root_of,
)
from streamkern.plan import fit_flops, large_sample
from streamkern.predictor import Predictor
from streamkern.scheduling import run, run_all, shared, task
from streamkern.selection import default_grid
from streamkern.solve import Eigenbasis
from streamkern.sources import Block
from streamkern.statistics import GradientOuterProduct, Moments
from streamkern.threads import blas_threads
from streamkern.tuning import ISOTROPIC, LEARNT, Contender, Spent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern._typing import Array, Floats
    from streamkern.datamoments import DataMoments
    from streamkern.features import FeatureMap, Standardizer
    from streamkern.fitoptions import FitOptions
    from streamkern.kernels import Kernel, ShiftInvariantKernel
    from streamkern.metric import Learning
    from streamkern.sources import Source
    from streamkern.survey import Survey

# A kernel with a length scale, and the family of its maps.
Pair = tuple[Any, str]
# Kernels of every map that have a metric, chosen by fits of so many features to so many rows.
_KERNELS_A_MAP, _FEW_COMPONENTS, _FEW_ROWS = 2, 256, 4096
# Of several pairs, rounds that all have, the plain one included, and pairs that have more.
_FIRST_ROUNDS, _GO_ON = 2, 2
# Features of a round at the least and most, and of rows a feature at the least.
_COMPONENTS, _ROWS_A_FEATURE = (256, 1024), 2
# Of the sample, the part that fits.
_TRAINING = 3 / 4
# Half octaves about the kernel's own length scale, in the first round; later about the last best.
_FIRST, _NEXT, _COARSE = (-4, -3, -2, -1, 0, 1, 2), (-1, 0, 1), (-4, -2, 0, 2)
_MOST_STEPS = 4
_BLOCK_ROWS, _SHIFT_ROWS = 4096, 2048
_FEWEST_ROWS = 60
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


@dataclass(frozen=True)
class LearntMetric:
    """What the rounds led to.

    Parameters
    ----------
    rounds : tuple of Round
        Of every kernel and map, one after the other.
    contenders : dict of int to Contender
        The best rounds of every family of maps, and of plain distances, by their places among
        `rounds`; the best first, of one kernel with its length scale.
    spent : Spent
    """

    rounds: tuple[Round, ...]
    contenders: dict[int, Contender]
    spent: Spent

    def reported(self, moments: DataMoments, place: int = 0) -> DataMoments:
        """Return moments whose report says how the metric was learnt, and which round was kept.

        Parameters
        ----------
        moments : DataMoments
        place : int
            Of the contender whose metric they have, in the order of `contenders`.
        """
        report, seconds = moments.report, moments.report["seconds"]
        kept = list(self.contenders)[place]
        rounds = {"rounds": [each.as_dict() for each in self.rounds], "kept": kept}
        spent = {"metric": self.spent.seconds, "total": seconds["total"] + self.spent.seconds}
        changed = {"metric": report["metric"] | rounds, "seconds": seconds | spent}
        return replace(moments, report=report | changed)


def check_metric_of(options: FitOptions, kernels: Sequence[Kernel], source: Source) -> None:
    """Raise an error unless a metric can be learnt, or taken, for these kernels and rows.

    Raises
    ------
    ParameterError
        If there is a metric, and a kernel has no length scale, or one for every input, or parts.
    DataError
        If a metric is to be learnt of too few rows.
    """
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
    seen: Survey, options: FitOptions, pairs: Sequence[Pair]
) -> tuple[list[Contender], LearntMetric | None]:
    """Return the survey with the metric that the options say, and how it was learnt if it was.

    Where it was, there are several to choose from, the best first, each with a pair of its own.

    Parameters
    ----------
    seen : Survey
        With a sample of `options.sample_rows` where the metric is to be learnt.
    options : FitOptions
    pairs : sequence of (Kernel, str)
        Kernels and families of maps.
    """
    metric, learnt = options.metric, None
    if metric is None:
        return [Contender(ISOTROPIC, seen, pairs)], None
    with blas_threads(1):  # roots are part of the result
        if isinstance(metric, GivenMetric):
            linear = metric.linear(seen.standardizer.columns)
            return [Contender(metric.name, _turned(seen, linear), pairs)], None
        learnt = learnt_metric(seen, options, pairs)
        return list(learnt.contenders.values()), learnt


def _turned(seen: Survey, linear: Floats | None) -> Survey:
    return replace(seen, standardizer=seen.standardizer.with_linear(linear))


def learnt_metric(seen: Survey, options: FitOptions, pairs: Sequence[Pair]) -> LearntMetric:
    """Learn a metric for each of some kernels and maps, and return those that predict best.

    The best two kernels of every map have a first metric; the best two pairs of these go on.

    Parameters
    ----------
    seen : Survey
        With a large sample.
    options : FitOptions
        With a metric that is to be learnt.
    pairs : sequence of (Kernel, str)
        Kernels and families of maps, in the order that ties go by.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), "Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models".
    """
    begun = time.perf_counter()
    learning = learning_of(options.metric)
    assert learning is not None  # noqa: S101  for the type checker
    # In the order of their hashes, so that the first are a sample too.
    n_rows = large_sample(seen.standardizer.n_features + seen.sample.y.shape[1])
    rows = seen.sample.X[:n_rows]
    weights = None if seen.weights is None else seen.weights[:n_rows]
    sent = weights if weights is None else shared(weights)
    sample = _Sample(rows, weights, shared(rows), shared(seen.targets[:n_rows]), sent)
    promising, flops = _promising(sample, seen.standardizer, options, pairs)
    rounds = [
        _rounds(sample, seen.standardizer, replace(options, feature_map=name), learning, kernel)
        for kernel, name in promising
    ]
    found = [list(islice(each, _FIRST_ROUNDS)) for each in rounds]
    ahead = np.argsort([_least(some) for some in found], kind="stable")
    for i in sorted(ahead[:_GO_ON].tolist()):
        found[i] += rounds[i]
    every = [each for some in found for each in some]
    flops += sum(each.flops for each in every)
    return LearntMetric(
        tuple(each.described() for each in every),
        {place: every[place].contender(seen) for place in _best(every)},
        Spent(flops, time.perf_counter() - begun),
    )


def _best(every: Sequence[_Found]) -> list[int]:
    """Return the places of the best rounds of every map, and of plain distances, the best first."""
    firsts: dict[str, int] = {}
    plain: list[int] = []
    for i in np.argsort([each.best.relative_mse for each in every], kind="stable").tolist():
        firsts.setdefault(every[i].feature_map, i)
        if every[i].standardizer.linear is None:
            plain.append(i)
    found = [*firsts.values(), plain[0]]
    return sorted(dict.fromkeys(found), key=lambda i: (every[i].best.relative_mse, i))


def _promising(
    sample: _Sample, plain: Standardizer, options: FitOptions, pairs: Sequence[Pair]
) -> tuple[Sequence[Pair], float]:
    """Return the best kernels of every map, by small fits in plain distances, and their flops."""
    if max(Counter(name for _, name in pairs).values()) <= _KERNELS_A_MAP:
        return pairs, 0.0
    n_rows, tasks, flops = min(len(sample.rows), _FEW_ROWS), [], 0.0
    for kernel, name in pairs:
        few = replace(options, feature_map=name, n_components=_FEW_COMPONENTS)
        trial = _Trial.of(few, plain, n_rows)
        own = kernel.resolved(plain(sample.rows), weights=sample.weights)
        tasks += [trial.task(own, step, sample) for step in _COARSE]
        flops += len(_COARSE) * trial.flops
    errors = np.array([tried.relative_mse for tried in run_all(tasks)]).reshape(len(pairs), -1)
    kept: dict[str, list[int]] = {}
    for i in np.argsort(errors.min(axis=1), kind="stable").tolist():
        kept.setdefault(pairs[i][1], []).append(i)
    places = sorted(i for best in kept.values() for i in best[:_KERNELS_A_MAP])
    return [pairs[i] for i in places], flops


def _least(rounds: Sequence[_Found]) -> float:
    return min(each.best.relative_mse for each in rounds)


class _Sample(NamedTuple):
    """The rows of the sample and their weights, here and where the tasks run; the targets there."""

    rows: Array
    weights: Floats | None
    X: Any
    y: Any
    s: Any


class _Tried(NamedTuple):
    """What one length scale came to; coefficients are those of the training part."""

    kernel: ShiftInvariantKernel
    relative_mse: float
    alpha: float
    coef: Floats


class _Found(NamedTuple):
    """A round, with what the next one needs."""

    number: int
    best: _Tried
    feature_map: str
    standardizer: Standardizer
    n_rows: int
    flops: float

    def contender(self, seen: Survey) -> Contender:
        """Return what goes on from the round."""
        linear = self.standardizer.linear
        name = ISOTROPIC if linear is None else LEARNT
        return Contender(name, _turned(seen, linear), [(self.best.kernel, self.feature_map)])

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


def _rounds(
    sample: _Sample,
    plain: Standardizer,
    options: FitOptions,
    learning: Learning,
    kernel: Any,
) -> Iterator[_Found]:
    """Yield the rounds of one kernel and map, up to the first that does no better than before."""
    n_rows = len(sample.rows)
    trial = _Trial.of(options, plain, n_rows)
    steps: Sequence[int] = _FIRST
    least = np.inf
    for number in range(learning.n_rounds + 1):
        own = kernel.resolved(trial.standardizer(sample.rows), weights=sample.weights)
        chosen = task(trial.representatives, own, sample.X, sample.s, name="metric-landmarks")
        trial = replace(trial, made_from=run(chosen))
        tried: dict[int, _Tried] = {}
        for _ in range(_MOST_STEPS):
            new = [step for step in steps if step not in tried]
            tasks = [trial.task(own, step, sample) for step in new]
            tried.update(zip(new, run_all(tasks), strict=True))
            middle = min(tried, key=lambda step: (tried[step].relative_mse, step))
            if {middle - 1, middle + 1} <= tried.keys():
                break
            steps = (middle - 1, middle, middle + 1)
        best = tried[middle]
        flops = len(tried) * trial.flops
        yield _Found(number, best, options.feature_map, trial.standardizer, n_rows, flops)
        if not best.relative_mse < least or number == learning.n_rounds:
            return
        least, steps = best.relative_mse, tuple(middle + step for step in _NEXT)
        outer = run(task(trial.gradients, best, sample.X, sample.s, name="metric-gradients"))
        metric = _linear(outer, learning)
        trial = replace(trial, standardizer=plain.with_linear(metric), made_from=None)


def _n_components(options: FitOptions, n_rows: int) -> int:
    """Return how many features a round takes."""
    fewest, most = _COMPONENTS
    D = min(max(options.n_components, fewest), most)
    D = min(D, max(int(_TRAINING * n_rows) // _ROWS_A_FEATURE, 2))
    return D - D % 2


def _linear(outer: Floats, learning: Learning) -> Floats | None:
    """Return A of the metric of gradients, scaled so that the inputs weigh 1 on average."""
    trace = float(np.trace(outer))
    if not (np.isfinite(trace) and trace > 0):
        return None
    metric = outer * (len(outer) / trace)
    return root_of(np.diag(np.diagonal(metric)) if learning.diagonal else metric)


@dataclass(frozen=True)
class _Trial:
    """What all fits of a round have in common.

    Parameters
    ----------
    options : FitOptions
    standardizer : Standardizer
        With the metric.
    n_components : int
    n_rows : int
        Rows of the sample that count, the first ones; of these the first fit, and the others are
        held out.
    made_from : ndarray, optional
        What maps are drawn from, where that was found already.
    """

    options: FitOptions
    standardizer: Standardizer
    n_components: int
    n_rows: int
    made_from: Array | None = None

    @classmethod
    def of(cls, options: FitOptions, standardizer: Standardizer, n_rows: int) -> _Trial:
        """Return the fits to so many rows, at no more features than these can bear."""
        return cls(options, standardizer, _n_components(options, n_rows), n_rows)

    @property
    def n_training(self) -> int:
        """The number of rows that fit."""
        return int(_TRAINING * self.n_rows)

    @property
    def flops(self) -> float:
        """The multiply-adds of a fit."""
        return fit_flops(self.n_training, self.standardizer.n_outputs, self.n_components, 1)

    def task(self, kernel: ShiftInvariantKernel, step: int, sample: _Sample) -> Any:
        """Return the task of a fit, at so many half octaves from the kernel's length scale."""
        stretched = kernel.stretched(2.0 ** (step / 2))
        return task(self, stretched, sample.X, sample.y, sample.s, name="metric-try")

    def representatives(
        self, kernel: ShiftInvariantKernel, X: Array, weights: Floats | None
    ) -> Array | None:
        """Return what maps of the kernel are drawn from at every length scale, if that is so."""
        there = slice(self.n_training)
        rows, weights = self.standardizer(X[there]), None if weights is None else weights[there]
        return self.options.map_of(kernel, self.n_components).representatives(rows, weights)

    def __call__(
        self, kernel: ShiftInvariantKernel, X: Array, y: Floats, weights: Floats | None
    ) -> _Tried:
        """Fit the training part at the best of a grid of penalties."""
        X, y = X[: self.n_rows], y[: self.n_rows]
        counted = None if weights is None else weights[self.n_training : self.n_rows]
        feature_map, intercept = self._map(kernel, X, weights), self.options.fit_intercept
        D, dtype = feature_map.n_components, self._dtype
        features = np.empty((max(len(X) - self.n_training, _SHIFT_ROWS), D), dtype)
        some = features[: min(self.n_training, _SHIFT_ROWS)]
        feature_map.evaluate(X[: len(some)], some)
        shift = some.mean(axis=0, dtype=float)
        moments = Moments(
            feature_map, y.shape[1], precision=self.options.precision, feature_shift=shift
        )
        moments.update(self._training(X, y, weights))
        basis = Eigenbasis.of(moments.centred(intercept=intercept), self.n_training - intercept)
        held, targets = X[self.n_training :], y[self.n_training :]
        features = features[: len(held)]
        feature_map.evaluate(held, features, shift.astype(dtype))
        best = _Tried(kernel, np.inf, 0.0, np.zeros((D, y.shape[1])))
        for alpha in default_grid(basis.spectrum).tolist():
            shifted = basis.spectrum.values[:, None] + alpha
            coef = basis.vectors @ (basis.spectrum.projections / shifted)
            beside = feature_map.scale * shift - basis.feature_mean
            constant = basis.target_mean + beside @ coef
            errors = features @ (feature_map.scale * coef).astype(dtype) + constant - targets
            squares = np.square(errors).mean(axis=1)
            relative_mse = float(np.average(squares, weights=counted))
            if relative_mse < best.relative_mse:
                best = _Tried(kernel, relative_mse, alpha, coef)
        return best

    def gradients(self, best: _Tried, X: Array, weights: Floats | None) -> Floats:
        """Return the average gradient outer product on the training part, before the metric."""
        feature_map = self._map(best.kernel, X, weights)
        predictor = self._predictor(feature_map, best.coef, np.zeros(best.coef.shape[1]))
        outer = GradientOuterProduct(predictor)
        outer.update(self._training(X, np.empty((len(X), 0)), weights))
        return outer.mean

    @property
    def _dtype(self) -> Any:
        return np.float32 if self.options.precision == "single" else np.float64

    def _map(self, kernel: ShiftInvariantKernel, X: Array, weights: Floats | None) -> FeatureMap:
        rows, inner = self.made_from, self.options.map_of(kernel, self.n_components)
        if rows is None:
            there = slice(self.n_training)
            weights = None if weights is None else weights[there]
            rows = inner.chosen(self.standardizer(X[there]), weights)
        return Standardized(self.standardizer, inner.draw(self.standardizer.n_outputs, rows))

    def _predictor(self, feature_map: FeatureMap, coef: Floats, intercept: Floats) -> Predictor:
        return Predictor(feature_map, coef, intercept, precision=self.options.precision)

    def _training(self, X: Array, y: Floats, weights: Floats | None) -> Iterator[Block]:
        for start in range(0, self.n_training, _BLOCK_ROWS):
            rows = slice(start, min(start + _BLOCK_ROWS, self.n_training))
            yield Block(X[rows], y[rows], start, None if weights is None else weights[rows])
