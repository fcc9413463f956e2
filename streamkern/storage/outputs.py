"""Output files that appear whole or not at all."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from streamkern.errors import OutputError, ParameterError
from streamkern.errors.urls import is_url, shown
from streamkern.runtime.stopping import held
from streamkern.storage.temporary_paths import temporary_path

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# What endings of names say.
_FORMATS = {
    ".csv": "CSV", ".tsv": "TSV", ".parquet": "Parquet", ".npy": "NumPy", ".npz": "NumPy",
    ".h5": "HDF5", ".hdf5": "HDF5", ".onnx": "ONNX", ".c": "C", ".html": "HTML", ".json": "JSON",
    ".pkl": "pickle", ".joblib": "pickle", ".gz": "gzip", ".zip": "ZIP", ".txt": "plain text",
    ".xlsx": "Excel", ".xls": "Excel", ".feather": "Arrow", ".arrow": "Arrow", ".orc": "ORC",
}  # fmt: skip


def check_format(path: str | Path, *written: str) -> None:
    """Raise ParameterError if a name ends like a format other than those that can be written."""
    ending = Path(path).suffix.lower()
    if _FORMATS.get(ending, written[0]) not in written:
        raise ParameterError(
            f"{path} ends like {_FORMATS[ending]}, but what is written there is "
            f"{', '.join(written)}; give the name another ending."
        )


def check_output(
    path: str | Path,
    *,
    force: bool = False,
    inputs: Iterable[str | Path] = (),
    formats: Sequence[str] = (),
) -> Path:
    """Raise OutputError unless `path` can be written, before the work that fills it is done."""
    if formats:
        check_format(path, *formats)
    _need_path(path)
    try:
        target = Path(path).resolve()
        exists = target.exists()
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written ({error.strerror}); write elsewhere."
        ) from error
    if target.is_dir():
        raise OutputError(f"{path} is a folder; name a file to write.")
    if exists and not target.is_file():
        raise OutputError(f"{path} is not a plain file; name a file to write.")
    if not exists and Path(path).is_symlink():
        raise OutputError(
            f"{path} is a link to {target}, which does not exist; name that, or remove the link."
        )
    if any(_are_one_file(target, name) for name in inputs):
        raise OutputError(f"{path} is an input of this job; name another file to write.")
    if exists and not force:
        raise OutputError(
            f"{path} exists already; give force=True (--force) to replace it, or another name."
        )
    folder = target.parent
    if not folder.is_dir():
        raise OutputError(f"the folder {folder} does not exist; make it, or write elsewhere.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"the folder {folder} cannot be written to; check its permissions.")
    return target


def _are_one_file(target: Path, name: str | Path) -> bool:
    """Say whether a path and another, which may be no path, lead to one file that there is."""
    try:
        return target.samefile(name)
    except (OSError, ValueError):
        return False


def make_folder(path: str | Path) -> Path:
    """Make a folder for outputs unless it is there, or raise OutputError."""
    _need_path(path)
    folder = Path(path)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"the folder {folder} cannot be made ({error.strerror}); write elsewhere."
        ) from error
    return folder


def _need_path(path: str | Path) -> None:
    if is_url(str(path)):
        raise OutputError(
            f"{shown(str(path))} is a URL, but outputs are files here; write a file, and "
            f"copy it there."
        )


def local_path(path: str | Path) -> Path:
    """Return the path of a file that is read here, or raise ParameterError if it is a URL."""
    if is_url(str(path)):
        raise ParameterError(
            f"{shown(str(path))} is a URL, but only rows in HDF5 are read from there; copy it here "
            f"first, and name the copy."
        )
    return Path(path)


@contextmanager
def replacing(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Give a temporary path beside `path`, which takes its place when all is written.

    A file that is replaced passes on its mode, and its owner and group where this user may set
    them.  Without `force` a file that another job made meanwhile is kept.  An OSError of the writer
    becomes an OutputError.
    """
    target = check_output(path, force=force)
    with written(target):
        old = target.stat() if target.exists() else None
        with temporary_path(target.parent) as temporary:
            # Made before it is opened, so that no link of somebody else is followed.
            mode = 0o666 if old is None else 0o600  # what it holds may not be for everyone
            descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL, mode)
            os.utime(descriptor, (0, 0))  # until something is written
            os.close(descriptor)
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
                if not os.fstat(file.fileno()).st_mtime:
                    raise OSError(errno.ENODATA, "nothing was written")
            if old is not None:
                _pass_on(old, temporary)
            if force:
                temporary.replace(target)
            else:
                _publish(temporary, target)


@contextmanager
def written(target: Path) -> Iterator[None]:
    """Raise OutputError, which names an output, where it cannot be written."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(_why(target, error)) from error


def _pass_on(old: os.stat_result, path: Path) -> None:
    """Give a file the group, mode and owner of another as far as this user may set them."""
    mode = stat.S_IMODE(old.st_mode)
    if path.stat().st_gid != old.st_gid:
        try:
            os.chown(path, -1, old.st_gid)
        except OSError:
            mode &= ~stat.S_IRWXG  # which were for another group
    with suppress(OSError):  # a file system without modes
        path.chmod(mode)
        if path.stat().st_uid != old.st_uid:
            os.chown(path, old.st_uid, -1)


def _publish(path: Path, target: Path) -> None:
    """Let a file appear as `target`, or raise OutputError if there is one by now."""
    try:
        try:
            os.link(path, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            with held():
                os.close(os.open(target, os.O_CREAT | os.O_EXCL))
                path.replace(target)
    except FileExistsError as error:
        raise OutputError(
            f"{target} was made by another job meanwhile, and is kept; give another name, or "
            f"force=True (--force) to replace it."
        ) from error


def _why(target: Path, error: OSError) -> str:
    if error.errno in _FULL or any(f"errno = {code}" in str(error) for code in _FULL):
        return (
            f"{target} cannot be written: the disk or quota is full; the partial file was removed, "
            f"make room or write elsewhere."
        )
    reason = error.strerror or str(error)
    return f"{target} cannot be written ({reason}); the partial file was removed."
