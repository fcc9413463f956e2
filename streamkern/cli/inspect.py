"""`streamkern inspect`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Say, command
from streamkern.cli.job import source_of

if TYPE_CHECKING:
    from streamkern.parameters.plan import Plan
    from streamkern.sources import Source
    from streamkern.sources.file_contents import Contents


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
        _show(say, path, datasets)
    plan: Plan | None = None
    try:
        source: Source = source_of(options, labels=classify)
        if classify:
            source = labelled_source(source)
        plan = plan_fit(source, options["components"], n_folds=5)
    except DataError as error:
        say.note(f"no fit to plan: {error}")
    else:
        say.table("A fit", plan.rows())
    contents = [
        {"path": path, "datasets": [dataset._asdict() for dataset in datasets]}
        for path, datasets in files.items()
    ]
    say.result({"files": contents, "fit": plan and asdict(plan)})


def _show(say: Say, path: str, datasets: list[Contents]) -> None:
    from streamkern.runtime.memory import in_words

    rows = [
        (
            each.name,
            _times(each.shape),
            each.dtype,
            _times(each.chunks or ()) or "none",
            each.compression or "none",
            in_words(each.bytes),
            in_words(each.stored_bytes),
        )
        for each in datasets
    ]
    say.table(path, rows, ("dataset", "shape", "type", "chunks", "filters", "bytes", "stored"))


def _times(sizes: tuple[int, ...]) -> str:
    return " x ".join(f"{size:,}" for size in sizes)
