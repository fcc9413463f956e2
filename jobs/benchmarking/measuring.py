"""Runs in processes of their own, the memory of all of these together, and medians of repeats."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarking.contenders import CONTENDERS
from streamkern.runtime.memory import available_bytes, in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarking.cases import Case

PROGRAM = Path(__file__).parents[1] / "benchmark.py"
# More often would cost the contenders time.
_SECONDS_BETWEEN_LOOKS = 0.25


def measure(name: str, case: Case, path: Path) -> dict[str, Any]:
    """Run one contender in a process of its own, and watch the memory of all its processes.

    Returns
    -------
    dict
        What the contender tells, `peak_bytes`, and `load_of_others`, the cores that were busy with
        anything else meanwhile; or only why it was `refused` or has `failed`.
    """
    needed = CONTENDERS[name].needed_bytes
    free = available_bytes()
    if needed is not None and needed(case) > free:
        return {"refused": f"needs {in_words(needed(case))}, {in_words(free)} is free"}
    command = [sys.executable, str(PROGRAM), "--only", name, "--path", str(path)]
    process = subprocess.Popen(
        [*command, "--case", json.dumps(case.as_dict())], stdout=subprocess.PIPE, text=True
    )
    peak, begun, busy, own = 0, time.perf_counter(), _busy_seconds(), _own_seconds()

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, _resident_bytes(process.pid))
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    watcher = threading.Thread(target=watch)
    watcher.start()
    output, _ = process.communicate()
    watcher.join()
    if process.returncode:
        return {"failed": f"exit status {process.returncode}"}
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    if "refused" in found:
        return found
    others = _busy_seconds() - busy - (_own_seconds() - own)
    load = max(others, 0.0) / (time.perf_counter() - begun)
    return {**found, "peak_bytes": peak, "load_of_others": load}


def _busy_seconds() -> float:
    """Return what all processes of the machine have computed so far."""
    times = psutil.cpu_times()
    return float(times.user + times.system)


def _own_seconds() -> float:
    """Return what this process and the processes it has waited for have computed so far."""
    return sum(os.times()[:4])


def _resident_bytes(pid: int) -> int:
    """Return the bytes of a process and its children together, what they share counted once."""
    total = 0
    try:
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            try:
                held = process.memory_full_info()
                total += getattr(held, "pss", held.rss)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
    except psutil.NoSuchProcess:
        pass
    return total


def summary(case: Case, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return medians and spreads of every contender at a case, and ratios of the medians.

    Parameters
    ----------
    case : Case
    runs : mapping of str to sequence of dict
        What `measure` returned of every contender.
    """
    found = {name: _summary_of(case, done) for name, done in runs.items()}
    for name, contender in found.items():
        base = found.get(CONTENDERS[name].roofline, {}).get("seconds", {}).get("median")
        for entry in (contender, *contender.get("parts", {}).values()):
            if base and "seconds" in entry:
                entry["ratio"] = entry["seconds"]["median"] / base
    return found


def _summary_of(case: Case, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    done = [run for run in runs if "seconds" in run]
    found: dict[str, Any] = {"runs": list(runs)}
    for reason in ("refused", "failed"):
        said = [run[reason] for run in runs if reason in run]
        if said:
            found[reason] = said[-1]
    if not done:
        return found
    found["seconds"] = spread([run["seconds"] for run in done])
    found["microseconds_a_row"] = 1e6 * found["seconds"]["median"] / case.rows
    found["peak_bytes"] = statistics.median(run["peak_bytes"] for run in done)
    errors = [run["test_rmse"] for run in done if "test_rmse" in run]
    if errors:
        found["test_rmse"] = statistics.median(errors)
    if "parts" in done[0]:
        found["parts"] = {
            name: {"seconds": spread([run["parts"][name] for run in done])}
            for name in done[0]["parts"]
        }
    return found


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median, the quartiles and the ends."""
    lower, middle, upper = (
        statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    )
    return {
        "median": middle,
        "lower_quartile": lower,
        "upper_quartile": upper,
        "min": min(values),
        "max": max(values),
    }
