"""Python's garbage collector waits while HDF5 waits for bytes from a store.

It runs in whichever thread makes an object.  In the thread that answers for a store it could come
upon an object of h5py, whose end waits for the lock of HDF5, which waits for that answer.
"""

import gc
import os
import threading
import time
from typing import Any

_lock = threading.RLock()  # the collector itself may end a pause
_pauses = 0
_was_enabled = False
_collecting: int | None = None


def _note(phase: str, _: dict[str, Any]) -> None:
    global _collecting  # noqa: PLW0603  there is one collector a process
    _collecting = threading.get_ident() if phase == "start" else None


gc.callbacks.insert(0, _note)


def pause() -> None:
    """Have no collection begin, and wait for the end of one that is under way elsewhere."""
    global _pauses, _was_enabled  # noqa: PLW0603
    with _lock:
        if not _pauses:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    time.sleep(0.001)  # one that has just begun gets to say so
    while _collecting not in (None, threading.get_ident()):
        time.sleep(0.001)


def resume() -> None:
    """End a pause; with the last of them the collector works again."""
    global _pauses  # noqa: PLW0603
    with _lock:
        _pauses -= 1
        if not _pauses and _was_enabled:
            gc.enable()


def _begin_anew() -> None:
    """End, in a child that was forked, the pauses of threads that it has not."""
    global _lock, _pauses, _collecting
    if _pauses and _was_enabled:
        gc.enable()
    _lock, _pauses, _collecting = threading.RLock(), 0, None


os.register_at_fork(after_in_child=_begin_anew)
