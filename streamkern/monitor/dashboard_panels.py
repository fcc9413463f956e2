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
CSS = """
:host { font: 14px/1.45 Helvetica, Arial, sans-serif; color: #222; }
h2 { font-size: 20px; margin: 4px 0 2px; overflow-wrap: anywhere; }
.phase { color: #555; font-weight: normal; }
.tiles { display: flex; flex-wrap: wrap; gap: 8px; margin: 10px 0; }
.tile { background: #fff; border: 1px solid #ddd; border-radius: 6px; padding: 8px 12px;
  min-width: 130px; flex: 1; }
.tile b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; font-weight: 600; }
.tile span { color: #555; font-size: 12px; }
.name { color: #555; font-size: 12px; margin: 10px 0 3px; }
.bar { display: flex; height: 16px; border-radius: 4px; overflow: hidden; background: #ddd; }
.key { font-size: 12px; margin: 3px 0 0; color: #333; }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px;
  margin: 0 4px 0 10px; }
.key i:first-child { margin-left: 0; }
.tables { display: flex; flex-wrap: wrap; gap: 0 40px; }
table { border-collapse: collapse; margin-top: 4px; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 2px 14px 2px 0; border-bottom: 1px solid #e5e5e5; }
th { font-weight: normal; color: #555; font-size: 12px; }
th:first-child, td:first-child { text-align: left; }
.error { color: #a33c00; font-weight: 600; }
"""
_PANEL = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string("""
<h2>{{ name }} <span class=phase>{{ phase }}</span></h2>
{% if error is not none %}<p class=error>{{ error }}</p>{% endif %}
<div class=tiles>
{% for figure, words in tiles %}
<div class=tile><b>{{ figure }}</b><span>{{ words }}</span></div>
{% endfor %}
</div>
{% for name, parts in bars if parts %}
<p class=name>{{ name }}</p>
<div class=bar>
{% for _, percent, colour in parts %}
<div style="width:{{ '%.2f' % percent }}%;background:{{ colour }}"></div>
{% endfor %}
</div>
<p class=key>
{%- for text, _, colour in parts %}<i style="background:{{ colour }}"></i>{{ text }}{% endfor %}
</p>
{% endfor %}
<div class=tables>
{% for name, head, lines in tables if lines %}
<div><p class=name>{{ name }}</p><table>
<thead><tr>{% for cell in head %}<th scope=col>{{ cell }}</th>{% endfor %}</tr></thead>
<tbody>
{% for line in lines %}<tr>{% for cell in line %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}
</tbody></table></div>
{% endfor %}
</div>
""")

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
    return _PANEL.render(
        name=printable(job.name),
        phase=f"{job.phase}, {job_text.duration(job.elapsed(now))}",
        error=job.error,
        tiles=[] if reading is None else _tiles(job, reading, now),
        bars=[] if reading is None else [_shards(reading), _seconds(reading)],
        tables=[] if reading is None else [_workers(reading, now, memory), _passes(job, now)],
    )


def _tiles(job: Job, reading: Pass, now: float) -> list[tuple[str, str]]:
    """Return figures, each with its words."""
    rows = reading.rows_per_second(now)
    n_bytes = reading.row_bytes
    read, every = in_words(reading.rows_done * n_bytes), in_words(reading.n_rows * n_bytes)
    tiles = [
        (f"{job_text.share(reading):.0%}", job_text.rows_of(reading)),
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


def _shards(reading: Pass) -> Bar:
    retried = f", {reading.retried:,} of them begun again" if reading.retried else ""
    return _bar(f"{reading.n_shards:,} shards{retried}", reading.shards(), _STATES)


def _seconds(reading: Pass) -> Bar:
    beside = " and ".join(
        f"{job_text.rounded(reading.seconds[name])} s of {name}"
        for name in ("reading", "decoding")
        if reading.seconds[name]
    )
    name = f"seconds of threads that compute{f'; beside them {beside}' * bool(beside)}"
    return _bar(name, reading.seconds, _ACTIVITIES, unit=" s")


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
        line = (
            address.removeprefix("tcp://").removeprefix("tls://") or "this process",
            f"{worker.rows:,}",
            job_text.rounded(rows),
            f"{in_words(rows * reading.row_bytes)}/s",
            job_text.rounded(speed / 1e9) if speed else "",
            f"{speed / worker.attainable:.0%}" if speed and worker.attainable else "",
            in_words(taken[address]) if address in taken else "",
            in_words(worker.peak_bytes) if worker.peak_bytes else "",
        )
        lines.append(line)
    return "workers", head, lines


def _passes(job: Job, now: float) -> Table:
    head = ("pass", "rows", "time", "rows/s", "shards", "retried", "resumed")
    lines = [
        (
            reading.label,
            f"{reading.rows_done:,}",
            job_text.duration(reading.elapsed(now)),
            job_text.rounded(reading.rows_per_second(now)),
            f"{reading.n_shards:,}",
            f"{reading.retried:,}",
            f"{reading.shards_resumed:,}",
        )
        for reading in job.passes.values()
    ]
    return "passes", head, lines
