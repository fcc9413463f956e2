"""Sources of what is in memory or lazy: lists, NumPy arrays, data frames, Dask collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError
from streamkern.sources.array_source import ArraySource, check_lengths, one_label
from streamkern.sources.base import Source
from streamkern.sources.dask_source import DaskSource
from streamkern.sources.labelled_source import ArrayLabels
from streamkern.sources.lazy import as_numbers, is_lazy, lazy_array, lazy_values, with_known_chunks

if TYPE_CHECKING:
    from streamkern.sources.labelled_source import LabelColumn


def as_source(X: Any, y: Any = None, sample_weight: Any = None) -> Source:
    """Return `X` if it is a source, else a source of its rows."""
    if isinstance(X, Source):
        if y is not None or sample_weight is not None:
            raise DataError(
                "a source brings its own targets and weights (`open_hdf5` takes the names of "
                "both); pass it without y or sample_weight."
            )
        return X
    return (DaskSource if is_lazy(X) else ArraySource)(X, y, sample_weight)


def as_rows(X: Any) -> Any:
    """Return rows to predict: a Dask array of what is lazy, which it stays, else an array."""
    return as_numbers(lazy_array("X", X)) if is_lazy(X) else ArraySource(X).X


def labelled_rows(X: Any, y: Any = None, sample_weight: Any = None) -> tuple[Source, LabelColumn]:
    if isinstance(X, Source) or y is None:
        return as_source(X, y, sample_weight).labelled()
    rows: Any = as_source(X, None, sample_weight)
    stay_lazy = isinstance(rows, DaskSource)
    labels = one_label(lazy_values(y) if stay_lazy else np.asarray(y))
    if stay_lazy:
        (labels,) = with_known_chunks(labels)
    check_lengths(rows.X, labels, None)
    return rows, ArrayLabels(labels.rechunk({0: rows.X.chunks[0]}) if stay_lazy else labels)
