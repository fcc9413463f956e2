"""The second call of a fit: the map, drawn when nothing of it is open any more."""

import time
from typing import Any, NamedTuple

import numpy as np

from streamkern.choice.sample_choice import chosen_features
from streamkern.errors import warn
from streamkern.features import FeatureMap, Standardized, lattice_of, trend_and_angles
from streamkern.kernels import Kernel
from streamkern.passes.column_summary import ColumnSummary
from streamkern.passes.fit_context import FitContext
from streamkern.runtime.threads import blas_threads


class Features(NamedTuple):
    """A map of raw rows, and what it was drawn from."""

    feature_map: Standardized
    kernel: Kernel  # with its length scale resolved
    summary: ColumnSummary  # in the scale and metric of the map
    learnt: Any = None  # how a metric was, which adds it to the report
    seconds: float = 0.0


def draw_features(context: FitContext, summary: ColumnSummary) -> tuple[FitContext, Features]:
    """Choose on the sample what is open of the features, and draw their map.

    Of rows like others the map is that of these.
    """
    if context.like is not None:
        return context, features_like(context, summary)
    context, summary, learnt = chosen_features(context, summary)
    return context, drawn(context, summary, learnt)


def features_like(context: FitContext, summary: ColumnSummary) -> Features:
    """Return the map of a template, and warn of rows that it was not laid for."""
    like: Any = context.like
    known = None if like.empty is None else like.columns.input_range
    _warn_of_period(like.feature_map, summary, known)
    return Features(like.feature_map, like.kernel, summary)


def drawn(context: FitContext, summary: ColumnSummary, learnt: Any = None) -> Features:
    """Draw the map of options that are all chosen, in the scale and metric of the summary."""
    begun, options, standardizer = time.perf_counter(), context.options, summary.standardizer
    with blas_threads(1):  # frequencies are part of the result
        sample, ends = standardizer(summary.sample.X), summary.ends if options.has_grid else None
        inner, kernel = options.map_for(standardizer.outputs, sample, summary.weights, ends)
    feature_map = Standardized(standardizer, inner)
    return Features(feature_map, kernel, summary, learnt, time.perf_counter() - begun)


def _warn_of_period(feature_map: FeatureMap, summary: ColumnSummary, known: Any) -> None:
    """Warn of rows that are farther apart than a grid's period, or from a range that is known."""
    if (lattice := lattice_of(feature_map)) is None:
        return
    p, columns = feature_map.n_features, summary.columns
    ends = np.stack([columns.minimum[:p], columns.maximum[:p]])
    if known is not None and np.shape(known) == (p, 2):
        low, high = np.transpose(known)
        ends = np.stack([np.minimum(ends[0], low), np.maximum(ends[1], high)])
    angles = trend_and_angles(feature_map, lattice.cell, ends)[1]
    if (np.ptp(angles, axis=0) > 2.0 * np.pi).any():
        warn(
            "the grid of frequencies was laid for other rows, and these reach beyond the period "
            "after which its functions repeat, so that rows far apart are taken for neighbours; "
            "fit all rows at once, or like some from end to end."
        )
