"""Rows of a command, in HDF5 or in tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from streamkern.cli.job import ELSEWHERE, check_outputs, is_named, place_of
from streamkern.cli.options import refuse_given
from streamkern.errors import ModelFileError, ParameterError
from streamkern.registry import more_options

if TYPE_CHECKING:
    from streamkern.cli.console import Console
    from streamkern.models.fitted_model import FittedModel
    from streamkern.parameters.planning import Job
    from streamkern.parameters.template import Template
    from streamkern.sources.base import Opened
    from streamkern.sources.columns import Columns
    from streamkern.sources.hdf5 import HDF5Source


def opened_rows(
    options: dict[str, Any],
    columns: Columns | None = None,
    *,
    labels: bool = False,
    with_targets: bool = True,
) -> Opened:
    """Open HDF5 files, or CSV and Parquet files.

    Tables become rows by the recipe of a model, with the weights that are named there unless
    the options name others; without a model by one that is made of them.  Where
    targets are left out, names of rows are kept.
    """
    from streamkern.sources.base import Opened
    from streamkern.sources.headers import other_files
    from streamkern.storage.hdf5_files import FORMATS

    out = options.get("out")
    tables, files = other_files(options["data"])
    if not files:
        return Opened(_hdf5(options, columns, labels=labels, with_targets=with_targets))
    refuse_given(("x", "y"), "names a dataset of HDF5, and tables have none; leave it out.")
    recipe = None if columns is None else columns.recipe
    if columns is not None and recipe is None:
        raise ModelFileError(
            f"{options.get('model') or options.get('like')} was not fitted to a table, so "
            f"{files[0]} cannot become inputs; convert it to HDF5."
        )
    if out:
        formats = FORMATS if columns else ("HDF5",)
        check_outputs(options | {"data": [str(file) for file in files]}, formats=formats)
    how: Any = {"with_targets": with_targets, "with_ids": not with_targets, "labels": labels}
    needs_target = with_targets and options.get("y")
    named = options.get("targets")
    if recipe and columns and needs_target and not (recipe.targets or labels):
        named = named or columns.target_names  # of a data frame of inputs, and a series beside it
        if not named:
            raise ModelFileError(
                f"{options.get('model') or options.get('like')} knows no name of its targets, "
                f"which {files[0]} would have as columns; fit it to targets with names."
            )
    how |= {"targets": named or (() if needs_target else None)}
    return tables.opened(files, recipe, options, **how)


def _hdf5(
    options: dict[str, Any], columns: Columns | None, *, labels: bool, with_targets: bool
) -> HDF5Source:
    from streamkern.sources import open_hdf5

    y, weights = (options.get("y"), options.get("weights")) if with_targets else (None, None)
    how: Any = {"weights": weights, "labels": labels and with_targets}
    source = open_hdf5(options["data"], options["x"], y, **how)
    why = "is for tables, CSV or Parquet, but DATA is HDF5; leave it out."
    names = [getattr(each, "NAMES", ()) for each in more_options("rows")]
    refuse_given([*chain.from_iterable(names)], why)
    if columns is not None:
        columns.check_inputs(source)
    return source


@contextmanager
def prepared(
    console: Console,
    options: dict[str, Any],
    job: Job,
    template: Template | None = None,
    *,
    labels: bool = False,
) -> Iterator[HDF5Source]:
    """Give the rows of a job, in the place that the plan chooses.

    The fit plans once more for the workers and memory found there, and of a search for the size of
    its sample.  Tables become rows as those of a template, if there is one.

    A dry run ends here, with the plan printed.
    """
    columns = None if template is None else template.columns
    opened = opened_rows(options, columns, labels=labels)
    source = opened.source
    if opened.unlabelled:
        console.note(f"{opened.unlabelled:,} rows without a label were left out.")
    plan = job.plan(source, n_workers=options["workers"])
    if options["dry_run"]:
        if any(options.get(name) for name in ELSEWHERE):
            raise ParameterError(
                "--dry-run plans for this machine; leave out either it, or the cluster."
            )
        console.table("Plan", plan.rows())
        plan.check()
        console.result(plan.as_dict())
        raise click.exceptions.Exit
    check_outputs(options, source)
    if options["workers"] or not is_named(options):
        plan.check()
    with place_of(console, options, plan):
        yield source


def write_rows(
    console: Console,
    options: dict[str, Any],
    model: FittedModel,
    write: Callable[..., int],
    *,
    what: str,
    missing: str = "NaN",
    **more: Any,
) -> None:
    """Write what a model gives for every row, and print counts.

    `write` takes rows, a path, and whether to skip bad rows and replace the file; it returns how
    many rows it skipped.
    """
    from streamkern.storage.hdf5_files import FORMATS, exported

    begun, out = time.perf_counter(), options["out"]
    opened = opened_rows(options, model.columns, with_targets=False)
    source = opened.source
    model.predictor.check((source.n_samples, source.n_features))
    check_outputs(options, source, formats=FORMATS)
    with place_of(console, options), exported(out, force=options["force"]) as path:
        skip = options["on_bad_rows"] == "skip"
        skipped = write(source, path, skip_bad_rows=skip, force=options["force"])
    seconds, n_rows = time.perf_counter() - begun, source.n_samples
    beside = f", beside {', '.join(source.ids)}" if source.ids else ""
    skipping = f", {skipped:,} of them {missing}" if skipped else ""
    console.line(f"{n_rows:,} {what}{beside}{skipping}")
    rate = {"seconds": seconds, "rows_per_second": n_rows / seconds}
    console.result({"rows": n_rows, "skipped_rows": skipped} | rate | opened.unexpected | more)
