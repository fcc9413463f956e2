"""The second call of a fit: the map, drawn when nothing of it is open any more."""

import time
from typing import Any, NamedTuple

import numpy as np

from streamkern.choice.sample_choice import chosen_features
from streamkern.features import Standardized, innermost
from streamkern.kernels import Kernel
from streamkern.passes.column_summary import ColumnSummary
from streamkern.passes.fit_context import FitContext
from streamkern.registry import extension
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

    With `like`, the map is the template's.
    """
    if context.like is not None:
        return context, features_like(context, summary)
    context, summary, learnt = chosen_features(context, summary)
    return context, drawn(context, summary, learnt)


def features_like(context: FitContext, summary: ColumnSummary) -> Features:
    """Return the map of a template, and warn of rows that it was not laid for."""
    like: Any = context.like
    if innermost(like.feature_map).is_field:
        p = like.feature_map.n_features
        known = None if like.empty is None else like.columns.input_range
        ends = np.stack([summary.columns.minimum[:p], summary.columns.maximum[:p]])
        extension("fields", "waves").warn_of_period(like.feature_map, ends, known)
    return Features(like.feature_map, like.kernel, summary)


def drawn(context: FitContext, summary: ColumnSummary, learnt: Any = None) -> Features:
    """Draw the map of options that are all chosen, in the scale and metric of the summary."""
    begun, options, standardizer = time.perf_counter(), context.options, summary.standardizer
    with blas_threads(1):  # frequencies are part of the result
        sample, ends = standardizer(summary.sample.X), summary.ends if options.is_field else None
        inner, kernel = options.map_for(standardizer.outputs, sample, summary.weights, ends)
    feature_map = Standardized(standardizer, inner)
    return Features(feature_map, kernel, summary, learnt, time.perf_counter() - begun)
