"""What a source is in a line, and as the table that notebooks show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamkern.errors.formatting import listed
from streamkern.errors.html_table import html_table
from streamkern.runtime.memory import in_words

if TYPE_CHECKING:
    from streamkern.sources.base import Source

_MOST_FILES, _MOST_NAMES = 10, 8
_FILE = ("file", "rows", "stored in", "type", "size")


def source_line(source: Source) -> str:
    n, p, q = source.n_samples, source.n_features, source.n_targets
    columns = f"{p:,} input{'s' * (p != 1)}, {q:,} target{'s' * (q != 1)}"
    return f"{type(source).__name__}({n:,} rows, {columns}, {source.dtype})"


def source_table(source: Source) -> str:
    data, q = source.describe(), source.n_targets
    names, targets = data.get("feature_names") or [], data.get("target_names") or []
    x, y = data.get("x"), data.get("y")
    rows = [
        ("inputs", _named(source.n_features, [x] if x else names)),
        ("labels" if y and not q else "targets", _named(q or bool(y), [y] if y else targets)),
        ("weights", source.weighted_by or "none"),
        ("read as", f"{source.dtype}, {in_words(source.n_samples * source.row_bytes)} of inputs"),
    ]
    if "recipe" in data:
        columns = [column["name"] for column in data["recipe"]["columns"]]
        rows.insert(1, ("columns of the table", _named(len(columns), columns)))
    table, files = html_table(source_line(source), rows), data.get("files", [])
    if not files:
        return table
    more = f", the first {_MOST_FILES}" if len(files) > _MOST_FILES else ""
    shown = map(_file_row, files[:_MOST_FILES])
    return table + html_table(f"{len(files):,} files{more}", shown, _FILE)


def _named(count: int, names: list[Any]) -> str:
    return f"{count:,}" + (f": {listed(names, _MOST_NAMES)}" if names else "")


def _file_row(file: dict[str, Any]) -> tuple[str, ...]:
    size = in_words(file["file_bytes"])
    return file["path"], f"{file['n_rows']:,}", file["storage"], file["dtype"], size
