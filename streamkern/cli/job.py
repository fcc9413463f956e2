"""The job of a command: its rows, its plan, the files it may write, and where it computes."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from streamkern.cli.console import Say
    from streamkern.models.fitted_model import FittedModel
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.parameters.job_plan import Plan
    from streamkern.sources import Source
    from streamkern.sources.hdf5 import HDF5Source

# Options that name files that a job reads.
_FILES = ("model", "moments", "paths", "data", "test", "like", "cluster", "scheduler_file")
# Options of `place_options` that name another place than workers on this machine.
_ELSEWHERE = ("cluster", "scheduler", "scheduler_file")


def source_of(options: dict[str, Any], *, labels: bool = False) -> HDF5Source:
    from streamkern.sources import open_hdf5

    names, weights = (options["x"], options["y"]), options["weights"]
    folders = options.get("folders", False)
    return open_hdf5(options["data"], *names, weights=weights, labels=labels, folders=folders)


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


def prepared(
    say: Say, options: dict[str, Any], passes: FitOptions, **how: Any
) -> tuple[HDF5Source, AbstractContextManager[None]]:
    """Return the rows of a job and the place to enter for it; `how` is as of `planned`.

    A dry run ends here, with the plan printed.
    """
    from streamkern.parameters.fit_options import check_folds
    from streamkern.parameters.plan import planned

    source = source_of(options, labels=options.get("classify", False))
    if not options.get("like"):
        check_folds(passes, source)
    plan = planned(passes, source, n_workers=options["workers"], **how)
    if options["dry_run"]:
        if any(options[name] for name in _ELSEWHERE):
            raise ParameterError(
                "--dry-run plans for this machine; leave out either it, or the cluster."
            )
        say.table("Plan", plan.rows())
        plan.check()
        say.result(plan.as_dict())
        raise click.exceptions.Exit
    check_outputs(options, source)
    if options["workers"] or not _is_named(options):
        plan.check()
    return source, place_of(say, options, plan)


def _is_named(options: dict[str, Any]) -> bool:
    """Whether the user said where to run, or that a file is to be trusted, and named none."""
    names = (*_ELSEWHERE, "trust_cluster_file", "workers")
    named = any(options.get(name) for name in names)
    return named or bool(os.environ.get("DASK_SCHEDULER_ADDRESS"))


@contextmanager
def place_of(say: Say, options: dict[str, Any], plan: Plan | None = None) -> Iterator[None]:
    """Run where `place_options` say, showing how it comes along unless the command is quiet.

    Without a named place, a plan with worker processes gets a local cluster of as many, and
    anything else runs on threads of this process.  Views of the job name it after the command and
    what it writes.
    """
    import dask

    from streamkern.monitor import progress
    from streamkern.runtime.events import job

    running = job(f"{click.get_current_context().info_name} {options.get('out') or ''}".strip())
    blas_threads = plan.blas_threads if plan else 1
    is_named = _is_named(options)
    with (
        nullcontext() if say.quiet else progress("json" if say.log_json else "auto"),
        dask.config.set({"streamkern.blas-threads": blas_threads}),
    ):
        if is_named or (plan is not None and plan.n_workers):
            from streamkern.engine.cluster import connect

            planned = None if is_named or not plan else plan.n_workers
            named: dict[str, Any] = {name: options.get(name) for name in _ELSEWHERE}
            trust = options.get("trust_cluster_file", False)
            workers = options.get("workers") or planned
            place = connect(
                **named, trust_cluster_file=trust, n_workers=workers, blas_threads=blas_threads
            )
        else:
            threads = plan.n_threads if plan else None
            place = dask.config.set(scheduler="threads", num_workers=threads)
        with place, running:
            yield


@contextmanager
def opened_rows(
    options: dict[str, Any], report: dict[str, Any], y: str | None, *, labels: bool = False
) -> Iterator[tuple[HDF5Source, int, dict[str, int]]]:
    """Open HDF5 files; or CSV and Parquet files, whose rows are converted for that time.

    Gives rows, how many others of a table have no label, and counts of cells not expected there.
    Without `y` there are neither targets nor weights.  Converted rows are kept beside the output of
    the command, or else in the folder for temporary files.  Weights of tables are those of the
    recipe in the model's report, unless the options name others.
    """
    from streamkern.errors import DataError, ModelFileError, ParameterError
    from streamkern.sources import open_hdf5
    from streamkern.sources.headers import matching
    from streamkern.sources.preprocessing import recipe_of
    from streamkern.sources.preprocessing.column_names import check_same_inputs
    from streamkern.sources.tables import is_table
    from streamkern.storage import FORMATS

    paths, out = options["data"], options.get("out")
    weights = options.get("weights")
    if not any(map(is_table, paths)):
        source = open_hdf5(paths, options["x"], y, weights=weights, labels=labels)
        check_same_inputs(report, source.describe())
        yield source, 0, {}
        return
    if options["x"] != "X" or y not in (None, "y"):
        raise ParameterError("--x and --y name datasets of HDF5, and tables have none; omit them.")
    tables = [name for path in paths for name in matching(path)]
    if other := [name for name in tables if not is_table(name)]:
        raise DataError(f"{other[0]} is no CSV or Parquet, but {tables[0]} is; name one kind.")
    recipe = recipe_of(report)
    if recipe is None:
        raise ModelFileError(
            f"{options['model']} was not fitted to a table that `streamkern convert` read, so "
            f"{tables[0]} cannot become inputs; convert it to HDF5."
        )
    from streamkern.storage.table_encoding import encoded_tables

    if out:
        check_outputs(options | {"data": tables}, formats=FORMATS)
    folder = Path(out).resolve().parent if out else Path(tempfile.gettempdir())
    recipe = replace(recipe, weights=weights or recipe.weights)
    with encoded_tables(tables, recipe, folder, with_targets=y is not None) as (paths, bare, odd):
        weights = "weights" if y is not None and recipe.weights else None
        yield open_hdf5(paths, "X", y, weights=weights, labels=labels), bare, odd


def write_rows(
    say: Say,
    options: dict[str, Any],
    model: FittedModel,
    write: Callable[[HDF5Source, Path], int],
    *,
    what: str,
    missing: str = "NaN",
    **more: Any,
) -> None:
    """Write what a model gives for every row, and print counts.

    `write` takes rows and a path, and returns how many rows it skipped.
    """
    from streamkern.storage import FORMATS, exported

    begun, out = time.perf_counter(), options["out"]
    with opened_rows(options, model.report, y=None) as (source, _, unexpected):
        model.predictor.check((source.n_samples, source.n_features))
        check_outputs(options, source, formats=FORMATS)
        with place_of(say, options), exported(out, force=options["force"]) as path:
            skipped = write(source, path)
    seconds, n_rows = time.perf_counter() - begun, source.n_samples
    say.line(f"{n_rows:,} {what}{f', {skipped:,} of them {missing}' if skipped else ''}")
    rate = {"seconds": seconds, "rows_per_second": n_rows / seconds}
    say.result({"rows": n_rows, "skipped_rows": skipped} | rate | unexpected | more)
