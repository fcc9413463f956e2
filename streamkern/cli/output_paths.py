"""Checks of output paths, none of which may be a file that the job reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern.sources import Source

# Options that name files that a job reads.
_FILES = ("model", "moments", "paths", "data", "test", "like", "cluster", "scheduler_file")


def check_outputs(
    options: dict[str, Any],
    *sources: Source,
    outs: Sequence[str | Path] = (),
    formats: Sequence[str] = ("HDF5",),
) -> None:
    """Raise an error unless a command can write its outputs, and reads none of them.

    Outputs are `outs`, or what `--out` and `--report` name, in one of `formats`.
    """
    from streamkern.storage import check_output

    named = [options.get(name) or () for name in _FILES]
    inputs = [path for value in named for path in ([value] if isinstance(value, str) else value)]
    if options.get("checkpoint"):
        inputs += Path(options["checkpoint"]).glob("*")
    for source in sources:
        inputs += source.paths
    for out in outs or [options["out"]]:
        check_output(out, force=options["force"], inputs=inputs, formats=formats)
    if report := options.get("report"):
        if Path(report).resolve() == Path(options["out"]).resolve():
            raise ParameterError(f"--out and --report are both {report}; name two files.")
        check_output(report, force=options["force"], inputs=inputs)
