"""Figures of a job in words, for every view."""

from streamkern.monitor.jobs import SHORT, Job
from streamkern.monitor.passes import Pass
from streamkern.runtime.events import Event
from streamkern.runtime.memory import in_words

# Hours that are told as days.
_DAYS = 48


def duration(seconds: float | None) -> str:
    """Return a time as 4.2 s, 1:05, 2:03:07 or 31 days 4:05:10."""
    if seconds is None:
        return "?"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, whole = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24) if hours >= _DAYS else (0, hours)
    clock = f"{hours}:{minutes:02}:{whole:02}" if hours or days else f"{minutes}:{whole:02}"
    return f"{days} days {clock}" if days else clock


def rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rows_of(reading: Pass) -> str:
    done = "" if reading.rows_done == reading.n_rows else f"{reading.rows_done:,} of "
    return f"{done}{reading.n_rows:,} rows"


def rates(reading: Pass, now: float) -> list[tuple[str, str]]:
    """Return how fast a pass is: figures with their units, none before rows are read."""
    if not reading.rows_read:
        return []
    rows, speed = reading.rows_per_second(now), reading.speed(now)
    attainable = reading.attainable()
    megabytes = rounded(rows * reading.row_bytes / 1e6)
    found = [(rounded(rows), "rows/s" + f", {megabytes} MB/s" * bool(reading.row_bytes))]
    if speed and attainable:
        found.append((rounded(speed / 1e9), f"GFLOP/s, {speed / attainable:.0%} of products alone"))
    return found


def details(job: Job, reading: Pass, now: float) -> dict[str, str]:
    """Return what is known of a pass, in words by topic; those of which nothing is are empty."""
    busy = sum(worker.busy for worker in reading.workers.values()) + reading.seconds["merging"]
    times = (
        f"{name} {reading.seconds[name] / busy:.0%}"
        for name in ("waiting", "features", "products", "merging")
        if busy and reading.seconds[name] >= 0.005 * busy
    )
    states, peak = reading.shards(), reading.peak_bytes()
    names = ("done", "running", "resumed", "retried" * (not reading.n_lost), "failed")
    counts = ", ".join(f"{states[name]:,} {name}" for name in names if states.get(name))
    if reading.n_lost:
        some = reading.n_lost > 1
        lost = f"{reading.n_lost} workers were" if some else "a worker was"
        counts += f"; {lost} lost; {'their' if some else 'its'} shards are read again"
    planned = f" of {in_words(job.worker_bytes)} planned" if job.worker_bytes else ""
    validation = ""
    if reading.validation:
        n_rows, error = reading.validation[-1]
        model = f"a model of {features_of(reading)}"
        validation = f"error of {model} so far {error:.5g}, after {n_rows:,} rows"
    return {
        "whole": whole_job(job, now),
        "rows": rows_of(reading),
        "rates": " · ".join(map(" ".join, rates(reading, now))),
        "times": ", ".join(times),
        "shards": f"shards: {counts}" if counts else "",
        "validation": validation,
        "memory": f"{in_words(peak)}{planned}" if peak else "",
    }


def whole_job(job: Job, now: float) -> str:
    """Return what is left of a job with the solution, as far as it is planned."""
    left, solving = job.seconds_left(now), job.solve_seconds()
    if left is None:
        return ""
    solved = f", {duration(min(solving, left))} of it to solve" if solving else ""
    return f"about {duration(left)} left in all{solved}"


def bars(job: Job, now: float) -> list[tuple[Pass, str]]:
    """Return the passes that are worth a bar, and what stands beside it."""
    found = []
    for reading in job.passes.values():
        if reading.ended is None:
            when = f"{duration(reading.seconds_left(now))} left"
        elif reading is job.main or reading.elapsed(now) >= SHORT:
            when = f"in {duration(reading.elapsed(now))}"
        else:
            continue
        found.append((reading, f"{reading.share:4.0%}  {rows_of(reading)}  {when}"))
    return found


def lines(job: Job, now: float) -> list[str]:
    """Return what stands below the bars: speed, memory, errors, and what was found."""
    reading = next((reading for reading, _ in reversed(bars(job, now))), None)
    if reading is None:
        return []
    known = details(job, reading, now)
    n_workers = sum(not each.is_lost for name, each in reading.workers.items() if name)
    workers = f"{n_workers} worker{'s' * (n_workers > 1)} · " if n_workers else ""
    found = [
        workers + known["rates"],
        " · ".join(filter(None, (known["times"], known["memory"]))),
        " · ".join(filter(None, (known["shards"], known["validation"]))),
        solution_of(job.solved) if job.solved else "",
    ]
    return list(filter(None, found))


def features_of(reading: Pass) -> str:
    """Return which features the model has that the errors so far are of."""
    leading, every = reading.leading, reading.n_components
    return f"the {leading:,} leading features" if leading < every else f"all {every:,} features"


def solution_of(solved: Event) -> str:
    alpha, error = solved["alpha"], solved["cv_rmse"]
    words = [f"solved in {duration(solved['seconds']['solve'])}"]
    if isinstance(alpha, float):
        words.append(f"alpha {alpha:.4g}")
    if isinstance(error, float):
        words.append(f"cross-validated RMSE {error:.5g}")
    return ", ".join(words)


def trial_of(job: Job, tried: Event, now: float) -> list[str]:
    """Return the setting of a trial, its error and the best so far, and the seconds left."""
    words = [f"{tried['setting']}: error {tried['error']:.4f}, best {job.best or 0.0:.4f}"]
    if job.budget:
        words.append(f"{duration(max(job.budget - job.elapsed(now), 0.0))} left")
    return words
