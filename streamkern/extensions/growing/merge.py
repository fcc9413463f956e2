"""`streamkern merge`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import check_outputs
from streamkern.cli.saving import save_moments


@command(
    click.argument("paths", nargs=-1, required=True, metavar="A.h5 B.h5..."),
    shared.out_option("C.h5", "The moments file to write."),
    click.option(
        "--repeated-rows",
        is_flag=True,
        help="Rows with equal values in two files are different observations, and count twice.",
    ),
    shared.force_option,
    examples=("streamkern merge m1.h5 m2.h5 --out both.h5",),
)
def merge(console: Console, **options: Any) -> None:
    """Merge the moments of different rows, as if all rows had been read together.

    They must be of the same map: made with --like the first, or all with --no-standardize and the
    same options, --length-scale among them. Files that share rows are refused.
    """
    from streamkern.errors import DataError, ParameterError
    from streamkern.models.data_moments import load_moments

    first, *rest = options["paths"]
    if not rest:
        raise ParameterError(f"merging takes two moments files or more, not {first} alone.")
    check_outputs(options)
    total = load_moments(first)
    for path in rest:
        more = load_moments(path)
        try:
            total = total.merge(more, repeated_rows=options["repeated_rows"])
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
    save_moments(console, "Merged", total, options["out"], force=options["force"])
