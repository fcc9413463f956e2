"""Outputs of commands, none of which may be a file that the job reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern.sources import Source

# Options that name what a job reads: files, or folders with those of some names.
_FILES = ("model", "moments", "paths", "data", "test", "like", "cluster", "scheduler_file")
_FOLDERS = {"checkpoint": "*", "keep": "*.moments.h5"}


def check_outputs(
    options: dict[str, Any],
    *sources: Source,
    outs: Sequence[str | Path] = (),
    formats: Sequence[str] = ("HDF5",),
) -> None:
    """Raise an error unless all outputs of a command can be written, and none is read by it.

    Parameters
    ----------
    options : dict
        Of the command.
    sources : Source
        Rows, in whatever files they are.
    outs : sequence of path
        By default what `--out` names.
    formats : sequence of str
        What can be written there.
    """
    from streamkern.storage import check_output

    named = [options.get(name) or () for name in _FILES]
    inputs = [path for value in named for path in ([value] if isinstance(value, str) else value)]
    for name, pattern in _FOLDERS.items():
        inputs += Path(options[name]).glob(pattern) if options.get(name) else ()
    for source in sources:
        inputs += source.paths
    for out in outs or [options["out"]]:
        check_output(out, force=options["force"], inputs=inputs, formats=formats)
    if report := options.get("report"):
        if Path(report).resolve() == Path(options["out"]).resolve():
            raise ParameterError(f"--out and --report are both {report}; name two files.")
        check_output(report, force=options["force"], inputs=inputs)
