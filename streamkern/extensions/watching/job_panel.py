"""The panel of a job on the dashboard, as HTML: tiles of figures, bars, and tables.

Its tables are not Bokeh's DataTable, which has a fixed height and would need a source, columns and
formats of its own.
"""

import heapq
from collections.abc import Mapping
from datetime import timedelta
from operator import itemgetter

import jinja2

from streamkern.errors.formatting import printable
from streamkern.monitor import job_text
from streamkern.monitor.jobs import Job
from streamkern.monitor.passes import Pass, Worker
from streamkern.runtime.memory import in_words

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
# Of more workers than this the slowest are shown.
_MANY_WORKERS, _SLOWEST = 32, 12
# Seconds beyond which no date is told.
_LONGEST = 1e9
TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("streamkern.extensions.watching"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {"in_words": in_words, "printable": printable}
TEMPLATES.filters |= {"rounded": job_text.rounded, "duration": job_text.duration}
CSS = TEMPLATES.get_template("panel.css").render()

# A name, and the words, per cent and colour of every part.
Bar = tuple[str, list[tuple[str, float, str]]]


def title(job: Job) -> str:
    """Return a job in one line of a list, always the same."""
    return f"{printable(job.name)}, begun {job.when:%H:%M:%S}"


def panel(job: Job | None, now: float, memory: Mapping[str, float]) -> str:
    """Return the page of one job but its charts; `memory` is what workers take now, by address."""
    if job is None:
        return "<h2>No job yet</h2><p>The figures of a fit or a prediction will be here.</p>"
    reading = job.main
    of_workers, workers = ("", []) if reading is None else _workers(reading, now)
    return TEMPLATES.get_template("panel.html").render(
        job=job,
        reading=reading,
        now=now,
        memory=memory,
        tiles=[] if reading is None else _tiles(job, reading, now),
        bars=[] if reading is None else _bars(reading),
        of_workers=of_workers,
        workers=workers,
    )


def _tiles(job: Job, reading: Pass, now: float) -> list[tuple[str, str]]:
    read, every = (in_words(n * reading.row_bytes) for n in (reading.rows_done, reading.n_rows))
    planned = f"of {in_words(job.worker_bytes)} planned" if job.worker_bytes else "no plan"
    tiles = [
        (f"{reading.share:.0%}", f"{job_text.rows_of(reading)}, {read} of {every}"),
        _time(job, reading, now),
        *job_text.rates(reading, now),
        (in_words(job.peak_bytes()), f"largest worker, {planned}"),
    ]
    if reading.validation:
        rows_before, error = reading.validation[-1]
        model = f"a model of {job_text.features_of(reading)}"
        words = f"error of {model} so far, after {rows_before:,} rows"
        tiles.append((f"{error:.5g}", words))
    if job.solved is not None:
        alpha, error = job.solved["alpha"], job.solved["cv_rmse"]
        words = f"alpha, cross-validated RMSE {error:.5g}" if isinstance(error, float) else "alpha"
        tiles.append((f"{alpha:.3g}" if isinstance(alpha, float) else "several", words))
    return tiles


def _time(job: Job, reading: Pass, now: float) -> tuple[str, str]:
    whole, left, until = job.seconds_left(now), reading.seconds_left(now), ""
    if reading.ended is not None and whole is None:
        return job_text.duration(reading.elapsed(now)), f"for pass “{reading.label}”"
    far = left if whole is None else whole
    if far is not None and far < _LONGEST:
        until = f", until {job.when + timedelta(seconds=now - job.begun + far):%H:%M:%S}"
    if whole is None:
        return job_text.duration(left), f"left of pass “{reading.label}”{until}"
    parts = [f"pass “{reading.label}” {job_text.duration(left)}"] * (reading.ended is None)
    if solving := job.solve_seconds():
        parts.append(f"solving {job_text.duration(min(solving, whole))}")
    return job_text.duration(whole), f"left in all{until}: {', '.join(parts)}"


def _bars(reading: Pass) -> list[Bar]:
    retried = f", {reading.retried:,} of them begun again" if reading.retried else ""
    read = [(name, reading.seconds[name]) for name in ("reading", "decoding")]
    beside = " and ".join(f"{job_text.rounded(each)} s of {name}" for name, each in read if each)
    name = "seconds of threads that compute" + (f"; beside them {beside}" if beside else "")
    return [
        _bar(f"{reading.n_shards:,} shards{retried}", reading.shards(), _STATES, ""),
        _bar(name, reading.seconds, _ACTIVITIES, " s"),
    ]


def _workers(reading: Pass, now: float) -> tuple[str, list[tuple[str, Worker, float]]]:
    """Return a name, and workers with their rows a second: of many the slowest."""
    until = now if reading.ended is None else reading.ended
    found = [
        (address, each, each.rows / max(until - each.since, 1e-9))
        for address, each in sorted(reading.workers.items())
        if not each.is_lost
    ]
    if len(found) <= _MANY_WORKERS:
        return "workers", found
    rates = sorted(rate for *_, rate in found)
    name = (
        f"the {_SLOWEST} slowest of {len(found):,} workers; half of them do "
        f"{job_text.rounded(rates[len(rates) // 2])} rows/s or more"
    )
    return name, heapq.nsmallest(_SLOWEST, found, key=itemgetter(2))


def _bar(name: str, amounts: Mapping[str, float], colours: dict[str, str], unit: str) -> Bar:
    shown = {part: amounts[part] for part in colours if amounts[part]}
    total = sum(shown.values())
    return name, [
        (f"{part} {job_text.rounded(amount)}{unit}", 100 * amount / total, colours[part])
        for part, amount in shown.items()
    ]
