"""`streamkern convert`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.errors import ParameterError
from streamkern.extensions.tables.table_options import SHARED, several_option

# Columns that are named.
_SHOWN = 50


@command(
    click.argument("src"),
    click.argument("dst", metavar="DST.h5"),
    several_option(
        "--target", "NAME", "Column of a target; may be given several times.", "targets"
    ),
    click.option("--no-target", is_flag=True, help="All columns are inputs, as for `predict`."),
    several_option("--categorical", "NAME", "Column of categories or labels that are numbers."),
    several_option(
        "--missing",
        "TEXT",
        "What means missing, in place of '?', 'NA', 'NaN', 'null' and the like.",
    ),
    several_option("--drop", "NAME", "Column to leave out."),
    click.option("--weights", metavar="NAME", help="Column of weights of rows."),
    click.option("--impute", is_flag=True, help="Fill missing numbers of later tables too."),
    *SHARED,
    click.option("--no-header", is_flag=True, help="SRC has no names; columns are 0, 1, 2, ..."),
    click.option("--like", metavar="FILE.h5", help="Do as for these rows, or for this model's."),
    shared.force_option,
    examples=("streamkern convert houses.csv houses.h5 --target price",),
)
def convert(console: Console, src: str, dst: str, **options: Any) -> None:
    """Write the table SRC as the datasets X and y of DST.h5, in chunks.

    SRC ends in .csv or .tsv (with a header line; also .gz), .parquet, or .npz (arrays X and y).
    All columns but the targets become inputs. A table of numbers alone, with none missing among
    inputs, stays as it is.

    In other tables text becomes one input a category, dates and times become seconds and their
    place in the day, week and year, and missing values are filled with the mean, with one more
    input that says where. What became of every column is kept in DST.h5 and in models fitted to it,
    so `predict` and `evaluate` take such tables as they are.
    """
    from streamkern.extensions.tables.table_conversion import convert as convert_table

    targets = options["targets"]
    if options["no_target"] and targets:
        raise ParameterError("--target and --no-target exclude each other; give one of them.")
    named = "categorical drop weights impute ids delimiter decimal thousands like force"
    result = convert_table(
        src,
        dst,
        targets=None if options["no_target"] else targets,
        missing=options["missing"] or None,
        header=not options["no_header"],
        **{name: options[name] for name in named.split()},
    )
    console.line(
        f"{result['rows']:,} rows of {result['n_features']:,} inputs and {result['n_targets']:,} "
        f"target{'s' * (result['n_targets'] != 1)} in {dst}"
    )
    if "columns" in result:
        rows = list(result["columns"].items())
        more = [("...", f"and {len(rows) - _SHOWN:,} more")] if len(rows) > _SHOWN else []
        console.table("Columns", [*rows[:_SHOWN], *more])
    if result.get("unlabelled_rows"):
        console.note(f"{result['unlabelled_rows']:,} rows without a label were left out.")
    if result["missing_rows"]:
        console.note(
            f"{result['missing_rows']:,} rows have missing values; fit with --on-bad-rows skip."
        )
    if "imputed_cells" in result:
        console.note(
            f"{result['imputed_cells']:,} missing cells were imputed, and "
            f"{result['unseen_categories']:,} hold categories that the recipe has not."
        )
    console.result(result)
