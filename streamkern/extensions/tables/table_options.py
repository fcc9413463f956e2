"""Options of commands that take rows, which may be tables."""

from typing import Any

import click


def several_option(name: str, metavar: str, text: str, *more: str) -> Any:
    """Return an option that may be given several times; `more` is what its parameter is called."""
    return click.option(name, *more, multiple=True, metavar=metavar, help=text)


delimiter_option = click.option(
    "--delimiter",
    metavar="CHAR",
    callback=lambda _context, _option, text: "\t" if text == "tab" else text,
    help="What stands between the cells of a CSV, as ';' or tab; by default a comma.",
)
SHARED = (
    several_option(
        "--id",
        "NAME",
        "Column of a table that says which row it is: no input, and `predict` carries it along.",
        "ids",
    ),
    delimiter_option,
    click.option("--decimal", metavar="CHAR", help="Decimal mark of numbers in a CSV: , for 1,5."),
    click.option("--thousands", metavar="CHAR", help="Mark in numbers in a CSV: , for 1,234."),
)
OPTIONS = {
    "rows": (
        several_option(
            "--target",
            "NAME",
            "Column of a target, where DATA is a table; may be given several times.",
            "targets",
        ),
        *SHARED,
    ),
    # Where a model knows how its table was written.
    "rows of a model": (delimiter_option,),
}
# What these options are called in a command.
NAMES = ("targets", "ids", "delimiter", "decimal", "thousands")
