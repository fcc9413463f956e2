"""The job of a command: its plan, the files it may write, and where it computes."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from streamkern.cli.console import Say
    from streamkern.parameters.job_plan import Plan
    from streamkern.parameters.plan import Job
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
    say: Say, options: dict[str, Any], job: Job
) -> tuple[HDF5Source, AbstractContextManager[None]]:
    """Return the rows of a job and the place to enter for it.

    The plan chooses the place; the fit plans once more for the workers and memory found there, and
    of a search for the size of its sample.

    A dry run ends here, with the plan printed.
    """
    from streamkern.parameters.plan import planned

    source = source_of(options, labels=options.get("classify", False))
    plan = planned(
        job.for_rows(job.options, source), source, n_workers=options["workers"], **job.solution
    )
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
