"""Signals that stop a program: Ctrl-C, SIGTERM of a batch system, SIGHUP of a terminal."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from streamkern.runtime.stopping import SIGNALS, Held, send_later, stopping, unless_deaf

# Seconds that a program has to end in order after a signal.
_PATIENCE = 30.0


class Stopped(KeyboardInterrupt):
    """A signal, of this number, asked the program to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number, self.exit_status = number, 128 + number


class _State:
    """The signal that was raised, and what ends the process after it."""

    raised: Stopped | None = None
    watch: threading.Timer | None = None


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` at the first signal to stop, and end the process at the second.

    Signals that the program was started to ignore stay ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {number: signal.getsignal(number) for number in SIGNALS}
    listening = [number for number in SIGNALS if usual[number] is not signal.SIG_IGN]
    stopping.clear()
    _State.raised = None

    def stop(number: int, _: FrameType | None) -> None:
        if Held.depth:
            Held.number = number
        else:
            end_at_once()
            stopping.set()
            end_later(number)
            _State.raised = Stopped(number)
            raise _State.raised

    def listen() -> None:
        for number in listening:
            signal.signal(number, unless_deaf(stop))

    def lost(error: Any) -> None:
        # Out of a callback of a weak reference, say, no exception gets.
        if _State.raised is None or error.exc_value is not _State.raised:
            tell_lost(error)
        else:
            listen()
            send_later(error.exc_value.number)

    tell_lost, sys.unraisablehook = sys.unraisablehook, lost
    try:
        listen()
        yield
    finally:
        sys.unraisablehook = tell_lost
        if _State.watch is not None:
            _State.watch.cancel()
        for number in listening:
            signal.signal(number, usual[number] or signal.SIG_DFL)


def raised() -> Stopped | None:
    """Return what a signal has raised, which C code may have made another error of."""
    return _State.raised


def end_at_once() -> None:
    """Let the next signal that is not ignored end the process, whatever it is at."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: os._exit(128 + number))


def end_later(number: int) -> None:
    """End the process in a while: a thread may never come back from a library or a file system.

    `stoppable` takes that back when it ends.
    """

    def give_up() -> None:
        if Held.depth:
            end_later(number)
        else:
            os.write(2, b"Error: interrupted, while a read did not come back.\n")
            os._exit(128 + number)

    if _State.watch is not None:
        _State.watch.cancel()
    _State.watch = threading.Timer(_PATIENCE, give_up)
    _State.watch.daemon = True
    _State.watch.start()
