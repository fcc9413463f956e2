"""The two passes of a fit: columns and a sample first, then moments."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.engine import accumulate
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.features import (
    FeatureMap,
    Identity,
    RandomFourierFeatures,
    Standardized,
    Standardizer,
)
from streamkern.features.base import checked_seed
from streamkern.kernels import Gaussian, Kernel, Linear, ShiftInvariantKernel
from streamkern.plan import SAMPLE_ROWS, Plan, plan_fit
from streamkern.scheduling import current_resources
from streamkern.selection import median_length_scale
from streamkern.statistics import ColumnStatistics, Moments, RowSample, Together
from streamkern.threads import blas_threads

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.engine import PassResult
    from streamkern.sources import Source
    from streamkern.statistics.moments import Precision

MAPS = ("orthogonal", "iid", "identity")


@dataclass(frozen=True)
class FitOptions:
    """What a fit takes as given, checked when it is made.

    Parameters are those of `RandomFeatureRidge`.

    Raises
    ------
    ParameterError
        If an option has a value that it cannot have.
    """

    kernel: Kernel
    n_components: int
    feature_map: str
    paired: bool
    standardize: bool
    fit_intercept: bool
    precision: Precision
    on_bad_rows: str
    random_state: int

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ParameterError(
                f"kernel must be a kernel such as Gaussian(), not {self.kernel!r}; make one."
            )
        for name, value, allowed in (
            ("feature_map", self.feature_map, MAPS),
            ("precision", self.precision, ("single", "double")),
            ("on_bad_rows", self.on_bad_rows, ("error", "skip")),
        ):
            if value not in allowed:
                raise ParameterError(
                    f"{name} must be one of {', '.join(allowed)}, not {value!r}; choose one."
                )
        checked_seed(self.random_state)
        if self.feature_map == "identity":
            default = Gaussian("median")
            other = not isinstance(self.kernel, Linear) and self.kernel != default
            if other or not self.paired:
                raise ParameterError(
                    "the identity map has no kernel but the linear one, and no phases; leave them "
                    "out, or take another map."
                )
        if isinstance(self.kernel, ShiftInvariantKernel) and not self.is_identity:
            self._fourier(self.kernel)

    @property
    def is_identity(self) -> bool:
        """Whether the features are the inputs."""
        return self.feature_map == "identity" or isinstance(self.kernel, Linear)

    def components_for(self, n_features: int) -> int:
        """Return D for rows of p inputs, and check that the length scales fit them."""
        if self.is_identity:
            return n_features
        if isinstance(self.kernel, ShiftInvariantKernel) and self.kernel.length_scale != "median":
            self.kernel.scales(n_features)
        return self.n_components

    def _fourier(self, kernel: ShiftInvariantKernel) -> RandomFourierFeatures:
        return RandomFourierFeatures(
            kernel,
            self.n_components,
            orthogonal=self.feature_map == "orthogonal",
            paired=self.paired,
            random_state=self.random_state,
        )

    def map_for(self, kept: Array, rows: Floats) -> tuple[FeatureMap, Kernel]:
        """Draw the map for the inputs that are kept, with the length scale that suits `rows`."""
        if self.is_identity or not isinstance(self.kernel, ShiftInvariantKernel):
            return Identity().draw(len(kept)), Linear()
        kernel, scale = self.kernel, self.kernel.length_scale
        if scale == "median":
            kernel = kernel.with_length_scale(median_length_scale(kernel, rows))
        elif isinstance(scale, tuple):
            kernel = kernel.with_length_scale(tuple(np.asarray(scale)[kept].tolist()))
        return self._fourier(kernel).draw(len(kept)), kernel


@dataclass(frozen=True)
class FittedMoments:
    """What the passes of a fit yield.

    Parameters
    ----------
    moments : Moments
        Their map is the whole map, from raw rows to features.
    kernel : Kernel
        With its length scale resolved.
    report : dict
        Rows, seconds and memory, under the names of the command line's JSON.
    dropped : list of int
        Constant columns, which were left out.
    """

    moments: Moments
    kernel: Kernel
    report: dict[str, Any]
    dropped: list[int]


def plan_for(source: Source, options: FitOptions) -> Plan:
    """Plan a fit on what the current scheduler offers, and refuse what does not fit."""
    if not source.n_targets:
        raise DataError("a fit needs targets, but the source has none; name a dataset with y.")
    D = options.components_for(source.n_features)
    resources = current_resources()
    plan = plan_fit(
        source,
        D,
        precision=options.precision,
        n_workers=resources.n_workers,
        n_threads=resources.n_threads,
        allowed_bytes=resources.worker_bytes,
    )
    plan.check()
    return plan


def fit_moments(source: Source, options: FitOptions) -> FittedMoments:
    """Read the rows twice, lightly for the columns and a sample, then for the moments.

    Parameters
    ----------
    source : Source
    options : FitOptions

    Raises
    ------
    InsufficientMemoryError
        If the job cannot fit, before the first read.
    DataError
        If rows cannot be used: not finite, all targets equal, all inputs constant.
    """
    plan = plan_for(source, options)
    begun = time.perf_counter()
    skip = options.on_bad_rows == "skip"
    first = accumulate(
        source,
        Together(
            ColumnStatistics(source.n_features + source.n_targets),
            RowSample(SAMPLE_ROWS, options.random_state),
        ),
        shard_rows=plan.shard_rows,
        block_rows=plan.column_block_rows,
        skip_bad_rows=skip,
        label="columns",
        n_threads=plan.n_threads,
    )
    columns, sample = first.statistic.parts
    assert isinstance(columns, ColumnStatistics)  # noqa: S101  for the type checker
    assert isinstance(sample, RowSample)  # noqa: S101
    _check_columns(source, columns, n_kept=first.n_rows, n_skipped=first.n_skipped)
    standardizer, dropped = _standardizer(source, columns, options)
    with blas_threads(1):  # frequencies and shift are part of the result
        inner, kernel = options.map_for(standardizer.columns, standardizer(sample.X))
        feature_map = Standardized(standardizer, inner)
        empty = _empty_moments(source, feature_map, columns, sample, options)
    moments = accumulate(
        source,
        empty,
        shard_rows=plan.shard_rows,
        block_rows=plan.block_rows,
        skip_bad_rows=skip,
        n_threads=plan.n_threads,
    )
    report = _report(source, plan, first, moments, time.perf_counter() - begun)
    return FittedMoments(moments.statistic, kernel, report, dropped)


def _check_columns(
    source: Source, columns: ColumnStatistics, *, n_kept: int, n_skipped: int
) -> None:
    if columns.n_bad_rows:
        raise source.bad_rows_error(columns.n_bad_rows, columns.first_bad_row or 0)
    if not n_kept:
        raise DataError(
            f"all {n_skipped:,} rows hold NaN or infinite values and were skipped; none is left."
        )
    p = source.n_features
    if columns.constant(0.0)[p:].all():
        raise DataError(
            f"every y equals {columns.mean[p]:g}, so there is nothing to learn; check which "
            f"dataset holds the target."
        )
    wild = np.flatnonzero(
        ~_constant(source, columns) & ~(np.isfinite(columns.variance) & (columns.variance > 0))
    )
    if len(wild):
        j = wild[0]
        name = f"column {j} of X" if j < p else f"target {j - p}"
        how = "overflows" if columns.variance[j] != 0 else "underflows"
        raise DataError(
            f"{name} has values from {columns.minimum[j]:.3g} to {columns.maximum[j]:.3g}, whose "
            f"variance {how}; rescale it."
        )


def _constant(source: Source, columns: ColumnStatistics) -> Array:
    # A column stored in single precision is constant when it varies by its rounding only.
    return columns.constant(8 * source.rounding)


def _standardizer(
    source: Source, columns: ColumnStatistics, options: FitOptions
) -> tuple[Standardizer, list[int]]:
    p = source.n_features
    constant = _constant(source, columns)[:p]
    kept, dropped = np.flatnonzero(~constant), np.flatnonzero(constant).tolist()
    if not len(kept):
        raise DataError(
            f"all {p} columns of X are constant, so there is nothing to learn from; check which "
            f"dataset holds the inputs."
        )
    if dropped:
        listed = ", ".join(map(str, dropped[:10])) + (", ..." if len(dropped) > 10 else "")
        warnings.warn(
            f"{len(dropped)} constant column{'s' * (len(dropped) > 1)} of X left out: {listed}.",
            StreamkernWarning,
            stacklevel=4,
        )
    mean, deviation = columns.mean[kept], np.sqrt(columns.variance[kept])
    if not options.standardize:
        deviation = np.ones(len(kept))
        # A shift-invariant kernel does not see the mean, but single precision does.
        mean = np.zeros(len(kept)) if options.is_identity else mean
    return Standardizer(kept, mean, deviation, p), dropped


def _empty_moments(
    source: Source,
    feature_map: FeatureMap,
    columns: ColumnStatistics,
    sample: RowSample,
    options: FitOptions,
) -> Moments:
    p = source.n_features
    dtype = np.float32 if options.precision == "single" else np.float64
    features = np.empty((len(sample.places), feature_map.n_components), dtype=dtype)
    feature_map.evaluate(sample.X, features)
    deviation = np.sqrt(columns.variance[p:])
    return Moments(
        feature_map,
        source.n_targets,
        precision=options.precision,
        feature_shift=features.mean(axis=0, dtype=float),
        target_shift=columns.mean[p:],
        target_unit=np.where(deviation > 0, deviation, 1.0),
    )


def _report(
    source: Source,
    plan: Plan,
    first: PassResult[Any],
    moments: PassResult[Any],
    seconds: float,
) -> dict[str, Any]:
    return {
        "rows": moments.n_rows,
        "n_features": source.n_features,
        "n_targets": source.n_targets,
        "seconds": {"total": seconds, "columns": first.seconds, "pass": moments.seconds},
        "rows_per_second": moments.n_rows / moments.seconds,
        "peak_worker_bytes": max(first.peak_worker_bytes, moments.peak_worker_bytes),
        "projected_worker_bytes": plan.worker_bytes,
        "skipped_rows": moments.n_skipped,
        "retried_shards": first.retried_shards + moments.retried_shards,
        "resumed_shards": 0,
    }
