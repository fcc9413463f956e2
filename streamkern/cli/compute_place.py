"""Where a command computes: a named cluster, this process, or a local cluster for large jobs."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern.cli.common_options import Say
    from streamkern.parameters.plan import Plan


@dataclass(frozen=True)
class Place:
    """The options of `place_options`."""

    cluster: str | None = None
    trust_cluster_file: bool = False
    scheduler: str | None = None
    scheduler_file: str | None = None
    workers: int | None = None

    @classmethod
    def of(cls, options: dict[str, Any]) -> Place:
        """Return the place that the options of a command name."""
        return cls(**{field.name: options[field.name] for field in fields(cls)})

    @property
    def is_named(self) -> bool:
        """Whether the user said where to run, or that a file is to be trusted, and named none."""
        options = (self.is_elsewhere, self.trust_cluster_file, self.workers)
        return any(options) or bool(os.environ.get("DASK_SCHEDULER_ADDRESS"))

    @property
    def is_elsewhere(self) -> bool:
        """Whether the user named a place other than workers on this machine."""
        return any((self.cluster, self.scheduler, self.scheduler_file))

    @contextmanager
    def entered(self, say: Say, plan: Plan | None = None, what: str = "") -> Iterator[None]:
        """Run in that place, showing how it comes along unless the command is quiet.

        Without a named place, a plan with worker processes gets a local cluster of as many, and
        anything else runs on threads of this process.  Views of the job name it after the command
        and `what` it makes.
        """
        import dask

        from streamkern.monitor import progress
        from streamkern.runtime.events import job

        name = f"{click.get_current_context().info_name} {what}".strip()
        blas_threads = plan.blas_threads if plan else 1
        with (
            nullcontext() if say.quiet else progress("json" if say.log_json else "auto"),
            dask.config.set({"streamkern.blas-threads": blas_threads}),
        ):
            if self.is_named or (plan is not None and plan.n_workers):
                from streamkern.engine.cluster import connect

                with (
                    connect(
                        cluster=self.cluster,
                        trust_cluster_file=self.trust_cluster_file,
                        scheduler=self.scheduler,
                        scheduler_file=self.scheduler_file,
                        n_workers=self.workers
                        or (None if self.is_named or not plan else plan.n_workers),
                        blas_threads=blas_threads,
                    ),
                    job(name),
                ):
                    yield
            else:
                threads = plan.n_threads if plan else None
                with dask.config.set(scheduler="threads", num_workers=threads), job(name):
                    yield
