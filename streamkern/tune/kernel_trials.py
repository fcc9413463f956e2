"""What one trial of a search is: a kernel and a map, cross-validated on the sample."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from streamkern.features import Identity, RandomFourierFeatures
from streamkern.features.base import cached_slices
from streamkern.runtime.scratch import Scratch
from streamkern.solve import Eigenbasis, decomposition_bytes
from streamkern.solve.cross_validation import held_out_errors
from streamkern.solve.penalty_curve import PenaltyCurve, default_grid
from streamkern.sources import Block
from streamkern.statistics import Moments, Triangle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap
    from streamkern.kernels import ShiftInvariantKernel
    from streamkern.parameters.fit_options import FitOptions

    Blocks = Callable[[Array, "_Targets"], Iterator[Block]]

# The metric of plain distances.
ISOTROPIC, LEARNT = "isotropic", "learnt"
N_FOLDS = 3
_BLOCK_ROWS = 4096
_SHIFT_ROWS = 2048
# Square matrices that are held while a fold is scored.
_SQUARES = 7


class Cost(NamedTuple):
    """What a trial took, in seconds of its thread: the map, features and their sums, errors."""

    drawing: float
    sums: float
    errors: float


@dataclass(frozen=True)
class Attempt:
    """A kernel and a map, tried on a sample.

    Parameters
    ----------
    metric : str
        The name of what the inputs were measured by.
    feature_map : str
    kernel : str
    length_scale : float or tuple of float
    n_rows, n_components, n_folds : int
        Of the trial.
    relative_mse : float
        Cross-validated mean squared error over the variance of the target, at the best penalty of
        the grid; the mean over targets.
    standard_error : float
        Of the same, across folds.
    alpha : float
        The best penalty, in the units of the trial.
    cost : Cost
        Of two attempts that are equal it may differ.
    """

    metric: str
    feature_map: str
    kernel: str
    length_scale: Any
    n_rows: int
    n_components: int
    relative_mse: float
    standard_error: float
    alpha: float
    cost: Cost = field(default=Cost(0.0, 0.0, 0.0), compare=False)
    n_folds: int = N_FOLDS

    def as_dict(self) -> dict[str, Any]:
        """Return all but the cost as plain JSON values."""
        values = asdict(self) | {"length_scale": np.asarray(self.length_scale).tolist()}
        del values["cost"]
        return values


@dataclass(frozen=True)
class Trial:
    """What all attempts of one task have in common.

    Parameters
    ----------
    options : FitOptions
        With the family of the map, and the kernel for the inputs that are kept.
    n_components : int
        D of the trial.
    metric : str
        The name of what the inputs are measured by.
    """

    options: FitOptions
    n_components: int
    metric: str = ISOTROPIC

    @property
    def kernel(self) -> ShiftInvariantKernel:
        """The kernel, with numbers for its length scale."""
        return cast("ShiftInvariantKernel", self.options.kernel)

    def __call__(
        self,
        X: Array,
        y: Floats,
        factors: Sequence[float],
        weights: Floats | None = None,
        folds: Array | None = None,
    ) -> list[Attempt]:
        """Cross-validate the kernel at several multiples of its length scale."""
        if folds is None:
            cuts = np.linspace(0, len(y), N_FOLDS + 1).astype(int)[1:]
            folds = np.searchsorted(cuts, np.arange(len(y)), side="right")
        feature_map = self.options.map_of(self.kernel, self.n_components)
        stretches = self.kernel.stretches_frequencies
        if isinstance(feature_map, RandomFourierFeatures) and stretches:
            return self._with_shared_angles(feature_map, X, _Targets(y, weights, folds), factors)
        begun = time.thread_time()
        chosen = feature_map.representatives(X, weights)
        made_from = (X, weights) if chosen is None else (chosen, None)
        once = time.thread_time() - begun
        targets = _Targets(y, weights, folds)
        return [self._alone(X, targets, factor, made_from, once) for factor in factors]

    def _with_shared_angles(
        self, feature_map: RandomFourierFeatures, X: Array, y: _Targets, factors: Sequence[float]
    ) -> list[Attempt]:
        """Cross-validate on projections that are made once: the factors divide them."""
        begun = time.thread_time()
        drawn = feature_map.draw(X.shape[1], X)
        made = time.thread_time()
        angles = X @ drawn.frequencies.T.astype(X.dtype)
        drawing, once = made - begun, time.thread_time() - made
        attempts = []
        for factor in factors:
            begun = time.thread_time() - once
            waves = _Waves(drawn, angles, factor)
            some = np.empty((min(len(X), _SHIFT_ROWS), drawn.n_components), dtype=X.dtype)
            waves.write(slice(0, len(some)), some)
            features = Identity().draw(drawn.n_components)
            folds = self._folds(features, some, y, waves.blocks)
            cost = drawing, time.thread_time() - begun
            attempt = self._attempt(folds, factor, cost)
            attempts.append(replace(attempt, alpha=attempt.alpha * drawn.scale**2))
        return attempts

    def _alone(
        self,
        X: Array,
        y: _Targets,
        factor: float,
        made_from: tuple[Array, Floats | None],
        once: float,
    ) -> Attempt:
        """Cross-validate a map that is drawn from rows, on the features that a pass would sum."""
        begun = time.thread_time() - once
        feature_map = self.options.map_of(self.kernel.stretched(factor), self.n_components)
        drawn = feature_map.draw(X.shape[1], feature_map.chosen(*made_from))
        made, summed = time.thread_time(), drawn.summed()
        # Sums that are turned lose digits at long length scales, which may look like small errors.
        precision = self.options.precision if summed is drawn else "double"
        dtype = np.float32 if precision == "single" else np.float64
        some = np.empty((min(len(X), _SHIFT_ROWS), drawn.n_components), dtype=dtype)
        summed.evaluate(X[: len(some)], some)

        def blocks(places: Array, y: _Targets) -> Iterator[Block]:
            for start in range(0, len(places), _BLOCK_ROWS):
                rows = places[start : start + _BLOCK_ROWS]
                yield y.beside(X[rows], rows)

        folds = self._folds(summed, some, y, blocks)
        cost = made - begun, time.thread_time() - made
        return self._attempt([fold.solvable() for fold in folds], factor, cost)

    def _folds(
        self, feature_map: FeatureMap, some: Array, y: _Targets, blocks: Blocks
    ) -> list[Moments]:
        """Return the moments of every fold, about the mean of some features."""
        empty = Moments(
            feature_map,
            y.values.shape[1],
            precision="single" if some.dtype == np.float32 else "double",
            feature_shift=some.mean(axis=0, dtype=float),
        )
        folds = [empty.zero() for _ in np.unique(y.folds)]
        for fold, number in zip(folds, np.unique(y.folds), strict=True):
            fold.update(blocks(np.flatnonzero(y.folds == number), y))
        return folds

    def _attempt(self, folds: list[Moments], factor: float, cost: tuple[float, float]) -> Attempt:
        """Leave out each fold in turn, over the whole grid of penalties."""
        begun = time.thread_time()
        total = reduce(Moments.merge, folds)
        intercept, q = self.options.fit_intercept, total.n_targets
        basis = Eigenbasis.of(total.centred(intercept=intercept), total.n_rows - intercept)
        alphas = default_grid(basis.spectrum)
        held_out = [held_out_errors(basis, total, fold, alphas) for fold in folds]
        curve = PenaltyCurve.of_folds(alphas, held_out, np.ones(q))
        chosen = curve.choose()
        score, error = curve.combined(chosen)
        kernel = self.kernel.stretched(factor)
        return Attempt(
            self.metric,
            self.options.feature_map,
            kernel.name,
            kernel.length_scale,
            total.n_rows,
            self.n_components,
            score,
            error,
            float(alphas[chosen[0]]),
            Cost(*cost, time.thread_time() - begun),
            len(folds),
        )


class _Targets(NamedTuple):
    """The targets of the sample, how often its rows count, and their folds."""

    values: Floats
    weights: Floats | None
    folds: Array

    def beside(self, features: Array, rows: Array) -> Block:
        """Return some rows with their targets."""
        weights = None if self.weights is None else self.weights[rows]
        return Block(features, self.values[rows], int(rows[0]), weights)


class _Waves(NamedTuple):
    """Features of projections, at a multiple of the length scale.

    Parameters
    ----------
    map : RandomFourierFeatures
    angles : ndarray of shape (m, L)
        At the length scale of the map, without phases.
    factor : float
    """

    map: RandomFourierFeatures
    angles: Array
    factor: float

    def write(self, rows: Array | slice, out: Array) -> None:
        """Write the features of some rows, without their scale."""
        inside, dtype, scratch = self.angles[rows], self.angles.dtype, Scratch()
        offsets = self.map.offsets.astype(dtype)
        for part in cached_slices(len(out), self.map.n_components):
            self.map.waves(inside[part] / dtype.type(self.factor) + offsets, out[part], scratch)

    def blocks(self, places: Array, y: _Targets) -> Iterator[Block]:
        """Yield features, some rows at a time, as rows of an identity map."""
        shape = min(_BLOCK_ROWS, len(places)), self.map.n_components
        held = np.empty(shape, dtype=self.angles.dtype)
        for start in range(0, len(places), _BLOCK_ROWS):
            rows = places[start : start + _BLOCK_ROWS]
            out = held[: len(rows)]
            self.write(rows, out)
            yield y.beside(out, rows)


def trial_bytes(
    n_rows: int, n_features: int, n_components: int, itemsize: int, n_folds: int = N_FOLDS
) -> int:
    """Return what a trial holds at the most."""
    m, p, D = n_rows, n_features, n_components
    rows = itemsize * (m * (p + D) + (_BLOCK_ROWS + D) * D)
    sums = (n_folds + 2) * 8 * Triangle.size(D)
    return int(rows + sums + decomposition_bytes(D) + 8 * _SQUARES * D**2)
