"""How much memory and how many cores this process may use."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

import psutil

from streamkern.errors import InsufficientMemoryError

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def total_bytes() -> int:
    """Return the memory of the machine, or of the control group where that is less."""
    limit = int(psutil.virtual_memory().total)
    for path in _CGROUP_LIMITS:
        try:
            limit = min(limit, int(path.read_text()))
        except (OSError, ValueError):
            continue
    return limit


def available_bytes() -> int:
    """Return the memory that a job can take now without swapping."""
    return min(total_bytes(), int(psutil.virtual_memory().available))


def peak_bytes() -> int:
    """Return the largest resident size this process has had, 0 where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def reset_peak() -> None:
    """Let `peak_bytes` begin again from what is resident now, where the system can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def usable_cores() -> int:
    """Return the cores this process may run on, counting the quota of its control group."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(min(cores, math.ceil(int(quota) / int(period))), 1)
    except (OSError, ValueError):
        return cores


def in_words(n_bytes: float) -> str:
    """Return a number of bytes as people write it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(n_bytes) < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def check_free(n_bytes: int, what: str) -> None:
    """Raise InsufficientMemoryError unless this process can take so much more memory.

    Parameters
    ----------
    n_bytes : int
    what : str
        What needs it, as the beginning of a sentence.
    """
    free = available_bytes()
    if n_bytes > free:
        raise InsufficientMemoryError(
            f"{what} needs {in_words(n_bytes)} in this process, but {in_words(free)} is free; take "
            f"a machine with more memory, or fewer components."
        )
