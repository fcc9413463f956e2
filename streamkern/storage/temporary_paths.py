"""Temporary files and folders: locked by the job that writes them, removed when it has ended."""

import fcntl
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from streamkern.runtime.stopping import held

# Seconds after which nobody is taken to write any more.
_OLD = 7 * 24 * 3600


@contextmanager
def temporary_path(folder: Path) -> Iterator[Path]:
    """Give a new path in a folder, for a file or a folder that is gone afterwards.

    The lock beside it ends with this process, so the next job on this machine removes what nobody
    owns any more.  It leaves what is of other machines, whose locks it may not see, for a week.
    """
    ours = f".streamkern-{socket.gethostname()}-"
    for lock in folder.glob(f".streamkern-*-{'[0-9a-f]' * 32}.lock"):
        # All of the name, because that of another machine may begin with that of this one.
        if lock.stem[:-32] == ours or _is_old(lock):
            remove_abandoned(lock)

    @held()
    def remove() -> None:
        _remove(path)
        if descriptor is not None:
            path.with_suffix(".lock").unlink(missing_ok=True)
            os.close(descriptor)

    with ExitStack() as stack:
        with held():
            path, descriptor = _new_path(folder, ours)
            stack.callback(remove)
        yield path


def _new_path(folder: Path, beginning: str) -> tuple[Path, int | None]:
    """Return a new path, and its lock unless the file system has none."""
    while True:
        path = folder / f"{beginning}{uuid.uuid4().hex}.partial"
        lock = path.with_suffix(".lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if not isinstance(error, BlockingIOError):
                lock.unlink(missing_ok=True)
                return path, None
        else:
            return path, descriptor


def remove_abandoned(lock: Path) -> None:
    """Remove a temporary path and its lock, unless the job that made them is alive."""
    with suppress(OSError):
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(lock.with_suffix(".partial"))
            lock.unlink()
        finally:
            os.close(descriptor)


def _is_old(lock: Path) -> bool:
    """Say whether a temporary path was neither made nor written to of late."""
    written = [0.0]
    for each in (lock, lock.with_suffix(".partial")):
        with suppress(OSError):
            written.append(each.lstat().st_mtime)
    return max(written) < time.time() - _OLD


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
