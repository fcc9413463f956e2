"""Signals that stop a program: Ctrl-C, SIGTERM of a batch system, SIGHUP of a terminal."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, TypeVar

F = TypeVar("F", bound="Callable[..., Any]")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Where Python lets no exception out, functions that C calls and that must not raise, and how long
# to wait then.
_DEAF = {"__del__", "_gc_callback"}
# A thread that a pool has started and does not know of yet would keep the program from ending.
_called_back: set[CodeType] = {ThreadPoolExecutor.submit.__code__}
_SOON = 0.05
# Seconds that a program has to end in order after a signal.
_PATIENCE = 30.0

# Set when the program was asked to stop, for threads that no signal reaches.
stopping = threading.Event()


class Stopped(KeyboardInterrupt):
    """A signal, of this number, asked the program to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number, self.exit_status = number, 128 + number


class _Held:
    """Signals that wait, the one that was raised, and what ends the process after it."""

    depth = 0
    number: int | None = None
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
    usual = {number: signal.getsignal(number) for number in _SIGNALS}
    listening = [number for number in _SIGNALS if usual[number] is not signal.SIG_IGN]
    stopping.clear()
    _Held.raised = None

    def stop(number: int, _: FrameType | None) -> None:
        if _Held.depth:
            _Held.number = number
        else:
            end_at_once()
            stopping.set()
            end_later(number)
            _Held.raised = Stopped(number)
            raise _Held.raised

    def listen() -> None:
        for number in listening:
            signal.signal(number, _unless_deaf(stop))

    def lost(error: Any) -> None:
        # Out of a callback of a weak reference, say, no exception gets.
        if _Held.raised is None or error.exc_value is not _Held.raised:
            tell_lost(error)
        else:
            listen()
            _send_later(error.exc_value.number)

    tell_lost, sys.unraisablehook = sys.unraisablehook, lost
    try:
        listen()
        yield
    finally:
        sys.unraisablehook = tell_lost
        if _Held.watch is not None:
            _Held.watch.cancel()
        for number in listening:
            signal.signal(number, usual[number] or signal.SIG_DFL)


def raised() -> Stopped | None:
    """Return what a signal has raised, which C code may have made another error of."""
    return _Held.raised


def not_interrupted(function: F) -> F:
    """Mark a function that C code calls back, and that must not raise: signals wait meanwhile."""
    _called_back.add(function.__code__)
    return function


@contextmanager
def between_callbacks() -> Iterator[None]:
    """Have the program's own handlers of signals wait while a function so marked is called."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {number: signal.getsignal(number) for number in _SIGNALS}
    ours = {number: _unless_deaf(each) for number, each in usual.items() if callable(each)}
    try:
        for number, handler in ours.items():
            signal.signal(number, handler)
        yield
    finally:
        for number, handler in ours.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, usual[number])


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Undo what a library does to the handlers of signals when it is imported."""
    usual = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in usual.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


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


def is_asked_to_stop() -> bool:
    """Say whether a signal to stop waits, held or blocked."""
    waits = signal.SIGINT in signal.sigpending()
    return _Held.number is not None or (
        waits and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    )


def end_at_once() -> None:
    """Let the next signal that is not ignored end the process, whatever it is at."""
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: os._exit(128 + number))


def end_later(number: int) -> None:
    """End the process in a while: a thread may never come back from a library or a file system.

    `stoppable` takes that back when it ends.
    """

    def give_up() -> None:
        if _Held.depth:
            end_later(number)
        else:
            os.write(2, b"Error: interrupted, while a read did not come back.\n")
            os._exit(128 + number)

    _Held.watch = threading.Timer(_PATIENCE, give_up)
    _Held.watch.daemon = True
    _Held.watch.start()


def _unless_deaf(handler: Callable[..., object]) -> Callable[..., None]:
    """Return a handler that tries again soon where its exception would be lost, or do harm."""

    def handle(number: int, frame: FrameType | None) -> None:
        if _is_deaf(frame):
            _send_later(number)
        else:
            handler(number, frame)

    return handle


def _send_later(number: int) -> None:
    threading.Timer(_SOON, os.kill, (os.getpid(), number)).start()


def _is_deaf(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in _DEAF or frame.f_code in _called_back:
            return True
        frame = frame.f_back
    return False
