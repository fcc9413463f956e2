"""Data frames of pandas, polars and pyarrow as tables of Arrow."""

from __future__ import annotations

from typing import Any

from streamkern.errors import DataError, first_line
from streamkern.errors.formatting import listed
from streamkern.sources.preprocessing.cells import pa

_FRAMES = {"pandas.DataFrame", "polars.DataFrame", "pyarrow.Table", "pyarrow.RecordBatch"}


def is_frame(rows: Any) -> bool:
    kinds = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(rows).__mro__)
    return not _FRAMES.isdisjoint(map(".".join, kinds))


def arrow_table(frame: Any) -> Any:
    """Return a table as one of Arrow, without an index, or raise DataError if it is none."""
    if isinstance(frame, pa.RecordBatch):
        return frame
    try:
        if hasattr(frame, "reset_index"):
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(frame, "to_arrow"):  # of polars, whose views of texts have few functions
            from polars import CompatLevel  # noqa: PLC0415  whoever has a frame has imported it

            frame = frame.to_arrow(compat_level=CompatLevel.oldest())
        return pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise DataError(
            f"rows must be a table of pandas, polars or pyarrow whose columns each hold one "
            f"kind of value, not {type(frame).__name__} ({first_line(error)}); make it one."
        ) from error


def cells_of(table: Any, name: str) -> Any:
    places = table.schema.get_all_field_indices(name)
    if len(places) != 1:
        found = "more than one column" if places else "no column"
        raise DataError(
            f"the table has {found} {name!r}, which is needed; it has {listed(table.schema.names)}."
        )
    column = table.column(places[0])
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
