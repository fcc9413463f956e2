"""How much memory this process may use."""

from __future__ import annotations

from pathlib import Path

import psutil

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


def in_words(n_bytes: float) -> str:
    """Return a number of bytes as people write it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(n_bytes) < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"
