"""Live progress in the output of a notebook's cell: HTML that is written anew, no widget."""

import sys
import threading
import uuid
from contextvars import copy_context

from streamkern.errors.formatting import printable
from streamkern.monitor import job_text
from streamkern.monitor.jobs import Jobs
from streamkern.runtime.events import Event

# Seconds between two looks at the jobs.
_LOOK = 0.5


def in_notebook() -> bool:
    """Say whether this process is the kernel of a notebook, without importing IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class NotebookPanel:
    """Jobs in the output of the cell that shows them, which stays there in the end."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self._shown: dict[str, str] | None = None
        self._display_id = uuid.uuid4().hex
        self._over = threading.Event()
        # The cell that outputs belong to is a variable of the context.
        run = copy_context().run
        self._thread = threading.Thread(target=lambda: run(self._look), daemon=True)

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

        from streamkern.monitor.job_panel import TEMPLATES  # noqa: PLC0415  Jinja takes long

        shown, text = [], []
        with self.jobs.lock:
            now = self.jobs.clock()
            for job in reversed(list(self.jobs)):
                if job is self.jobs.latest or not job.is_short(now):
                    times = job_text.duration(job.elapsed(now)), job_text.whole_job(job, now)
                    state = ", ".join(filter(None, (job.phase, *times)))
                    bars, lines = job_text.bars(job, now), job_text.lines(job, now)
                    lines += [job.error] if job.error else []
                    shown.append((job, state, bars, lines))
                    text += [f"{job.name} {state}", *(f"  {b.label} {words}" for b, words in bars)]
                    text += [f"  {line}" for line in lines]
            html = TEMPLATES.get_template("notebook.html").render(jobs=shown)
        update, bundle = self._shown is not None, {"text/html": html}
        bundle["text/plain"] = "\n".join(map(printable, text))
        if bundle != self._shown:
            self._shown = bundle
            display(bundle, raw=True, display_id=self._display_id, update=update)  # type: ignore[no-untyped-call]
