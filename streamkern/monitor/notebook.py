"""Live progress in the output of a notebook's cell: HTML that is written anew, no widget."""

from __future__ import annotations

import sys
import threading
import uuid
from contextvars import copy_context
from typing import TYPE_CHECKING

from streamkern.errors.formatting import printable
from streamkern.errors.html_table import LINE, shown_html
from streamkern.monitor import job_text

if TYPE_CHECKING:
    from streamkern.monitor.jobs import Job, Jobs
    from streamkern.monitor.passes import Pass
    from streamkern.runtime.events import Event

# Seconds between two looks at the jobs.
_LOOK = 0.5
_COLOURS = {"done": "#0072b2", "failed": "#d55e00"}
_DIM = "opacity:.7;font-size:12px;overflow-wrap:anywhere"


def in_notebook() -> bool:
    """Say whether this process is the kernel of a notebook, without importing IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class NotebookPanel:
    """Jobs in the output of the cell that shows them, which stays there in the end."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self._shown: tuple[str, str] | None = None
        self._display_id = uuid.uuid4().hex
        self._over = threading.Event()
        # The cell that outputs belong to is a variable of the context.
        look = {"target": copy_context().run, "args": (self._look,)}
        self._thread = threading.Thread(name="progress", daemon=True, **look)  # type: ignore[arg-type]

    def __enter__(self) -> None:
        self._show()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._show()

    def told(self, event: Event) -> None:
        """Wait for the next look."""

    def _look(self) -> None:
        while not self._over.wait(_LOOK):
            self._show()

    def _show(self) -> None:
        from IPython.display import display  # noqa: PLC0415  which runs already

        with self.jobs.lock:
            now = self.jobs.clock()
            jobs = [job for job in self.jobs if job is self.jobs.latest or not job.is_short(now)]
            html = "".join(_html_of(job, now) for job in reversed(jobs))
            text = "\n".join(line for job in reversed(jobs) for line in _text_of(job, now))
        if self._shown != (html, text):
            bundle, update = {"text/html": html, "text/plain": text}, self._shown is not None
            self._shown = html, text
            display(bundle, raw=True, display_id=self._display_id, update=update)  # type: ignore[no-untyped-call]


def _html_of(job: Job, now: float) -> str:
    link = ""
    if job.ended is None and (job.dashboard or "").startswith("http"):
        link = f' · <a href="{shown_html(job.dashboard)}" target="_blank">dashboard</a>'
    head = f'<b>{shown_html(job.name)}</b> <span style="{_DIM}">{_state(job, now)}{link}</span>'
    bars = "".join(_bar(each, words) for each, words in job_text.bars(job, now))
    lines = (f'<div style="{_DIM}">{shown_html(line)}</div>' for line in _lines(job, now))
    return f'<div style="margin:4px 0 12px;max-width:60em">{head}{bars}{"".join(lines)}</div>'


def _bar(reading: Pass, words: str) -> str:
    colour = _COLOURS["failed" if reading.error else "done"]
    track = f"flex:1 1 160px;max-width:320px;height:10px;border-radius:5px;background:{LINE}"
    done = f"width:{reading.share:.1%};height:100%;border-radius:5px;background:{colour}"
    return (
        f'<div style="display:flex;flex-wrap:wrap;align-items:center;gap:2px 12px;margin:2px 0">'
        f'<span style="flex:0 0 8em">{shown_html(reading.label)}</span>'
        f'<div style="{track}"><div style="{done}"></div></div>'
        f'<span style="font-variant-numeric:tabular-nums">{shown_html(words)}</span></div>'
    )


def _text_of(job: Job, now: float) -> list[str]:
    bars = [f"  {each.label} {words}" for each, words in job_text.bars(job, now)]
    lines = [f"{job.name} {_state(job, now)}", *bars, *(f"  {each}" for each in _lines(job, now))]
    return list(map(printable, lines))


def _state(job: Job, now: float) -> str:
    parts = job.phase, job_text.duration(job.elapsed(now)), job_text.whole_job(job, now)
    return shown_html(", ".join(filter(None, parts)))


def _lines(job: Job, now: float) -> list[str]:
    return [*job_text.lines(job, now), *([job.error] if job.error else [])]
