"""The job of a command: its plan, the files it may write, and where it computes."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from streamkern.cli.console import Console
    from streamkern.parameters.plan import Plan
    from streamkern.sources import Source

# Options that name files that a job reads.
_FILES = ("model", "moments", "paths", "data", "test", "like", "cluster", "scheduler_file")
# Options of `place_options` that name another place than workers on this machine.
ELSEWHERE = ("cluster", "scheduler", "scheduler_file")


def check_outputs(
    options: dict[str, Any],
    *sources: Source,
    outs: Sequence[str | Path] = (),
    formats: Sequence[str] = ("HDF5",),
) -> None:
    """Raise an error unless a command can write its outputs, and reads none of them.

    Outputs are `outs`, or what `--out` and `--report` name, in one of `formats`.
    """
    from streamkern.storage.outputs import check_output

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


def is_named(options: dict[str, Any]) -> bool:
    """Whether the user said where to run."""
    named = any(options.get(name) for name in (*ELSEWHERE, "workers"))
    return named or bool(os.environ.get("DASK_SCHEDULER_ADDRESS"))


@contextmanager
def place_of(console: Console, options: dict[str, Any], plan: Plan | None = None) -> Iterator[None]:
    """Run where `place_options` say, showing how it comes along unless the command is quiet.

    Without a named place, a plan with worker processes gets a local cluster of as many, and
    anything else runs on threads of this process.  Views of the job name it after the command and
    what it writes.
    """
    import dask

    from streamkern.monitor import progress
    from streamkern.runtime.events import job

    places = [f"--{name.replace('_', '-')}" for name in ELSEWHERE if options.get(name)]
    if len(places) > 1:
        raise ParameterError(
            f"{' and '.join(places)} each say where to run; leave out all but one."
        )
    running = job(f"{click.get_current_context().info_name} {options.get('out') or ''}".strip())
    elsewhere = is_named(options)
    # Of what other machines have, the plan knows nothing.
    is_here = bool(options.get("workers")) or not elsewhere
    blas_threads = plan.blas_threads if plan and is_here else 1
    n_workers = options.get("workers") or (plan.n_workers if plan and not elsewhere else None)
    with ExitStack() as stack:
        if not console.quiet:
            stack.enter_context(progress("json" if console.log_json else "auto"))
        stack.enter_context(dask.config.set({"streamkern.blas-threads": blas_threads}))
        if elsewhere or n_workers:
            from streamkern.engine.cluster import connect

            named = {name: options[name] for name in ELSEWHERE if name in options}
            # What they log about a cluster that does not start or is lost, they also raise.
            for name in ("distributed.client", "distributed.deploy"):
                log = logging.getLogger(name)
                stack.callback(log.setLevel, log.level)
                log.setLevel(logging.CRITICAL)
            place = connect(**named, n_workers=n_workers, blas_threads=blas_threads)
        else:
            threads = plan.n_threads if plan else None
            place = dask.config.set(scheduler="threads", num_workers=threads)
        stack.enter_context(place)
        stack.enter_context(running)
        yield
