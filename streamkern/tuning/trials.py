"""What one trial of a search is: a kernel and a map, cross-validated on the sample."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from streamkern.features import Identity, RandomFourierFeatures
from streamkern.features.base import cached_slices
from streamkern.scratch import Scratch
from streamkern.selection import PenaltyCurve, default_grid, held_out_errors
from streamkern.solve import Eigenbasis, decomposition_bytes
from streamkern.sources import Block
from streamkern.statistics import Moments, Triangle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap
    from streamkern.fitoptions import FitOptions
    from streamkern.kernels import ShiftInvariantKernel

# The metric of plain distances.
ISOTROPIC = "isotropic"
N_FOLDS = 3
_BLOCK_ROWS = 4096
_SHIFT_ROWS = 2048
# Square matrices that are held while a fold is scored.
_SQUARES = 7


class Cost(NamedTuple):
    """What a trial took, in seconds of its thread: features and their sums, then errors."""

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
    n_rows, n_components : int
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
    cost: Cost = field(default=Cost(0.0, 0.0), compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Return all but the cost as plain JSON values."""
        values = asdict(self) | {"length_scale": np.asarray(self.length_scale).tolist()}
        del values["cost"]
        return values


class Features(NamedTuple):
    """What makes the features of a trial.

    Parameters
    ----------
    map : FeatureMap
        Drawn.
    dtype : dtype
        Of the features.
    write : callable
        Takes a slice of the rows of the trial, and memory for their features without the scale.
    """

    map: FeatureMap
    dtype: Any
    write: Callable[[slice, Array], None]


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

    def __call__(self, X: Array, y: Floats, factors: Sequence[float]) -> list[Attempt]:
        """Cross-validate the kernel at several multiples of its length scale.

        Parameters
        ----------
        X : ndarray of shape (m, p)
            Rows of the sample, as the map gets them.
        y : ndarray of shape (m, q)
            Of mean 0 and deviation 1.
        factors : sequence of float
        """
        feature_map = self.options.map_of(self.kernel, self.n_components)
        if isinstance(feature_map, RandomFourierFeatures):
            return self._with_shared_angles(feature_map, X, y, factors)
        attempts = []
        for factor in factors:
            begun = time.thread_time()
            stretched = self.options.map_of(self.kernel.stretched(factor), self.n_components)
            drawn = stretched.draw(X.shape[1], X)
            attempts.append(self._attempt(_of_rows(drawn, X), y, factor, begun))
        return attempts

    def _with_shared_angles(
        self, feature_map: RandomFourierFeatures, X: Array, y: Floats, factors: Sequence[float]
    ) -> list[Attempt]:
        """Cross-validate on projections that are made once: the factors divide them."""
        begun = time.thread_time()
        drawn = feature_map.draw(X.shape[1], X)
        angles = X @ drawn.frequencies.T.astype(X.dtype)
        once = time.thread_time() - begun
        attempts = []
        for factor in factors:
            begun = time.thread_time() - once
            attempts.append(self._attempt(_of_angles(drawn, angles, factor), y, factor, begun))
        return attempts

    def _attempt(self, features: Features, y: Floats, factor: float, begun: float) -> Attempt:
        drawn = features.map
        some = np.empty((min(len(y), _SHIFT_ROWS), drawn.n_components), dtype=features.dtype)
        features.write(slice(0, len(some)), some)
        empty = Moments(
            Identity().draw(drawn.n_components),
            y.shape[1],
            precision=self.options.precision,
            feature_shift=some.mean(axis=0, dtype=float),
        )
        cuts = np.linspace(0, len(y), N_FOLDS + 1).astype(int)
        folds = [empty.zero() for _ in range(N_FOLDS)]
        for fold, start, stop in zip(folds, cuts, cuts[1:], strict=False):
            fold.update(_blocks(features, y, start, stop))
        total = reduce(Moments.merge, folds)
        summed = time.thread_time()
        intercept = self.options.fit_intercept
        basis = Eigenbasis.of(total.centred(intercept=intercept), total.n_rows - intercept)
        alphas = default_grid(basis.spectrum)
        held_out = [held_out_errors(basis, total, fold, alphas) for fold in folds]
        curve = PenaltyCurve.of_folds(alphas, held_out, np.ones(y.shape[1]))
        chosen = curve.choose()
        score, error = curve.combined(chosen)
        kernel = self.kernel.stretched(factor)
        return Attempt(
            self.metric,
            self.options.feature_map,
            kernel.name,
            kernel.length_scale,
            len(y),
            drawn.n_components,
            score,
            error,
            float(alphas[chosen[0]]) * drawn.scale**2,
            Cost(summed - begun, time.thread_time() - summed),
        )


def _of_rows(drawn: FeatureMap, X: Array) -> Features:
    """Return what a map makes of rows."""
    scratch = Scratch()

    def write(rows: slice, out: Array) -> None:
        for _ in drawn.evaluated(X[rows], out, scratch=scratch):
            pass

    return Features(drawn, X.dtype, write)


def _of_angles(drawn: RandomFourierFeatures, angles: Array, factor: float) -> Features:
    """Return what becomes of projections, at a multiple of the length scale."""
    scratch, dtype = Scratch(), angles.dtype
    phases = 0.0 if drawn.paired else drawn.phases.astype(dtype)

    def write(rows: slice, out: Array) -> None:
        inside = angles[rows]
        for part in cached_slices(len(out), drawn.n_components):
            drawn.waves(inside[part] / dtype.type(factor) + phases, out[part], scratch)

    return Features(drawn, dtype, write)


def _blocks(features: Features, y: Floats, first: int, last: int) -> Iterator[Block]:
    """Yield features, some rows at a time, as rows of an identity map."""
    shape = min(_BLOCK_ROWS, last - first), features.map.n_components
    held = np.empty(shape, dtype=features.dtype)
    for start in range(first, last, _BLOCK_ROWS):
        rows = slice(start, min(start + _BLOCK_ROWS, last))
        out = held[: rows.stop - start]
        features.write(rows, out)
        yield Block(out, y[rows], start - first)


def trial_bytes(n_rows: int, n_features: int, n_components: int, itemsize: int) -> int:
    """Return what a trial holds at the most."""
    m, p, D = n_rows, n_features, n_components
    rows = itemsize * (m * (p + D) + (_BLOCK_ROWS + D) * D)
    sums = (N_FOLDS + 2) * 8 * Triangle.size(D)
    return int(rows + sums + decomposition_bytes(D) + 8 * _SQUARES * D**2)
