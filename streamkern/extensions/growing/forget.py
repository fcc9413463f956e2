"""`streamkern forget`."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import check_outputs, place_of
from streamkern.cli.row_files import opened_rows
from streamkern.cli.saving import save_moments


@command(
    click.argument("moments", metavar="M.h5"),
    *shared.data_options,
    *shared.options_of_extensions("rows of a model"),
    click.option(
        "--out", metavar="NEW.h5", help="The moments file to write; by default M.h5 is replaced."
    ),
    *shared.place_options,
    shared.force_option,
    examples=("streamkern forget both.h5 day-1.h5",),
)
def forget(console: Console, **options: Any) -> None:
    """Take the rows of DATA out of the sums in the moments M.h5.

    DATA is read twice, and refused if any row of it is not in M.h5. Models that were solved before
    still know the rows: solve again. Standardisation and length scale stay as they were chosen
    when the rows were in.
    """
    from streamkern.errors import OutputError
    from streamkern.models.data_moments import load_moments

    path, in_place = options["moments"], options["out"] is None
    before, moments = _state(path), load_moments(path)
    if in_place:
        options |= {"out": path, "force": True, "moments": None}  # to be replaced
    opened = opened_rows(options, moments.columns, labels=moments.encoding.reads_labels)
    check_outputs(options, opened.source)
    with place_of(console, options):
        left = moments.forget(opened.source)
    if in_place and _state(path) != before:
        raise OutputError(
            f"{path} was changed by another job meanwhile, and is kept; run the command again."
        )
    save_moments(console, "Left", left, options["out"], force=options["force"])


def _state(path: str) -> tuple[int, ...]:
    """Return what changes when a file does, nothing where there is none."""
    with suppress(OSError):
        found = Path(path).stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return ()
