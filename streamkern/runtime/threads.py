"""BLAS threads, a fixed number while tasks run, and what this machine computes with."""

import os
import platform
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

_lock = threading.RLock()
# A child must not be forked while another thread holds it.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)
_inside = 0
_limit: Any = None
_n_threads = 1


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401, PLC0415  brings its own BLAS, which must be known too
    import threadpoolctl  # noqa: PLC0415  predictions need none of it

    return threadpoolctl.ThreadpoolController()


def _let_any_thread_set_limits() -> None:
    """Lift the rule of threadpoolctl 3.8 that only one thread may set limits; here a lock holds."""
    import threadpoolctl  # noqa: PLC0415  predictions need none of it

    controller = getattr(threadpoolctl, "OpenBLASController", None)
    clear = getattr(controller, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@contextmanager
def blas_threads(n_threads: int) -> Iterator[None]:
    """Hold BLAS to `n_threads` threads.

    It is the process's number: the first task to enter sets it, the last to leave restores it.
    """
    global _inside, _limit, _n_threads  # noqa: PLW0603  the state is the process's, as the BLAS setting is
    with _lock:
        if not _inside:
            _let_any_thread_set_limits()
            _limit = _controller().limit(limits=n_threads, user_api="blas")
            _n_threads = n_threads
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _let_any_thread_set_limits()
                _limit.restore_original_limits()
                _let_any_thread_set_limits()


def in_pieces(work: Callable[[int], None], starts: range, n_threads: int) -> None:
    """Do a piece of work at every start, on so many threads, with one BLAS thread each."""
    with blas_threads(1):
        if min(n_threads, len(starts)) <= 1:
            list(map(work, starts))
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(work, starts))


def held_blas_threads() -> int:
    """Return the threads that BLAS is held to, or 1 where it is not."""
    return _n_threads if _inside else 1


def processor() -> str:
    """Return the model of the processor, with family and model number where they are told."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    named = facts.get("model name") or platform.machine()
    numbers = ", ".join(f"{k} {facts[k]}" for k in ("cpu family", "model") if k in facts)
    vectors = "AVX-512" if "avx512f" in facts.get("flags", "") else ""
    inside = ", ".join(filter(None, (numbers, vectors)))
    return f"{named} ({inside})" if inside else named
