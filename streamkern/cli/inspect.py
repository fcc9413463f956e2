"""`streamkern inspect`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.row_files import opened_rows

if TYPE_CHECKING:
    from streamkern.sources.headers import Contents

_MOST_FILES = 4
_HEADER = ("dataset", "shape", "type", "chunks", "filters", "bytes", "stored")


@command(
    *shared.rows_options,
    shared.count_option("--components", 1, 2048, "Number of random features to plan for."),
    *shared.options_of_extensions("inspect"),
    examples=("streamkern inspect houses.csv", "streamkern inspect 'train-*.h5' --components 4096"),
)
def inspect(console: Console, **options: Any) -> None:
    """Show the datasets or columns in DATA, and what a fit on them would need.

    Of HDF5 no rows are read.  Tables are read once, for what their columns hold.
    """
    from streamkern.errors import DataError, ParameterError
    from streamkern.parameters.parameters import Parameters
    from streamkern.sources.headers import describe_file, matching, other_files

    plan, problem, (_, tables) = None, shared.problem_of(options), other_files(options["data"])
    paths = [] if tables else [path for each in options["data"] for path in matching(str(each))]
    files = {path: describe_file(path) for path in paths}
    for path, datasets in files.items():
        console.table(path, list(map(_row, datasets)), _HEADER)
    try:
        given = options | ({"y": None} if tables else {})
        source: Any = opened_rows(given, labels=problem.reads_labels).source
        if tables:
            _show_columns(console, source, tables)
        if not tables or options.get("targets"):
            parameters = Parameters(n_components=options["components"])
            rows = problem.source((source, None, None), parameters, None)
            plan = problem.job(parameters).plan(rows)
    except (DataError, ParameterError) as error:
        if tables:
            raise
        console.note(f"no fit to plan: {error}")
    if plan:
        console.table("A fit", plan.rows())
    elif tables:
        console.note("no fit to plan: name the column of a target with --target.")
    contents = [
        {"path": path, "datasets": [dataset._asdict() for dataset in datasets]}
        for path, datasets in files.items()
    ]
    console.result({"files": contents, "fit": plan and asdict(plan)})


def _show_columns(console: Console, source: Any, tables: Sequence[Any]) -> None:
    from streamkern.errors.formatting import listed
    from streamkern.sources.columns import columns_of

    recipe: Any = columns_of(source).recipe
    files = listed([Path(str(table)).name for table in tables], _MOST_FILES)
    console.table(f"{source.n_samples:,} rows of {files}", recipe.in_words(), ("column", "becomes"))


def _row(each: Contents) -> tuple[str, ...]:
    from streamkern.runtime.memory import in_words

    shape, chunks = (" x ".join(f"{n:,}" for n in part or ()) for part in (each.shape, each.chunks))
    filters, sizes = each.compression or "none", map(in_words, (each.bytes, each.stored_bytes))
    return each.name, shape, each.dtype, chunks or "none", filters, *sizes
