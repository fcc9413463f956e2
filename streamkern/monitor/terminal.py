"""Live progress lines on a terminal."""

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from streamkern.errors.formatting import printable
from streamkern.monitor import job_text
from streamkern.monitor.jobs import Job, Jobs
from streamkern.runtime.events import Event

_BAR = 30


class LiveLines(Live):
    """Jobs in lines that are written anew four times a second, and left above in the end."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        console = Console(stderr=True, highlight=False, force_jupyter=False)
        super().__init__(get_renderable=self.lines, console=console)

    def told(self, event: Event) -> None:
        """Leave trials, and the lines of a job that ended; `jobs` has heard of it already."""
        if event["kind"] not in {"job ended", "tried"}:
            return
        lines: RenderableType | None = None
        with self.jobs.lock:
            now, job = self.jobs.clock(), self.jobs.job_of(event)
            if job is not None and event["kind"] == "tried":
                lines = Text(printable("; ".join(job_text.trial_of(job, event, now))), "dim")
            elif job is not None and not job.is_short(now):
                lines = _lines_of(job, now)
        # The view is drawn under a lock of its own and then asks for that of the jobs.
        if lines is not None:
            self.console.print(lines)

    def lines(self) -> RenderableType:
        with self.jobs.lock:
            now = self.jobs.clock()
            shown = [job for job in self.jobs if job.ended is None and not job.is_short(now)]
            return Group(*(_lines_of(job, now) for job in reversed(shown)))


def _lines_of(job: Job, now: float) -> RenderableType:
    name = (printable(job.name), "bold")
    head = Text.assemble(name, "  ", (job.phase, "dim"), no_wrap=True, overflow="ellipsis")
    head.append(f"  {job_text.duration(job.elapsed(now))}")
    if left := job_text.whole_job(job, now):
        head.append(f"  {left}")
    if job.dashboard and job.ended is None:
        head.append(f"  {job.dashboard}", "dim")
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(no_wrap=True)
    for reading, words in job_text.bars(job, now):
        bar = ProgressBar(reading.n_rows, reading.rows_done, width=_BAR)
        bar.complete_style = bar.finished_style = "cyan"
        table.add_row(Text(f"  {reading.label}"), bar, Text(words))
    shown = (Text(f"  {line}", "dim", no_wrap=True) for line in job_text.lines(job, now))
    return Group(head, *([table] if table.rows else []), *shown)
