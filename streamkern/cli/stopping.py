"""Ctrl-C, and the signal by which a batch system ends a job."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` at the first signal to stop, and end the process at the second.

    Signals that the program was started to ignore stay ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: Any) -> None:
        for each in usual:
            signal.signal(each, _stop_at_once)
        raise Stopped(number)

    usual = {
        number: signal.signal(number, stop)
        for number in _SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def _stop_at_once(number: int, _: Any) -> None:
    os._exit(128 + number)
