"""Choosing kernel and length scale on a sample of the rows, before the pass that fits.

The survey of the columns brings a spread sample along.  On it, many length scales are tried at a
reduced number of features, by cross-validation over the whole grid of penalties; the best of them,
and what is near, go on to twice as many features, and so on.  Length scales share their
projections: only what the cosines are taken of differs.  The winner gets the one full pass.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError, ParameterError
from streamkern.features import Identity, RandomFourierFeatures
from streamkern.features.base import cached_slices
from streamkern.kernels import ShiftInvariantKernel
from streamkern.scheduling import current_resources, run_all, shared, task
from streamkern.scratch import Scratch
from streamkern.selection import (
    PenaltyCurve,
    default_grid,
    held_out_errors,
)
from streamkern.solve import Eigenbasis
from streamkern.sources import Block
from streamkern.statistics import Moments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern._typing import Array, Floats
    from streamkern.fitoptions import FitOptions
    from streamkern.kernels import Kernel
    from streamkern.sources import Source
    from streamkern.survey import Survey

# A kernel, and what its length scale is multiplied by.
Candidate = tuple[ShiftInvariantKernel, float]
# Length scales are tried at these powers of 2 times the kernel's own.
_OCTAVES = np.arange(-6, 7) / 2
# Features of the rungs, as shares of D; half octaves about the best that are tried on the next,
# where smaller scales do better than here, since more features resolve more; kernels that go on.
_RUNGS = ((1 / 8, (-2, -1, 0, 1), 3), (1 / 4, (-1, 0), 2), (1 / 2, (0,), 1))
_FEWEST_COMPONENTS = 128
_FOLDS = 3
_FEWEST_ROWS = 30
_BLOCK_ROWS = 4096
_SHIFT_ROWS = 2048
SEARCH_ROWS = 16384
_SAMPLE_BYTES = 128 << 20


def search_rows(n_columns: int) -> int:
    """Return how many rows the search may hold of so many inputs and targets."""
    return int(min(SEARCH_ROWS, max(_SAMPLE_BYTES // (8 * n_columns), 256)))


@dataclass(frozen=True)
class Attempt:
    """A kernel, tried on a sample.

    Parameters
    ----------
    kernel : str
    length_scale : float or tuple of float
    n_rows, n_components : int
        Of the trial.
    relative_mse : float
        Cross-validated mean squared error over the variance of the target, at the best penalty of
        the grid; the mean over targets.
    standard_error : float
        Of the same, across folds.
    alpha : float
        The best penalty, in the units of the trial.
    """

    kernel: str
    length_scale: Any
    n_rows: int
    n_components: int
    relative_mse: float
    standard_error: float
    alpha: float

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self) | {"length_scale": np.asarray(self.length_scale).tolist()}


@dataclass(frozen=True)
class Search:
    """What a search found.

    Parameters
    ----------
    kernel : ShiftInvariantKernel
        With the chosen length scale.
    attempts : tuple of Attempt
        In the order of the rungs, each in the order of length scales.
    seconds : float
    """

    kernel: ShiftInvariantKernel
    attempts: tuple[Attempt, ...]
    seconds: float

    @property
    def note(self) -> str:
        """One sentence where the chosen length scale is the shortest or longest tried, else ''."""
        scales = [_first(a.length_scale) for a in self.attempts if a.kernel == self.kernel.name]
        chosen = _first(self.kernel.length_scale)
        if min(scales) < chosen < max(scales):
            return ""
        return (
            f"the best length scale, {chosen:.4g}, is at the edge of those tried; search again "
            f"about it with --length-scale {chosen:.4g}."
        )


def _first(length_scale: Any) -> float:
    """Return the length scale, or the one of the first input."""
    return float(np.atleast_1d(length_scale)[0])


def check_searchable(kernels: Sequence[Kernel], options: FitOptions, source: Source) -> None:
    """Raise an error unless there are kernels with length scales to choose, and rows to do it on.

    Raises
    ------
    ParameterError
        If a kernel has no length scale, or one that does not fit the inputs.
    DataError
        If there are too few rows.
    """
    if options.is_identity or not kernels:
        raise ParameterError(
            "a search needs a kernel with a length scale and its random features, not the linear "
            "kernel or the identity map; fit it instead."
        )
    for kernel in kernels:
        if not isinstance(kernel, ShiftInvariantKernel):
            raise ParameterError(
                f"a search needs kernels that have a length scale, not {kernel!r}; leave it out, "
                f"or fit it."
            )
        kernel.check_inputs(source.n_features)
    if source.n_samples < _FEWEST_ROWS:
        raise DataError(
            f"a search needs {_FEWEST_ROWS} rows, but there are {source.n_samples}; add rows, or "
            f"fit with a length scale."
        )


def search(seen: Survey, options: FitOptions, kernels: Sequence[Any]) -> Search:
    """Choose among kernels and length scales on the sample of a survey.

    Parameters
    ----------
    seen : Survey
        With a sample of up to `search_rows`.
    options : FitOptions
    kernels : sequence of ShiftInvariantKernel
        Each is tried at 13 length scales, from an eighth of its own to eight times it.

    References
    ----------
    Jamieson and Talwalkar (2016), "Non-stochastic best arm identification and hyperparameter
    optimization", for successive halving.
    """
    begun = time.perf_counter()
    p, kept = seen.standardizer.n_features, seen.standardizer.columns
    rows = seen.standardizer(seen.sample.X)
    mean, variance = seen.columns.mean[p:], seen.columns.variance[p:]
    targets = (seen.sample.y - mean) / np.sqrt(np.where(variance > 0, variance, 1.0))
    X = shared(rows.astype(np.float32 if options.precision == "single" else np.float64))
    y = shared(targets)
    candidates = [
        (kernel, factor)
        for kernel in [kernel.resolved(rows, kept) for kernel in kernels]
        for factor in (2.0**_OCTAVES).tolist()
    ]
    attempts: list[Attempt] = []
    for share, steps, kernels_left in _RUNGS:
        D = int(max(share * options.n_components, min(_FEWEST_COMPONENTS, options.n_components)))
        D -= D % 2 if options.paired else 0
        tasks = [
            task(
                _Trial(options, kernel.restricted(kept), D),
                X,
                y,
                factors,
                name=f"try-{kernel.name}-{D}",
            )
            for kernel, factors in _shared_projections(candidates)
        ]
        tried = [attempt for some in run_all(tasks) for attempt in some]
        attempts += tried
        best = _best_of_each_kernel(candidates, tried)[: max(kernels_left, 1)]
        candidates = [
            (kernel, factor * 2.0 ** (step / 2)) for kernel, factor in best for step in steps
        ]
    kernel, factor = candidates[0]
    return Search(kernel.stretched(factor), tuple(attempts), time.perf_counter() - begun)


def _best_of_each_kernel(
    candidates: Sequence[Candidate], tried: Sequence[Attempt]
) -> list[Candidate]:
    """Return the best length scale of every kernel, the best kernel first."""
    scores = [attempt.relative_mse for attempt in tried]
    best: dict[int, Candidate] = {}
    for i in np.argsort(scores, kind="stable").tolist():
        best.setdefault(id(candidates[i][0]), candidates[i])
    return list(best.values())


def _shared_projections(
    candidates: Sequence[Candidate],
) -> Iterator[tuple[ShiftInvariantKernel, list[float]]]:
    """Deal candidates to tasks: some factors of one kernel each, in the order of candidates."""
    resources = current_resources()
    slots = max(resources.n_workers, 1) * resources.n_threads
    size = max(-(-len(candidates) // slots), 1)
    start = 0
    while start < len(candidates):
        kernel = candidates[start][0]
        factors = [f for k, f in candidates[start : start + size] if k is kernel]
        yield kernel, factors
        start += len(factors)


@dataclass(frozen=True)
class _Trial:
    """What all attempts of one task have in common."""

    options: FitOptions
    kernel: ShiftInvariantKernel
    n_components: int

    def __call__(self, X: Array, y: Floats, factors: Sequence[float]) -> list[Attempt]:
        """Cross-validate the kernel at several multiples of its length scale."""
        if not self.kernel.stretches_frequencies and list(factors) != [1.0]:
            trials = [replace(self, kernel=self.kernel.stretched(factor)) for factor in factors]
            return [attempt for trial in trials for attempt in trial(X, y, [1.0])]
        drawn = RandomFourierFeatures(
            self.kernel,
            self.n_components,
            orthogonal=self.options.feature_map == "orthogonal",
            paired=self.options.paired,
            random_state=self.options.random_state,
        ).draw(X.shape[1])
        angles = X @ drawn.frequencies.T.astype(X.dtype)
        phases = 0.0 if drawn.paired else drawn.phases.astype(X.dtype)
        return [
            self._attempt(drawn, angles / X.dtype.type(factor) + phases, y, factor)
            for factor in factors
        ]

    def _attempt(
        self, drawn: RandomFourierFeatures, angles: Array, y: Floats, factor: float
    ) -> Attempt:
        some = np.empty((min(len(y), _SHIFT_ROWS), drawn.n_components), dtype=angles.dtype)
        drawn.waves(angles[: len(some)].copy(), some, Scratch())
        empty = Moments(
            Identity().draw(drawn.n_components),
            y.shape[1],
            precision=self.options.precision,
            feature_shift=some.mean(axis=0, dtype=float),
        )
        cuts = np.linspace(0, len(y), _FOLDS + 1).astype(int)
        folds = [empty.zero() for _ in range(_FOLDS)]
        for fold, start, stop in zip(folds, cuts, cuts[1:], strict=False):
            fold.update(_features(drawn, angles[start:stop], y[start:stop]))
        total = reduce(Moments.merge, folds)
        intercept = self.options.fit_intercept
        basis = Eigenbasis.of(total.centred(intercept=intercept), total.n_rows - intercept)
        alphas = default_grid(basis.spectrum)
        held_out = [held_out_errors(basis, total, fold, alphas) for fold in folds]
        curve = PenaltyCurve.of_folds(alphas, held_out, np.ones(y.shape[1]))
        chosen = curve.choose()
        score, error = curve.combined(chosen)
        kernel = drawn.kernel.stretched(factor)
        return Attempt(
            kernel.name,
            kernel.length_scale,
            len(y),
            drawn.n_components,
            score,
            error,
            float(alphas[chosen[0]]) * drawn.scale**2,
        )


def _features(drawn: RandomFourierFeatures, angles: Array, y: Floats) -> Iterator[Block]:
    """Yield the features of projections, some rows at a time, as rows of an identity map."""
    features = np.empty((min(_BLOCK_ROWS, len(y)), drawn.n_components), dtype=angles.dtype)
    scratch = Scratch()
    for start in range(0, len(y), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        out, inside = features[: len(y[block])], angles[block]
        for part in cached_slices(len(out), drawn.n_components):
            drawn.waves(inside[part], out[part], scratch)
        yield Block(out, y[block], start)
