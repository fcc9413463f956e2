"""Memory and cores that this process may use: cgroups(7), proc(5) and getrlimit(2) of Linux."""

import math
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from streamkern.errors import InsufficientMemoryError

_SELF = Path("/proc/self")
_UNLIMITED = 1 << 62
# A client with its scheduler, before it receives anything.
_CLIENT_BYTES = 256 << 20
# Addresses that a thread takes beside what it holds: its stack, its part of the heap, and a buffer
# of each OpenBLAS, NumPy's and SciPy's, which ends the process where it gets none.
_THREAD_BYTES = (8 + 64 + 2 * 32) << 20
# Addresses of what a command imports, and of a thread of each OpenBLAS.
_LIBRARY_BYTES, _BLAS_THREAD_BYTES = 200 << 20, 2 * (8 + 32) << 20
# As NumPy and SciPy build it.
_MOST_BLAS_THREADS = 64


def total_bytes() -> int:
    """Return the memory of the machine, or of a control group of this process if that is less."""
    return min([int(_machine_memory().total), *(limit for limit, _ in _group_memory())])


def available_bytes(n_processes: int = 1) -> int:
    """Return the memory that each of so many processes can take now without swapping."""
    free = int(_machine_memory().available)
    free = min([free, *(limit - taken for limit, taken in _group_memory())])
    return max(min(free // n_processes, _addresses_left()), 0)


def worker_bytes(n_workers: int) -> int:
    """Return the memory that each of so many workers on this machine may have beside a client."""
    return min(max(total_bytes() - _CLIENT_BYTES, 0) // n_workers, max(_addresses_left(), 0))


def thread_bytes() -> int:
    """Return the addresses that a thread takes beside what it holds, 0 where none are limited."""
    return 0 if _addresses_left() == _UNLIMITED else _THREAD_BYTES


def check_addresses() -> None:
    """Raise InsufficientMemoryError where libraries would crash as they are loaded."""
    given = (os.environ.get(f"{name}_NUM_THREADS", "") for name in ("OPENBLAS", "OMP"))
    threads = next((int(text) for text in given if text.isdecimal()), _MOST_BLAS_THREADS)
    threads = min(threads, _cores(), _MOST_BLAS_THREADS)  # as OpenBLAS has it
    needed, left = _LIBRARY_BYTES + threads * _BLAS_THREAD_BYTES, _addresses_left()
    if left < needed:
        raise InsufficientMemoryError(
            f"the libraries need {in_words(needed)} of virtual memory for {threads} BLAS threads, "
            f"but {in_words(max(left, 0))} are left; raise ulimit -v, or set OMP_NUM_THREADS=1."
        )


def _machine_memory() -> Any:
    import psutil  # noqa: PLC0415  predictions need none of it

    return psutil.virtual_memory()


def _addresses_left() -> int:
    """Return the virtual memory that this process may still map."""
    limit, taken = resource.getrlimit(resource.RLIMIT_AS)[0], _status("VmSize")
    return limit - taken if limit != resource.RLIM_INFINITY and taken else _UNLIMITED


def _group_memory() -> Iterator[tuple[int, int]]:
    """Yield limits of control groups, and the bytes taken of each but for files in cache."""
    for group in _groups("memory", _SELF):
        limits = (group / f"memory.{name}" for name in ("max", "high", "limit_in_bytes"))
        taken = next(_numbers(*(group / f"memory.{n}" for n in ("current", "usage_in_bytes"))), 0)
        with suppress(OSError, ValueError):
            facts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            for name in ("active_file", "inactive_file"):
                taken -= int(facts.get(f"total_{name}", facts.get(name, 0)))
        for limit in _numbers(*limits):
            yield limit, taken


@cache
def _groups(controller: str, process: Path) -> list[Path]:
    """Return the folders of the control groups that hold a process, its own first, then up."""
    # Version 1 has a tree for every controller, version 2 one for all; a container sees a part.
    paths: dict[str, str] = {}
    try:
        for line in (process / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            paths |= dict.fromkeys(controllers.split(","), path)
        mounts = (process / "mountinfo").read_text().splitlines()
    except (OSError, ValueError):
        return []
    folders = []
    for line in mounts:
        place, _, system = line.partition(" - ")
        kind, _, options = system.split(" ", 2)
        name = controller if kind == "cgroup" else ""
        is_of = kind == "cgroup2" or (kind == "cgroup" and name in options.split(","))
        if is_of and name in paths:
            root, mount = place.split()[3:5]
            inner, own = PurePosixPath("."), PurePosixPath(paths[name])
            if own.is_relative_to(root) and ".." not in own.parts:
                inner = own.relative_to(root)
            folders += [Path(mount, part) for part in (inner, *inner.parents)]
    return folders


def _numbers(*paths: Path) -> Iterator[int]:
    """Yield the numbers that files hold; `max` is none, and so are -1 and a file that is not."""
    for path in paths:
        with suppress(OSError, ValueError):
            if (number := int(path.read_text())) >= 0:
                yield number


def _status(name: str) -> int:
    """Return a line of this process's status in bytes, 0 where the system does not say."""
    with suppress(OSError):
        for line in (_SELF / "status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return 0


def peak_bytes() -> int:
    """Return the largest resident size this process has had, 0 where the system does not say."""
    return _status("VmHWM")


def reset_peak() -> None:
    """Let `peak_bytes` begin again from what is resident now, where the system can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def usable_cores() -> int:
    """Return the cores this process may run on, counting the quotas of its control groups."""
    cores = _cores()
    for group in _groups("cpu", _SELF):
        with suppress(OSError, ValueError):
            quota, period = map(int, (group / "cpu.max").read_text().split())
            cores = min(cores, math.ceil(quota / period))
        period = next(_numbers(group / "cpu.cfs_period_us"), 100_000)
        for quota in _numbers(group / "cpu.cfs_quota_us"):
            cores = min(cores, math.ceil(quota / period))
    return max(cores, 1)


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def in_words(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(n_bytes) < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def check_free(n_bytes: int, what: str) -> None:
    """Raise InsufficientMemoryError unless this process can take so many bytes more for `what`."""
    free = available_bytes()
    if n_bytes > free:
        raise InsufficientMemoryError(
            f"{what} needs {in_words(n_bytes)} in this process, but {in_words(free)} is free; take "
            f"a machine with more memory, or fewer components."
        )
