"""HTML tables of what objects are, for notebooks.

Styles are on the elements themselves, since notebooks drop style sheets of outputs that they do not
trust.  Colours are those of the page, so tables can be read on light and dark ones.
"""

from collections.abc import Iterable
from html import escape

from streamkern.errors.formatting import printable
from streamkern.errors.urls import without_secrets

_LINE = "rgba(128,128,128,.35)"
_TABLE = "border-collapse:collapse;border:0;margin:4px 0 8px;color:inherit;font-size:13px"
_CELL = (
    "text-align:left;vertical-align:top;padding:3px 20px 3px 0;background:none;border:0;"
    f"border-bottom:1px solid {_LINE};white-space:normal;overflow-wrap:anywhere"
)
_NAME = f"{_CELL};overflow-wrap:normal;font-weight:normal;opacity:.7;min-width:7em"


def html_table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Return a table of names and values, as texts without the secrets of URLs."""
    lines = "".join(map(_row, rows))
    caption = f'<div style="font-weight:600">{_text(title)}</div>'
    table = f'<table style="{_TABLE}">{lines}</table>'
    return f'<div style="max-width:100%;overflow-x:auto">{caption}{table}</div>'


def _row(row: tuple[str, object]) -> str:
    name, value = map(_text, row)
    cells = f'<th style="{_NAME}">{name}</th><td style="{_CELL}">{value}</td>'
    return f'<tr style="background:none">{cells}</tr>'


def _text(value: object) -> str:
    return escape(printable(without_secrets(str(value))))
