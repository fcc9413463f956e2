"""Live progress lines on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from streamkern.errors.formatting import printable
from streamkern.monitor import job_text

if TYPE_CHECKING:
    from streamkern.monitor.jobs import Job, Jobs
    from streamkern.runtime.events import Event

# What was over sooner nobody waited for.
_SHORT = 1.0
_BAR = 30


class LiveLines(Live):
    """Jobs in lines that are written anew four times a second, and left above in the end."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        console = Console(stderr=True, highlight=False)
        super().__init__(get_renderable=self.lines, console=console)

    def told(self, event: Event) -> None:
        """Leave the lines of a job that ended; `jobs` has heard of it already."""
        if event["kind"] != "job ended":
            return
        with self.jobs.lock:
            now, job = self.jobs.clock(), self.jobs.job_of(event)
            lines = None if job is None or job.elapsed(now) < _SHORT else _lines_of(job, now)
        # The view is drawn under a lock of its own and then asks for that of the jobs.
        if lines is not None:
            self.console.print(lines)

    def lines(self) -> RenderableType:
        with self.jobs.lock:
            now = self.jobs.clock()
            under_way = [job for job in self.jobs if job.ended is None]
            shown = [job for job in under_way if job.elapsed(now) >= _SHORT]
            return Group(*(_lines_of(job, now) for job in reversed(shown)))


def _lines_of(job: Job, now: float) -> RenderableType:
    name = (printable(job.name), "bold")
    head = Text.assemble(name, "  ", (job.phase, "dim"), no_wrap=True, overflow="ellipsis")
    head.append(f"  {job_text.duration(job.elapsed(now))}")
    if job.dashboard and job.ended is None:
        head.append(f"  {job.dashboard}", "dim")
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(no_wrap=True)
    passes = [
        reading
        for reading in job.passes.values()
        if reading.ended is None or reading is job.main or reading.elapsed(now) >= _SHORT
    ]
    for reading in passes:
        when = f"{job_text.duration(reading.seconds_left(now))} left"
        if reading.ended is not None:
            when = f"in {job_text.duration(reading.elapsed(now))}"
        done = f"{reading.share:4.0%}  {job_text.rows_of(reading)}  {when}"
        bar = ProgressBar(reading.n_rows, reading.rows_done, width=_BAR)
        bar.complete_style = bar.finished_style = "cyan"
        table.add_row(Text(f"  {reading.label}"), bar, Text(done))
    if not passes:
        return head
    known, n_workers = job_text.details(job, reading, now), len(reading.workers.keys() - {""})
    workers = f"{n_workers} worker{'s' * (n_workers > 1)} · " if n_workers else ""
    lines = [
        workers + known["rates"],
        " · ".join(filter(None, (known["times"], known["memory"]))),
        " · ".join(filter(None, (known["shards"], known["validation"]))),
        job_text.solution_of(job.solved) if job.solved else "",
    ]
    shown = (Text(f"  {line}", "dim", no_wrap=True) for line in lines if line)
    return Group(head, table, *shown)
