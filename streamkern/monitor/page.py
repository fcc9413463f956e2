"""The page of streamkern on a scheduler's dashboard."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bokeh.layouts import column, row
from bokeh.models import ColumnDataSource, Div, InlineStyleSheet, NumeralTickFormatter, Select
from bokeh.plotting import figure
from distributed.dashboard.components.scheduler import BOKEH_THEME, env
from distributed.dashboard.core import BokehApplication, DaskBokehTornado
from distributed.dashboard.scheduler import template_variables
from tornado.ioloop import IOLoop

from streamkern.monitor import panels

if TYPE_CHECKING:
    from streamkern.monitor.facts import Job, Jobs, Pass

_NAME = "streamkern"
_EVERY_MS = 1000
_LATEST = "latest"
_SECOND = "#d55e00"
_FIRST = "#0072b2"


def add_page(scheduler: Any, jobs: Jobs) -> None:
    """Add the page, and a link to it in the menu, to a dashboard that may be running already."""
    served = scheduler.http_application
    dashboards = [each for each in served.applications if isinstance(each, DaskBokehTornado)]
    if not dashboards:
        return
    shared = template_variables(scheduler)
    shared["pages"].append(_NAME)  # the very list that all pages show
    application = BokehApplication(
        {f"/{_NAME}": partial(_document, jobs)},
        scheduler,
        prefix=dashboards[0].prefix,
        template_variables=shared,
    )
    served.add_application(application)
    application.initialize(IOLoop.current())
    application.start()


def _document(jobs: Jobs, scheduler: Any, extra: dict[str, Any], doc: Any) -> None:
    """Fill one browser's document, and keep it up to date."""
    view = _View(jobs, scheduler)
    view.update()
    doc.add_root(view.root)
    doc.add_periodic_callback(view.update, _EVERY_MS)
    doc.title = "streamkern"
    doc.theme = BOKEH_THEME
    doc.template = env.get_template("simple.html")
    doc.template_variables.update(extra)


class _Chart:
    """A line that grows, and perhaps one to compare it with."""

    def __init__(self, title: str, x: str, y: str, *, level: str = "", **options: Any) -> None:
        self.data = ColumnDataSource({"x": [], "y": []})
        self.level = ColumnDataSource({"x": [], "y": []})
        self.figure = figure(
            title=title,
            x_axis_label=x,
            y_axis_label=y,
            height=240,
            sizing_mode="stretch_width",
            toolbar_location=None,
            tools="",
            **options,
        )
        self.figure.line("x", "y", source=self.data, line_width=2, color=_FIRST)
        self.figure.scatter("x", "y", source=self.data, size=4, color=_FIRST)
        if level:
            self.figure.line(
                "x",
                "y",
                source=self.level,
                line_dash="dashed",
                line_width=1.5,
                color=_SECOND,
                legend_label=level,
            )
            self.figure.legend.location = "bottom_right"
            self.figure.legend.background_fill_alpha = 0.7
        self.figure.visible = False

    def show(self, points: list[tuple[float, float]], level: float = 0.0) -> None:
        """Show points, and a level if there is one; nothing where there are no two points."""
        self.figure.visible = len(points) > 1
        x, y = [point[0] for point in points], [point[1] for point in points]
        if list(self.data.data["x"]) != x or list(self.data.data["y"]) != y:
            self.data.data = {"x": x, "y": y}
            self.level.data = (
                {"x": [x[0], x[-1]], "y": [level] * 2}
                if level and x
                else {
                    "x": [],
                    "y": [],
                }
            )


class _View:
    """What one browser shows: the job that was picked there, or the latest."""

    def __init__(self, jobs: Jobs, scheduler: Any) -> None:
        self.jobs = jobs
        self.scheduler = scheduler
        style = InlineStyleSheet(css=panels.CSS)
        self.pick = Select(title="Job", value=_LATEST, options=[(_LATEST, "the latest")], width=420)
        self.panel = Div(text="", sizing_mode="stretch_width", stylesheets=[style])
        rate = _Chart("Rows a second", "seconds", "rows/s", level="products alone")
        rate.figure.yaxis.formatter = NumeralTickFormatter(format="0.[0]a")
        rate.figure.y_range.start = 0
        error = _Chart("Error on new rows", "rows read before", "RMSE / sd(y)")
        error.figure.xaxis.formatter = NumeralTickFormatter(format="0.[0]a")
        penalty = _Chart("Penalty", "alpha", "error left out", x_axis_type="log")
        self.rate, self.error, self.penalty = rate, error, penalty
        charts = [chart.figure for chart in (rate, error, penalty)]
        self.root = column(
            self.pick,
            self.panel,
            row(*charts, sizing_mode="stretch_width"),
            sizing_mode="stretch_width",
        )

    def update(self) -> None:
        """Show how things stand."""
        with self.jobs.lock:
            now = self.jobs.clock()
            options = [(_LATEST, "the latest")]
            options += [(job.number, panels.title(job, now)) for job in self.jobs]
            if self.pick.options != options:
                self.pick.options = options
            job = self.jobs.jobs.get(self.pick.value) or self.jobs.latest
            memory = {
                worker.address: worker.metrics.get("memory", 0)
                for worker in self.scheduler.workers.values()
            }
            text = panels.panel(job, now, memory)
            if self.panel.text != text:
                self.panel.text = text
            reading = None if job is None else job.main
            if job is not None and reading is not None:
                self._draw(job, reading)

    def _draw(self, job: Job, reading: Pass) -> None:
        attainable = reading.attainable() / reading.row_flops if reading.row_flops else 0.0
        self.rate.show(reading.rates(), attainable)
        self.error.show([(float(rows), error) for rows, error in reading.validation])
        curve = job.solved and job.solved["alpha_curve"]
        points = [] if not curve else list(zip(curve["alphas"], curve["values"], strict=True))
        flat = [(x, y) for x, y in points if isinstance(y, float)]
        self.penalty.show(flat)
