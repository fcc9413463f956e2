"""Lists of the reference that are made from the package: public names, and parameters of a fit."""

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx


class ParameterTable(Directive):
    """A table of the parameters of a fit: in Python, on the command line, by default, and what."""

    HEADER = ("Python", "command line", "default", "what it is")

    def run(self) -> list[nodes.Node]:
        from streamkern.parameters.parameters import OPTIONS

        rows = []
        for field in OPTIONS:
            option, default = field.metadata["option"], field.default
            flag = f"--{option.name or field.name.replace('_', '-')}"
            shown = getattr(default, "name", default)
            listed = f": {option.listed()}" if option.listed else ""
            rows.append((field.name, flag, repr(shown), option.help + listed))
        return [_table(self.HEADER, rows)]


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> nodes.table:
    group = nodes.tgroup(cols=len(header))
    group += [nodes.colspec(colwidth=1) for _ in header]
    group += nodes.thead("", _row(header, literal=0))
    group += nodes.tbody("", *(_row(row, literal=3) for row in rows))
    return nodes.table("", group)


def _row(cells: tuple[str, ...], literal: int) -> nodes.row:
    row = nodes.row()
    for j, cell in enumerate(cells):
        text = nodes.literal(text=cell) if j < literal else nodes.Text(cell)
        row += nodes.entry("", nodes.paragraph("", "", text))
    return row


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("parameter-table", ParameterTable)
    return {"parallel_read_safe": True}
