"""Rows that are not finite: where NaN and infinite values are noticed, and the errors about them.

The statistics of columns count such values (`statistics/column_statistics.py`).  A pass leaves the
rows out where bad rows are skipped; else the fit ends with `bad_rows_error`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError
from streamkern.errors.formatting import listed
from streamkern.runtime.sparse_rows import SparseRows
from streamkern.sources.base import Block, Source
from streamkern.sources.columns import MOST_NAMED, columns_of


def finite_rows(block: Block) -> Array:
    """Say of every row whether its inputs, targets and weight are finite, (rows,), bool."""
    finite: Array = np.asarray(np.isfinite(block.y).all(axis=1))
    if isinstance(block.X, SparseRows):
        finite[block.X.nonfinite()[0]] = False
    elif block.X.dtype.kind == "f":
        finite &= np.isfinite(block.X).all(axis=1)
    if block.weights is not None:
        finite &= np.isfinite(block.weights)
    return finite


def bad_columns(names: Sequence[str] | None, counts: Sequence[int]) -> str:
    """Say which inputs hold values that are not finite, and how many, by counts (p,) of them."""
    found = [
        f"{f'column {j}' if names is None else repr(names[j])} ({int(count):,})"
        for j, count in enumerate(counts)
        if count
    ]
    return listed(found, MOST_NAMED)


def bad_inputs(source: Source, counts: Any) -> str:
    """Return the same of the inputs among the columns of a source (p + q,)."""
    return bad_columns(columns_of(source).input_names, counts[: source.n_features])


def bad_rows_error(source: Source, n_bad: int, first: int, counts: Any = ()) -> DataError:
    """Return the error that says which rows are not finite, and which columns (p + q,)."""
    held = "values" if source.weighted_by is None else "values or weights"
    bad = source.missing_labels or f"hold NaN or infinite {held}"
    inputs = bad_inputs(source, counts)
    n_targets = 0 if source.missing_labels else int(sum(counts[source.n_features :]))
    places = [*filter(None, [inputs]), *[f"the targets ({n_targets:,})"] * (n_targets > 0)]
    fill = ", or convert the table with impute=True (--impute), which fills missing cells" * bool(
        inputs
    )
    return DataError(
        f"{n_bad:,} of {source.n_samples:,} rows {bad}{', in ' * bool(places)}"
        f"{' and '.join(places)}, the first at {source.locate(first)}; give on_bad_rows 'skip' "
        f"(--on-bad-rows skip) to leave them out{fill}."
    )


def none_left_error(source: Source, n_skipped: int, n_weightless: int) -> DataError:
    """Return the error that no row counts: these many were left out, or have weight 0."""
    reasons = {
        "were skipped, since they hold NaN or infinite values": n_skipped,
        f"have the weight zero in {source.weighted_by}": n_weightless,
    }
    said = [f"{number:,} {why}" for why, number in reasons.items() if number]
    return DataError(
        f"of {source.n_samples:,} rows, {' and '.join(said)}, so none is left; check the data."
    )
