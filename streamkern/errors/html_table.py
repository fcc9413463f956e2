"""HTML tables of what objects are, for notebooks.

Styles are on the elements themselves, since notebooks drop style sheets of outputs that they do not
trust.  Colours are those of the page, so tables can be read on light and dark ones.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from streamkern.errors.formatting import printable
from streamkern.errors.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LINE = "rgba(128,128,128,.35)"
_TABLE = "border-collapse:collapse;border:0;margin:4px 0 8px;color:inherit;font-size:13px"
_CELL = (
    "text-align:left;vertical-align:top;padding:3px 20px 3px 0;background:none;border:0;"
    f"border-bottom:1px solid {LINE};white-space:normal;overflow-wrap:anywhere"
)
_NAME = f"{_CELL};overflow-wrap:normal;font-weight:normal;opacity:.7;min-width:7em"


def shown_html(text: object) -> str:
    """Return a text as HTML shows it: no element, nothing that steers, no secret of a URL."""
    return escape(printable(without_secrets(str(text))))


def html_table(
    title: str, rows: Iterable[Sequence[object]], header: Sequence[str] | None = None
) -> str:
    """Return a table of texts: pairs of name and value, or columns under a header."""
    head = _row(["th"] * len(header), [_NAME] * len(header), header) if header else ""
    first = ("td", _CELL) if header else ("th", _NAME)
    body = [
        _row([first[0]] + ["td"] * len(row), [first[1]] + [_CELL] * len(row), row) for row in rows
    ]
    caption = f'<div style="font-weight:600">{shown_html(title)}</div>'
    table = f'<table style="{_TABLE}">{head}{"".join(body)}</table>'
    return f'<div style="max-width:100%;overflow-x:auto">{caption}{table}</div>'


def _row(tags: Sequence[str], styles: Sequence[str], cells: Sequence[object]) -> str:
    shown = (
        f'<{tag} style="{style}">{shown_html(cell)}</{tag}>'
        for tag, style, cell in zip(tags, styles, cells, strict=False)
    )
    return f'<tr style="background:none">{"".join(shown)}</tr>'
