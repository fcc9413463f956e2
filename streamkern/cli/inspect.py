"""`streamkern inspect`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Say, command
from streamkern.cli.job import source_of

if TYPE_CHECKING:
    from streamkern.sources.file_contents import Contents

_HEADER = ("dataset", "shape", "type", "chunks", "filters", "bytes", "stored")


@command(
    *shared.data_options,
    click.option(
        "--components",
        type=click.IntRange(min=1),
        default=2048,
        show_default=True,
        help="Number of random features to plan for.",
    ),
    shared.classify_option,
)
def inspect(say: Say, **options: Any) -> None:
    """Show the datasets in DATA, and what a fit on X and y would need."""
    from streamkern.errors import DataError
    from streamkern.models.labelling import labelled_source
    from streamkern.parameters.plan import plan_fit
    from streamkern.sources.file_contents import describe_files

    files, classify = describe_files(options["data"]), options["classify"]
    for path, datasets in files.items():
        say.table(path, list(map(_row, datasets)), _HEADER)
    plan = None
    try:
        source = source_of(options, labels=classify)
        rows = labelled_source(source) if classify else source
        plan = plan_fit(rows, options["components"], n_folds=5)
    except DataError as error:
        say.note(f"no fit to plan: {error}")
    else:
        say.table("A fit", plan.rows())
    contents = [
        {"path": path, "datasets": [dataset._asdict() for dataset in datasets]}
        for path, datasets in files.items()
    ]
    say.result({"files": contents, "fit": plan and asdict(plan)})


def _row(each: Contents) -> tuple[str, ...]:
    from streamkern.runtime.memory import in_words

    shape, chunks = (" x ".join(f"{n:,}" for n in part or ()) for part in (each.shape, each.chunks))
    filters, sizes = each.compression or "none", map(in_words, (each.bytes, each.stored_bytes))
    return each.name, shape, each.dtype, chunks or "none", filters, *sizes
