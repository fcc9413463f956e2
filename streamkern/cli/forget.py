"""`streamkern forget`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streamkern.cli.common_options import Say, common, data_options, force_option, place_options
from streamkern.cli.moments import report_on


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
    from streamkern.cli.output_paths import check_outputs
    from streamkern.errors import OutputError
    from streamkern.models.data_moments import load_moments
    from streamkern.sources import open_hdf5

    out = options["out"] or options["moments"]
    before = _state(options["moments"])
    moments = load_moments(options["moments"])
    labels = "classes" in moments.report
    names = options["x"], options["y"]
    source = open_hdf5(options["data"], *names, weights=options["weights"], labels=labels)
    force = options["force"] or options["out"] is None
    taken = options["moments"] if options["out"] else None  # or else replaced
    check_outputs(options | {"out": out, "force": force, "moments": taken}, source)
    with Place.of(options).entered(say):
        left = moments.forget(source)
    if options["out"] is None and _state(out) != before:
        raise OutputError(
            f"{out} was changed by another job meanwhile, and is kept; run the command again."
        )
    left.save(out, force=force)
    report_on(say, "Left", left, out)


def _state(path: str) -> tuple[int, ...] | None:
    """Return what changes when a file does, None where there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
