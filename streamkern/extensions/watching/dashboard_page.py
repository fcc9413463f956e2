"""The Bokeh page of streamkern on a scheduler's dashboard: a choice of jobs, a panel, charts."""

from functools import partial
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import ColumnDataSource, Div, InlineStyleSheet, NumeralTickFormatter, Select
from bokeh.plotting import figure
from distributed.dashboard.components.scheduler import BOKEH_THEME, env
from distributed.dashboard.core import BokehApplication, DaskBokehTornado
from distributed.dashboard.scheduler import template_variables
from tornado.ioloop import IOLoop

from streamkern.extensions.watching.job_panel import CSS, panel, title
from streamkern.extensions.watching.watched_jobs import WatchedJobs, rates_of
from streamkern.monitor import job_text
from streamkern.monitor.jobs import Job
from streamkern.monitor.passes import Pass

Points = list[tuple[float, float]]

_NAME = "streamkern"
_EVERY_MS = 2000
_LATEST = "latest"
_SECOND = "#d55e00"
_FIRST = "#0072b2"


def add_page(scheduler: Any, jobs: WatchedJobs) -> None:
    """Add the page, and a link to it in the menu, to a dashboard that may be running already."""
    served = scheduler.http_application
    dashboards = [each for each in served.applications if isinstance(each, DaskBokehTornado)]
    if not dashboards:
        return
    shared = template_variables(scheduler)
    shared["pages"].append(_NAME)  # the very list that all pages show
    pages = {f"/{_NAME}": partial(_document, jobs)}
    application = BokehApplication(
        pages, scheduler, prefix=dashboards[0].prefix, template_variables=shared
    )
    served.add_application(application)
    application.initialize(IOLoop.current())
    application.start()


def _document(jobs: WatchedJobs, _: Any, extra: dict[str, Any], doc: Any) -> None:
    view = _View(jobs)
    view.update()
    doc.add_root(view.root)
    doc.add_periodic_callback(view.update, _EVERY_MS)
    doc.title = "streamkern"
    doc.theme = BOKEH_THEME
    doc.template = env.get_template("simple.html")
    doc.template_variables.update(extra)


class _Chart:
    """A line through points, with a ring about one of them or a dashed horizontal `level`."""

    def __init__(self, title: str, x: str, y: str, *, level: str = "", **options: Any) -> None:
        title += f" (dashed: {level})" * bool(level)
        self.points, self.second = (ColumnDataSource({"x": [], "y": []}) for _ in range(2))
        options |= {"sizing_mode": "stretch_width", "toolbar_location": None, "tools": ""}
        options |= {"title": title, "x_axis_label": x, "y_axis_label": y}
        options |= {"styles": {"flex": "1 1 max(300px, 40%)"}}  # two a line, on phones one
        self.figure = figure(height=240, **options)
        self.figure.title.text_font_size = "12px"
        self.figure.line("x", "y", source=self.points, line_width=2, color=_FIRST)
        self.figure.scatter("x", "y", source=self.points, size=4, color=_FIRST)
        if level:
            line = {"line_dash": "dashed", "line_width": 1.5, "color": _SECOND}
            self.figure.line("x", "y", source=self.second, **line)
        else:
            ring = {"fill_alpha": 0.0, "line_width": 2.5, "line_color": _SECOND}
            self.figure.scatter("x", "y", source=self.second, size=11, **ring)

    def show(self, points: Points, second: Points) -> bool:
        """Take other points, and say whether there is a line to be seen."""
        for source, data in ((self.points, points), (self.second, second)):
            columns = {"x": [x for x, _ in data], "y": [y for _, y in data]}
            if source.data != columns:
                source.data = columns
        return len(points) > 1


class _View:
    """What one browser shows: the job that was picked there, or the latest."""

    def __init__(self, jobs: WatchedJobs) -> None:
        self.jobs = jobs
        style, wide = InlineStyleSheet(css=CSS), {"sizing_mode": "stretch_width", "max_width": 420}
        self.pick = Select(title="Job", value=_LATEST, **wide)
        self.panel = Div(text="", sizing_mode="stretch_width", stylesheets=[style])
        self.rate = _Chart("Rows a second", "seconds", "rows/s", level="products alone")
        self.rate.figure.y_range.start = 0
        self.rate.figure.yaxis.formatter = NumeralTickFormatter(format="0.[0]a")
        self.memory = _Chart("Largest worker", "seconds", "GB of memory", level="planned")
        self.memory.figure.y_range.start = 0
        self.error = _Chart("", "rows read before", "root mean square")
        self.error.figure.xaxis.formatter = NumeralTickFormatter(format="0.[0]a")
        log = {"x_axis_type": "log", "y_axis_type": "log"}
        self.penalty = _Chart("Penalty", "alpha", "held-out error", **log)
        wrapped = InlineStyleSheet(css=":host { flex-wrap: wrap; gap: 12px; }")
        self.charts = row([], sizing_mode="stretch_width", stylesheets=[wrapped])
        self.root = column(self.pick, self.panel, self.charts, sizing_mode="stretch_width")

    def update(self) -> None:
        with self.jobs.lock:
            now = self.jobs.clock()
            jobs = [(job.number, title(job)) for job in self.jobs]
            self.pick.options = [(_LATEST, "the latest"), *jobs]
            job = self.jobs.jobs.get(self.pick.value) or self.jobs.latest
            shown = [] if job is None or job.main is None else self._drawn(job, job.main)
            text = panel(job, now, self.jobs.memory)
        self.panel.text = text
        self.charts.children = shown

    def _drawn(self, job: Job, reading: Pass) -> list[Any]:
        rates, best = rates_of(reading), reading.attainable()
        level: Points = []
        if rates and reading.row_flops and best:
            level = [(seconds, best / reading.row_flops) for seconds, _ in (rates[0], rates[-1])]
        errors = [(float(rows), error) for rows, error in reading.validation]
        self.error.figure.title.text = f"Error so far with {job_text.features_of(reading)}"
        taken = [(seconds, each / 1e9) for seconds, each in job.memory]
        planned = [(seconds, job.worker_bytes / 1e9) for seconds, _ in taken[:1] + taken[-1:]]
        curve, chosen = _penalty_curve(job)
        drawn = [
            (self.rate, self.rate.show(rates, level)),
            (self.memory, self.memory.show(taken, planned if job.worker_bytes else [])),
            (self.error, self.error.show(errors, errors[-1:])),
            (self.penalty, self.penalty.show(curve, chosen)),
        ]
        return [chart.figure for chart, has_line in drawn if has_line]


def _penalty_curve(job: Job) -> tuple[Points, Points]:
    """Return the error at every penalty and at the chosen one, of a single target."""
    solved = job.solved or {}
    curve = solved.get("alpha_curve")
    if not curve or curve["criterion"] == "evidence":
        return [], []
    pairs = zip(curve["alphas"], curve["values"], strict=True)
    points = [(alpha, value) for alpha, value in pairs if isinstance(value, float)]
    return points, [point for point in points if point[0] == solved["alpha"]]
