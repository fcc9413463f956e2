"""A small fit: rows of a sample in few features, summed about the mean of those of a few rows."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.choice.time_limit import look_at_clock
from streamkern.engine.scheduler import scatter
from streamkern.errors import ParameterError
from streamkern.features import FeatureMap, FromRows, Identity, Standardized, drawn_from
from streamkern.parameters.fit_options import FitOptions
from streamkern.passes.column_summary import ColumnSummary
from streamkern.sources import Block
from streamkern.statistics import Moments, dtype_of_features, precision_of_features

# Rows of a block, and those whose mean features are subtracted.
BLOCK_ROWS, SHIFT_ROWS = 4096, 2048


class Sample(NamedTuple):
    """The rows of the sample and their weights, here and where the tasks run; the targets there."""

    rows: Array
    weights: Floats | None
    X: Any
    y: Any
    s: Any
    clock: Any = None  # which says whether more are tried

    @classmethod
    def of(cls, summary: ColumnSummary, n_rows: int, clock: Any = None) -> "Sample":
        """Return the first rows, which are in the order of their hashes: a sample too."""
        rows, weights = summary.sample.X[:n_rows], summary.weights
        weights = None if weights is None else weights[:n_rows]
        sent = scatter(rows), scatter(summary.targets[:n_rows]), scatter(weights)
        return cls(rows, weights, *sent, clock)


class Landmarks(NamedTuple):
    """What maps are drawn from at every length scale, and the seconds that it took."""

    rows: Array
    seconds: float


@dataclass(frozen=True)
class SmallFit:
    """Fits of so many features to the first rows of a sample, for any kernel."""

    options: FitOptions  # with the family of the map
    n_components: int
    n_rows: int
    standardizer: Any = None  # with the metric, of rows that are not in it
    landmarks: Landmarks | None = None  # if they were found already

    @property
    def n_fitted(self) -> int:
        """Rows that maps are drawn for, which come first."""
        return self.n_rows

    def found_landmarks(
        self, kernel: Any, X: Array, weights: Floats | None = None
    ) -> Landmarks | None:
        """Return what maps of the kernel are drawn from, where that is rows."""
        begun, inner = time.perf_counter(), self._map(kernel)
        if not isinstance(inner, FromRows):
            return None
        rows = inner.chosen(*self._fitted(X, weights))
        return Landmarks(rows, time.perf_counter() - begun)

    def _map(self, kernel: Any) -> FeatureMap:
        if self.options.is_identity:
            return Identity()
        return self.options.map_of(kernel, self.n_components)

    def drawn(self, kernel: Any, X: Array, weights: Floats | None) -> FeatureMap:
        """Return the map of a kernel, drawn for the rows that are fitted."""
        inner, known = self._map(kernel), self.landmarks
        if known is None:
            drawn = drawn_from(inner, *self._fitted(X, weights))
        else:
            drawn = inner.draw(known.rows.shape[1], known.rows)
        return drawn if self.standardizer is None else Standardized(self.standardizer, drawn)

    def _fitted(self, X: Array, weights: Floats | None) -> tuple[Array, Floats | None]:
        there = slice(self.n_fitted)
        rows = X[there] if self.standardizer is None else self.standardizer(X[there])
        return rows, None if weights is None else weights[there]


def blocks(X: Array, y: Floats, weights: Floats | None, places: Array) -> Iterator[Block]:
    """Yield the rows at some places, some at a time."""
    for start in range(0, len(places), BLOCK_ROWS):
        look_at_clock()
        rows = places[start : start + BLOCK_ROWS]
        yield Block(X[rows], y[rows], int(rows[0]), None if weights is None else weights[rows])


def empty_moments(feature_map: FeatureMap, X: Array, n_targets: int, precision: str) -> Moments:
    """Return the moments of no rows, about the mean of features of the first."""
    shape = min(len(X), SHIFT_ROWS), feature_map.n_components
    some = np.empty(shape, dtype_of_features(precision))
    feature_map.evaluate(X[: len(some)], some)
    shift, precise = some.mean(axis=0, dtype=float), precision_of_features(precision)
    return Moments(feature_map, n_targets, precision=precise, feature_shift=shift)


def kernels_of_map(kernels: Sequence[Any], options: FitOptions, n_features: int) -> list[Any]:
    """Return the kernels that the map of the options has features of."""
    found = []
    for kernel in kernels:
        with suppress(ParameterError):
            replace(options, kernel=kernel).check_map(n_features)
            found.append(kernel)
    return found
