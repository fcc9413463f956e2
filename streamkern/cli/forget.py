"""`streamkern forget`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streamkern.cli.common_options import Say, common, data_options, force_option, place_options
from streamkern.cli.moments import save_moments


@click.command()
@click.argument("moments", metavar="M.h5")
@data_options
@click.option(
    "--out", metavar="NEW.h5", help="The moments file to write; by default M.h5 is replaced."
)
@place_options
@force_option
@common
def forget(say: Say, **options: Any) -> None:
    """Take the rows of DATA out of the sums in the moments M.h5.

    DATA is read twice, and refused if any row of it is not in M.h5. Models that were solved before
    still know the rows: solve again. Standardisation and length scale stay as they were chosen
    when the rows were in.
    """
    from streamkern.cli.compute_place import Place
    from streamkern.cli.input_rows import source_of
    from streamkern.cli.output_paths import check_outputs
    from streamkern.errors import OutputError
    from streamkern.models.data_moments import load_moments

    path, in_place = options["moments"], options["out"] is None
    before, moments = _state(path), load_moments(path)
    source = source_of(options, labels="classes" in moments.report)
    if in_place:
        options |= {"out": path, "force": True, "moments": None}  # to be replaced
    check_outputs(options, source)
    with Place.of(options).entered(say):
        left = moments.forget(source)
    if in_place and _state(path) != before:
        raise OutputError(
            f"{path} was changed by another job meanwhile, and is kept; run the command again."
        )
    save_moments(say, "Left", left, options["out"], force=options["force"])


def _state(path: str) -> tuple[int, ...] | None:
    """Return what changes when a file does, None where there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
