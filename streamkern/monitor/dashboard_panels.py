"""Pieces of the dashboard's page as HTML: figures in tiles, shards and seconds in bars, workers."""

from __future__ import annotations

from datetime import datetime, timedelta
from html import escape
from typing import TYPE_CHECKING

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


def title(job: Job) -> str:
    """Return a job in one line of a list, always the same."""
    return f"{printable(job.name)}, begun {job.when:%H:%M:%S}"


def panel(job: Job | None, now: float, memory: Mapping[str, float]) -> str:
    """Return the page of one job but its charts.

    Parameters
    ----------
    job : Job, optional
    now : float
    memory : mapping of str to float
        Bytes that each worker takes now, by address.
    """
    if job is None:
        return "<h2>No job yet</h2><p>The figures of a fit or a prediction will be here.</p>"
    reading = job.main
    phase = f"{escape(job.phase)}, {job_text.duration(job.elapsed(now))}"
    parts = [f"<h2>{escape(printable(job.name))} <span class=phase>{phase}</span></h2>"]
    if job.error is not None:
        parts.append(f"<p class=error>{escape(job.error)}</p>")
    if reading is not None:
        parts += [
            _tiles(job, reading, now),
            _shards(reading),
            _seconds(reading),
            f"<div class=tables>{_workers(reading, now, memory)}{_passes(job, now)}</div>",
        ]
    return "".join(parts)


def _tiles(job: Job, reading: Pass, now: float) -> str:
    rows = reading.rows_per_second(now)
    n_bytes = reading.row_bytes
    tiles = [
        (f"{job_text.share(reading):.0%}", job_text.rows_of(reading)),
        (
            in_words(reading.rows_done * n_bytes),
            f"of {in_words(reading.n_rows * n_bytes)} of inputs",
        ),
        _time(reading, now),
        (job_text.rounded(rows), "rows/s"),
        (f"{in_words(rows * n_bytes)}/s", "of inputs"),
    ]
    attainable = reading.attainable()
    if reading.row_flops and attainable:
        speed = reading.speed(now)
        best = job_text.rounded(attainable / 1e9)
        said = f"GFLOP/s, {speed / attainable:.0%} of {best} for products alone"
        tiles.append((job_text.rounded(speed / 1e9), said))
    planned = f"of {in_words(job.worker_bytes)} planned" if job.worker_bytes else "no plan"
    tiles.append((in_words(reading.peak_bytes()), f"largest worker, {planned}"))
    if reading.validation:
        seen, error = reading.validation[-1]
        said = f"error on new rows {job_text.features_of(reading)} after {seen:,} rows"
        tiles.append((f"{error:.5g}", said))
    if job.solved is not None:
        tiles.append(_solution(job.solved))
    shown = [f"<div class=tile><b>{escape(b)}</b><span>{escape(s)}</span></div>" for b, s in tiles]
    return f"<div class=tiles>{''.join(shown)}</div>"


def _solution(solved: Mapping[str, object]) -> tuple[str, str]:
    alpha, error = solved["alpha"], solved["cv_rmse"]
    said = f", error left out {error:.5g}" if isinstance(error, float) else ""
    return (f"{alpha:.3g}" if isinstance(alpha, float) else "several"), f"alpha{said}"


def _time(reading: Pass, now: float) -> tuple[str, str]:
    if reading.ended is not None:
        return job_text.duration(reading.elapsed(now)), f"for pass “{reading.label}”"
    left = reading.seconds_left(now)
    until = ""
    if left is not None and left < _LONGEST:
        until = f", until {datetime.now() + timedelta(seconds=left):%H:%M:%S}"
    return job_text.duration(left), f"left of pass “{reading.label}”{until}"


def _shards(reading: Pass) -> str:
    retried = f", {reading.retried:,} of them begun again" if reading.retried else ""
    return _split(f"{reading.n_shards:,} shards{retried}", reading.shards(), _STATES)


def _seconds(reading: Pass) -> str:
    beside = " and ".join(
        f"{job_text.rounded(reading.seconds[name])} s of {name}"
        for name in ("reading", "decoding")
        if reading.seconds[name]
    )
    return _split(
        f"seconds of threads that compute{f'; beside them {beside}' * bool(beside)}",
        {name: reading.seconds[name] for name in _ACTIVITIES},
        _ACTIVITIES,
        unit=" s",
    )


def _split(
    name: str, parts: Mapping[str, float], colours: Mapping[str, str], *, unit: str = ""
) -> str:
    total = sum(parts.values())
    if not total:
        return ""
    bar = _bar([(parts[part] / total, colour) for part, colour in colours.items()])
    keys = "".join(
        f"<i style='background:{colour}'></i>{part} {job_text.rounded(parts[part])}{unit}"
        for part, colour in colours.items()
        if parts[part]
    )
    return f"{_name(name)}{bar}<p class=key>{keys}</p>"


def _bar(parts: Sequence[tuple[float, str]]) -> str:
    return "<div class=bar>{}</div>".format(
        "".join(
            f"<div style='width:{100 * share:.2f}%;background:{colour}'></div>"
            for share, colour in parts
        )
    )


def _name(text: str) -> str:
    return f"<p class=name>{escape(text)}</p>"


def _workers(reading: Pass, now: float, memory: Mapping[str, float]) -> str:
    head = ("worker", "rows", "rows/s", "read", "GFLOP/s", "of products alone", "memory", "at most")
    lines, now_taken = [], memory if reading.ended is None else {}
    for address, worker in sorted(reading.workers.items()):
        rows = reading.worker_rows_per_second(worker, now)
        speed = rows * reading.row_flops
        lines.append(
            (
                address.removeprefix("tcp://").removeprefix("tls://") or "this process",
                f"{worker.rows:,}",
                job_text.rounded(rows),
                f"{in_words(rows * reading.row_bytes)}/s",
                job_text.rounded(speed / 1e9) if speed else "",
                f"{speed / worker.attainable:.0%}" if speed and worker.attainable else "",
                in_words(now_taken[address]) if address in now_taken else "",
                in_words(worker.peak_bytes) if worker.peak_bytes else "",
            )
        )
    return _table("workers", head, lines)


def _passes(job: Job, now: float) -> str:
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
    return _table("passes", head, lines)


def _table(name: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return ""
    top = "".join(f"<th scope=col>{escape(each)}</th>" for each in head)
    rows = "".join(
        "<tr>{}</tr>".format("".join(f"<td>{escape(cell)}</td>" for cell in line)) for line in lines
    )
    return (
        f"<div>{_name(name)}<table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
