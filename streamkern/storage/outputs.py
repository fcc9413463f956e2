"""Output files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from streamkern.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def check_output(path: str | Path, *, force: bool = False) -> Path:
    """Raise OutputError unless `path` can be written, before the work that fills it is done.

    Parameters
    ----------
    path : path
    force : bool
        An existing file may be replaced.
    """
    target = Path(path)
    try:
        is_folder, exists = target.is_dir(), target.exists()
    except PermissionError as error:
        raise OutputError(f"{target} cannot be written: permission denied.") from error
    if is_folder:
        raise OutputError(f"{target} is a folder; name a file to write.")
    if exists and not force:
        raise OutputError(f"{target} exists already; give --force to replace it, or another name.")
    folder = target.resolve().parent
    if not folder.is_dir():
        raise OutputError(f"the folder {folder} does not exist; make it, or write elsewhere.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"the folder {folder} cannot be written to; check its permissions.")
    return target


@contextmanager
def replacing(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Give a temporary path beside `path`, which takes its place when all is written.

    Until the last moment `path` stays as it was; after an error or an interruption the temporary
    file is gone.

    Raises
    ------
    OutputError
        If the file cannot be written; an OSError of the writer is turned into one.
    """
    target = check_output(path, force=force)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(_why(target, error)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _why(target: Path, error: OSError) -> str:
    if error.errno in _FULL or any(f"errno = {code}" in str(error) for code in _FULL):
        return (
            f"{target} cannot be written: the disk or quota is full; the partial file was removed, "
            f"make room or write elsewhere."
        )
    reason = error.strerror or str(error)
    return f"{target} cannot be written ({reason}); the partial file was removed."
