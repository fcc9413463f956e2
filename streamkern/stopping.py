"""Ctrl-C, and the signal by which a batch system ends a job."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Where Python lets no exception out, and how long to wait then.
_DEAF = {"__del__", "_gc_callback"}
_SOON = 0.05

# Set when the program was asked to stop, for threads that no signal reaches.
stopping = threading.Event()


class Stopped(KeyboardInterrupt):
    """A signal asked the program to stop.

    Parameters
    ----------
    number : int
        Of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_status = 128 + number


class _Held:
    """Signals that wait."""

    depth = 0
    number: int | None = None


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` at the first signal to stop, and end the process at the second.

    Signals that the program was started to ignore stay ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {number: signal.getsignal(number) for number in _SIGNALS}
    listening = [number for number in _SIGNALS if usual[number] is not signal.SIG_IGN]
    stopping.clear()

    def stop(number: int, frame: FrameType | None) -> None:
        if _Held.depth:
            _Held.number = number
        elif _is_deaf(frame):
            threading.Timer(_SOON, os.kill, (os.getpid(), number)).start()
        else:
            end_at_once()
            stopping.set()
            raise Stopped(number)

    try:
        for number in listening:
            signal.signal(number, stop)
        yield
    finally:
        for number in listening:
            signal.signal(number, usual[number] or signal.SIG_DFL)


@contextmanager
def held() -> Iterator[None]:
    """Let a first signal to stop wait until what must not be half done is done."""
    _Held.depth += 1
    try:
        yield
    finally:
        _Held.depth -= 1
        if not _Held.depth and _Held.number is not None:
            number, _Held.number = _Held.number, None
            os.kill(os.getpid(), number)


def end_at_once() -> None:
    """Let the next signal that is not ignored end the process, whatever it is at."""
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, _: Any) -> None:
    os._exit(128 + number)


def _is_deaf(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in _DEAF:
            return True
        frame = frame.f_back
    return False
