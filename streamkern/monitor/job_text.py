"""Figures of a job in words, for the terminal, logs and the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkern.runtime.memory import in_words

if TYPE_CHECKING:
    from streamkern.monitor.jobs import Job
    from streamkern.monitor.passes import Pass
    from streamkern.runtime.events import Event


def duration(seconds: float | None) -> str:
    """Return a time as 4.2 s, 1:05 or 2:03:07."""
    if seconds is None:
        return "?"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, whole = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{whole:02}" if hours else f"{minutes}:{whole:02}"


def rounded(value: float) -> str:
    """Return a number with three digits and thousands separated."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def share(reading: Pass) -> float:
    """Return the part of the rows that is done."""
    return reading.rows_done / reading.n_rows if reading.n_rows else 1.0


def rows_of(reading: Pass) -> str:
    """Return how many rows are done, of how many."""
    done = "" if reading.rows_done == reading.n_rows else f"{reading.rows_done:,} of "
    return f"{done}{reading.n_rows:,} rows"


def rates_of(reading: Pass, now: float) -> str:
    """Return rows, bytes and operations a second, and their share of what can be attained."""
    if not reading.rows_read:
        return ""
    rows = reading.rows_per_second(now)
    words = [f"{rounded(rows)} rows/s"]
    if reading.row_bytes:
        words.append(f"{rounded(rows * reading.row_bytes / 1e6)} MB/s")
    attainable = reading.attainable()
    if reading.row_flops and attainable:
        speed = reading.speed(now)
        words.append(f"{rounded(speed / 1e9)} GFLOP/s, {speed / attainable:.0%} of products alone")
    return " · ".join(words)


def memory_of(job: Job, reading: Pass) -> str:
    """Return the largest process, and what was planned for one."""
    peak = reading.peak_bytes()
    planned = f" of {in_words(job.worker_bytes)} planned" if job.worker_bytes else ""
    return f"{in_words(peak)}{planned}" if peak else ""


def shards_of(reading: Pass) -> str:
    """Return the shards by state, those states that there are."""
    states = reading.shards()
    names = ("done", "running", "resumed", "retried", "failed")
    counts = ", ".join(f"{states[name]:,} {name}" for name in names if states[name])
    return f"shards: {counts}" if counts else ""


def times_of(reading: Pass) -> str:
    """Return what the seconds went to, in per cent of those that threads computed."""
    busy = sum(worker.busy for worker in reading.workers.values()) + reading.seconds["merging"]
    names = ("waiting", "features", "products", "merging")
    return ", ".join(
        f"{name} {reading.seconds[name] / busy:.0%}"
        for name in names
        if busy and reading.seconds[name] >= 0.005 * busy
    )


def features_of(reading: Pass) -> str:
    """Return how many features the errors on rows to come are with."""
    few = reading.leading < reading.n_components
    of = f"{reading.leading:,} of {reading.n_components:,}" if few else f"all {reading.leading:,}"
    return f"with {of} features"


def validation_of(reading: Pass) -> str:
    """Return the latest error on rows to come."""
    if not reading.validation:
        return ""
    rows, error = reading.validation[-1]
    return f"error on new rows {error:.5g} {features_of(reading)} after {rows:,} rows"


def solution_of(solved: Event) -> str:
    """Return what was found, and how long it took."""
    alpha, error = solved["alpha"], solved["cv_rmse"]
    words = [f"solved in {duration(solved['seconds']['solve'])}"]
    if isinstance(alpha, float):
        words.append(f"alpha {alpha:.4g}")
    if isinstance(error, float):
        words.append(f"cross-validated RMSE {error:.5g}")
    return ", ".join(words)
