"""`streamkern convert`."""

from __future__ import annotations

from typing import Any

import click

from streamkern.cli.options import Say, common, force_option


@click.command()
@click.argument("src")
@click.argument("dst", metavar="DST.h5")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help="Column of a target: its name, in a .npy its number; may be given several times.",
)
@click.option("--no-target", is_flag=True, help="All columns are inputs, as for `predict`.")
@force_option
@common
def convert(say: Say, src: str, dst: str, **options: Any) -> None:
    """Write the table SRC as the datasets X and y of DST.h5, in chunks.

    SRC ends in .csv or .tsv (with a header line; also .gz), .parquet, .npz (arrays X and y) or
    .npy (one table). All columns but the targets become inputs, so all must be numbers; missing
    values become NaN.
    """
    from streamkern.conversion import convert as convert_table
    from streamkern.errors import ParameterError

    targets = options["targets"]
    if options["no_target"] and targets:
        raise ParameterError("--target and --no-target exclude each other; give one of them.")
    result = convert_table(
        src, dst, targets=None if options["no_target"] else targets, force=options["force"]
    )
    say.line(
        f"{result['rows']:,} rows of {result['n_features']:,} inputs and {result['n_targets']:,} "
        f"targets in {dst}"
    )
    if result["missing_rows"]:
        say.note(
            f"{result['missing_rows']:,} rows have missing values; fit with --on-bad-rows skip."
        )
    say.result(result)
