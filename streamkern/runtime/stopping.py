"""Whether the program was asked to stop, and what must not be interrupted by that."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, TypeVar

F = TypeVar("F", bound="Callable[..., Any]")

# Set when the program was asked to stop, for threads that no signal reaches.
stopping = threading.Event()
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Where Python lets no exception out, and how long to wait then.
_DEAF = {"__del__", "_gc_callback"}
_SOON = 0.05
# What no exception of a signal may leave: functions that C calls back, and a pool, which does not
# know yet of a thread that it has started, and would keep the program from ending.
_called_back: set[CodeType] = {ThreadPoolExecutor.submit.__code__}


class Held:
    """How many things must not be half done just now, and the signal that waits for their end."""

    depth = 0
    number: int | None = None


def not_interrupted(function: F) -> F:
    """Mark a function that C code calls back, and that must not raise: signals wait meanwhile."""
    _called_back.add(function.__code__)
    return function


@contextmanager
def between_callbacks() -> Iterator[None]:
    """Have the handlers of signals wait while a function so marked is called.

    C code makes other errors of an exception that leaves a function which it calls.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {number: signal.getsignal(number) for number in SIGNALS}
    ours = {number: unless_deaf(each) for number, each in usual.items() if callable(each)}
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
    usual = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in usual.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


@contextmanager
def held() -> Iterator[None]:
    """Let a first signal to stop wait until what must not be half done is done."""
    Held.depth += 1
    try:
        yield
    finally:
        Held.depth -= 1
        if not Held.depth and Held.number is not None:
            number, Held.number = Held.number, None
            os.kill(os.getpid(), number)


def unless_deaf(handler: Callable[..., object]) -> Callable[..., None]:
    """Return a handler that tries again soon where its exception would be lost, or do harm."""

    def handle(number: int, frame: FrameType | None) -> None:
        if _is_deaf(frame):
            send_later(number)
        else:
            handler(number, frame)

    return handle


def send_later(number: int) -> None:
    threading.Timer(_SOON, os.kill, (os.getpid(), number)).start()


def _is_deaf(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in _DEAF or frame.f_code in _called_back:
            return True
        frame = frame.f_back
    return False
