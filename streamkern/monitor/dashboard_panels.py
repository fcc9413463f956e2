"""HTML of the dashboard's page: tiles of figures, bars of shards and seconds, tables of workers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import jinja2

from streamkern.errors.formatting import printable
from streamkern.monitor import job_text
from streamkern.runtime.memory import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamkern.monitor.jobs import Job
    from streamkern.monitor.passes import Pass

# Okabe and Ito's colours, and grey for what is still to come.
_STATES = {
    "done": "#0072b2",
    "resumed": "#56b4e9",
    "running": "#e69f00",
    "failed": "#d55e00",
    "waiting": "#dddddd",
}
_ACTIVITIES = {
    "products": "#0072b2",
    "features": "#56b4e9",
    "merging": "#009e73",
    "other": "#cc79a7",
    "waiting": "#d55e00",
}
# Seconds beyond which no date is told.
_LONGEST = 1e9
_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("streamkern.monitor"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
CSS = _TEMPLATES.get_template("panel.css").render()

# A name, and the words, per cent and colour of every part.
Bar = tuple[str, list[tuple[str, float, str]]]
# A name, the head, and the cells line by line.
Table = tuple[str, tuple[str, ...], "Sequence[tuple[str, ...]]"]


def title(job: Job) -> str:
    """Return a job in one line of a list, always the same."""
    return f"{printable(job.name)}, begun {job.when:%H:%M:%S}"


def panel(job: Job | None, now: float, memory: Mapping[str, float]) -> str:
    """Return the page of one job but its charts; `memory` is what workers take now, by address."""
    if job is None:
        return "<h2>No job yet</h2><p>The figures of a fit or a prediction will be here.</p>"
    reading = job.main
    return _TEMPLATES.get_template("panel.html").render(
        name=printable(job.name),
        phase=f"{job.phase}, {job_text.duration(job.elapsed(now))}",
        error=job.error,
        tiles=[] if reading is None else _tiles(job, reading, now),
        bars=[] if reading is None else _bars(reading),
        tables=[] if reading is None else [_workers(reading, now, memory), _passes(job, now)],
    )


def _tiles(job: Job, reading: Pass, now: float) -> list[tuple[str, str]]:
    """Return figures, each with its words."""
    rows = reading.rows_per_second(now)
    n_bytes = reading.row_bytes
    read, every = in_words(reading.rows_done * n_bytes), in_words(reading.n_rows * n_bytes)
    tiles = [
        (f"{reading.share:.0%}", job_text.rows_of(reading)),
        (read, f"of {every} of inputs"),
        _time(reading, now),
        (job_text.rounded(rows), "rows/s"),
        (f"{in_words(rows * n_bytes)}/s", "of inputs"),
    ]
    attainable = reading.attainable()
    if reading.row_flops and attainable:
        speed, best = reading.speed(now), job_text.rounded(attainable / 1e9)
        words = f"GFLOP/s, {speed / attainable:.0%} of {best} for products alone"
        tiles.append((job_text.rounded(speed / 1e9), words))
    planned = f"of {in_words(job.worker_bytes)} planned" if job.worker_bytes else "no plan"
    tiles.append((in_words(reading.peak_bytes()), f"largest worker, {planned}"))
    if reading.validation:
        rows_before, error = reading.validation[-1]
        words = f"error on new rows {job_text.features_of(reading)} after {rows_before:,} rows"
        tiles.append((f"{error:.5g}", words))
    if job.solved is not None:
        alpha, error = job.solved["alpha"], job.solved["cv_rmse"]
        words = f"alpha, cross-validated RMSE {error:.5g}" if isinstance(error, float) else "alpha"
        tiles.append((f"{alpha:.3g}" if isinstance(alpha, float) else "several", words))
    return tiles


def _time(reading: Pass, now: float) -> tuple[str, str]:
    if reading.ended is not None:
        return job_text.duration(reading.elapsed(now)), f"for pass “{reading.label}”"
    left, until = reading.seconds_left(now), ""
    if left is not None and left < _LONGEST:
        until = f", until {datetime.now() + timedelta(seconds=left):%H:%M:%S}"
    return job_text.duration(left), f"left of pass “{reading.label}”{until}"


def _bars(reading: Pass) -> list[Bar]:
    retried = f", {reading.retried:,} of them begun again" if reading.retried else ""
    beside = " and ".join(
        f"{job_text.rounded(reading.seconds[name])} s of {name}"
        for name in ("reading", "decoding")
        if reading.seconds[name]
    )
    name = f"seconds of threads that compute{f'; beside them {beside}' * bool(beside)}"
    return [
        _bar(f"{reading.n_shards:,} shards{retried}", reading.shards(), _STATES),
        _bar(name, reading.seconds, _ACTIVITIES, unit=" s"),
    ]


def _bar(
    name: str, amounts: Mapping[str, float], colours: Mapping[str, str], *, unit: str = ""
) -> Bar:
    shown = {part: amounts[part] for part in colours if amounts[part]}
    total = sum(shown.values())
    return name, [
        (f"{part} {job_text.rounded(amount)}{unit}", 100 * amount / total, colours[part])
        for part, amount in shown.items()
    ]


def _workers(reading: Pass, now: float, memory: Mapping[str, float]) -> Table:
    head = ("worker", "rows", "rows/s", "read", "GFLOP/s", "of products alone", "memory", "at most")
    lines, taken = [], memory if reading.ended is None else {}
    for address, worker in sorted(reading.workers.items()):
        rows = reading.worker_rows_per_second(worker, now)
        speed = rows * reading.row_flops
        lines.append(
            (
                address.removeprefix("tcp://").removeprefix("tls://") or "this process",
                *(
                    f"{worker.rows:,}",
                    job_text.rounded(rows),
                    f"{in_words(rows * reading.row_bytes)}/s",
                ),
                job_text.rounded(speed / 1e9) if speed else "",
                f"{speed / worker.attainable:.0%}" if speed and worker.attainable else "",
                in_words(taken[address]) if address in taken else "",
                in_words(worker.peak_bytes) if worker.peak_bytes else "",
            )
        )
    return "workers", head, lines


def _passes(job: Job, now: float) -> Table:
    head = ("pass", "rows", "time", "rows/s", "shards", "retried", "resumed")
    lines = [
        (
            *(each.label, f"{each.rows_done:,}", job_text.duration(each.elapsed(now))),
            *(job_text.rounded(each.rows_per_second(now)), f"{each.n_shards:,}"),
            *(f"{each.retried:,}", f"{each.shards_resumed:,}"),
        )
        for each in job.passes.values()
    ]
    return "passes", head, lines
