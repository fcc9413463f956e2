"""Finished parts of passes in a folder, so that a job that was stopped goes on where it was.

    job.json                     what the job is: its rows, options, shards and versions
    lock                         held by the job that works in the folder
    PASS-TOKEN-group-00003.h5    the sums of one group of shards
    PASS-TOKEN-up-to-00007.h5    the sums of all groups up to one, which take the place of theirs

Every file appears whole or not at all, carries a checksum, and holds numbers alone.  Tokens stand
for the job and for all that the sums of a pass depend on, so that nobody takes the sums of others,
whoever else writes to the folder.
"""

import errno
import fcntl
import hashlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from streamkern.errors import CheckpointError, first_line, warn
from streamkern.sources.hdf5_opening import OUTAGES
from streamkern.storage.codec import plain
from streamkern.storage.outputs import make_folder, replacing
from streamkern.storage.plain_values import is_whole, read_plain, write_plain
from streamkern.storage.temporary_paths import remove_abandoned
from streamkern.storage.untrusted import json_of

_JOB, _LOCK = "job.json", "lock"
_GROUP, _TOTAL = "group", "up-to"
_DIGITS, _TOKEN = 5, 12
# Seconds in which what one machine writes to a network is seen by others (NFS lists a folder that
# it has seen for up to 60), and between two tries.
_SEEN_WITHIN, _PAUSE = 90.0, 1.0
T = TypeVar("T")
_ANY_PASS = f"*-{'[0-9a-f]' * _TOKEN}"


def _files(folder: str | Path, *kinds: str, name: str = _ANY_PASS) -> list[Path]:
    """Return the files of sums of some kinds, of all passes or of one."""
    ending = f"{'[0-9]' * _DIGITS}.h5"
    return [path for kind in kinds for path in Path(folder).glob(f"{name}-{kind}-{ending}")]


@dataclass(frozen=True)
class SavedPass:
    """What is saved of one pass, whose name has its token; the same for every task of it."""

    folder: str
    name: str

    def last_total(self) -> int:
        """Return the last group that is in a saved total, or -1."""
        return max(self._numbers(_TOTAL), default=-1)

    def when_seen(self, read: Callable[[int], T]) -> T:
        """Return what is read, given the last group in a saved total.

        A machine may keep the listing of a folder on a network for a minute, and what is listed may
        have gone: where a file is not there, it is tried again until others must be seen.  Raises
        CheckpointError then.
        """
        end = time.monotonic() + _SEEN_WITHIN
        while True:
            try:
                return read(self.last_total())
            except FileNotFoundError as error:
                if time.monotonic() > end:
                    raise CheckpointError(
                        f"{self.folder} is not the folder of this job on {socket.gethostname()}, "
                        f"or lacks sums of {self.name} that were saved; give all workers one "
                        f"folder that they share with the program, and run this again."
                    ) from error
            time.sleep(_PAUSE)

    def check_shared(self) -> None:
        """Raise CheckpointError unless the folder is that in which the program says what it is."""
        self.when_seen(lambda _: Path(self.folder, _JOB).stat())

    def holds(self, number: int) -> bool:
        """Say whether the sums of a group are saved, alone or in a total."""
        return self._path(_GROUP, number).exists() or self.last_total() >= number

    def read_group(self, number: int) -> Any:
        """Return sums that were saved, or raise FileNotFoundError where none are seen."""
        return self._read(_GROUP, number)

    def read_total(self, number: int) -> Any:
        """Return sums that were saved, or raise FileNotFoundError where none are seen."""
        return self._read(_TOTAL, number)

    def write_group(self, number: int, sums: Any) -> None:
        write_plain(self._path(_GROUP, number), sums)

    def write_total(self, number: int, sums: Any) -> None:
        """Save the sums of all groups up to one, and remove what that makes superfluous."""
        write_plain(self._path(_TOTAL, number), sums)
        for kind, end in ((_TOTAL, number), (_GROUP, number + 1)):
            for older in self._numbers(kind):
                if older < end:
                    self._path(kind, older).unlink(missing_ok=True)

    def _read(self, kind: str, number: int) -> Any:
        path = self._path(kind, number)
        try:
            return read_plain(path)
        except CheckpointError as error:
            if getattr(error.__cause__, "errno", None) in {errno.ENOENT, *OUTAGES}:
                raise FileNotFoundError(path) from error
            raise

    def _path(self, kind: str, number: int) -> Path:
        return Path(self.folder, f"{self.name}-{kind}-{number:0{_DIGITS}}.h5")

    def _numbers(self, kind: str) -> list[int]:
        return [int(path.stem[-_DIGITS:]) for path in _files(self.folder, kind, name=self.name)]


@dataclass(frozen=True)
class Checkpoint:
    """A folder that this job alone works in, with a hash of what the job is."""

    folder: str
    job: str

    def of_pass(self, name: str, token: str) -> SavedPass:
        """Return what is saved of a pass; its token is of all that its sums depend on."""
        both = hashlib.sha256(f"{self.job} {token}".encode()).hexdigest()
        return SavedPass(self.folder, f"{name}-{both[:_TOKEN]}")


@contextmanager
def opened_checkpoint(folder: str | Path, job: dict[str, Any]) -> Iterator[Checkpoint]:
    """Hold a folder for a job, a new one or one that the same job left.

    The job is all that the sums depend on, as plain JSON values.  Raises CheckpointError if the
    folder is in use, holds something else, or belongs to another job.
    """
    where = make_folder(folder)
    links = [each.name for each in where.glob("[!.]*") if each.is_symlink()]
    if links:
        raise CheckpointError(
            f"the folder {where} holds {min(links)!r}, a link, through which files elsewhere would "
            f"be written; remove it, or name another folder."
        )
    with _locked(where) as alone:
        text = json.dumps(job, indent=1, sort_keys=True, default=plain)
        manifest = where / _JOB
        if manifest.exists():
            differences = list(_differences("", _read_job(manifest), json.loads(text)))
            if differences:
                more = f", and {len(differences) - 3} more" if len(differences) > 3 else ""
                raise CheckpointError(
                    f"the folder {where} is of another job: {'; '.join(differences[:3])}{more}; "
                    f"name another folder, or remove this one."
                )
        else:
            # Workers of a job that has gone may have written what nobody reads any more.
            own = {where / _LOCK, *_files(where, _GROUP, _TOTAL)}
            others = {path.name for path in where.iterdir() if path not in own}
            others = {name for name in others if not name.startswith(".")}
            if others:
                raise CheckpointError(
                    f"the folder {where} holds {min(others)!r} but no checkpoint of this program; "
                    f"name an empty or a new folder."
                )
            with replacing(manifest) as temporary:
                temporary.write_text(text)
        if alone:
            _remove_temporary(where)
        _remove_damaged(where)
        yield Checkpoint(str(where.resolve()), hashlib.sha256(text.encode()).hexdigest())


def _remove_temporary(where: Path) -> None:
    """Remove what killed processes left, and nothing of jobs that write in the folder now."""
    for lock in where.glob(".streamkern-*.lock"):
        remove_abandoned(lock)
    for path in where.glob(".streamkern-*.partial"):
        if not path.with_suffix(".lock").exists():
            path.unlink(missing_ok=True)


def _remove_damaged(where: Path) -> None:
    files = _files(where, _GROUP, _TOTAL)
    # A thread of a job that was stopped may end it meanwhile, and remove what it has merged.
    damaged = [path for path in files if not is_whole(path) and path.exists()]
    for path in damaged:
        path.unlink(missing_ok=True)
    if damaged:
        warn(
            f"{len(damaged)} of the files in {where} did not hold what was saved, and what they "
            f"stood for is computed again."
        )


def remove_checkpoint(folder: str | Path) -> None:
    """Remove the files of a checkpoint, and the folder if nothing else is in it."""
    where = Path(folder)
    if not where.is_dir():
        return
    with suppress(CheckpointError), _locked(where):
        _remove_temporary(where)
        for path in (*_files(where, _GROUP, _TOTAL), where / _JOB, where / _LOCK):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            where.rmdir()


@contextmanager
def _locked(where: Path) -> Iterator[bool]:
    """Hold the lock of a folder, and say whether that keeps others out: not on all file systems."""
    alone, lock = True, where / _LOCK
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise CheckpointError(
            f"the folder {where} cannot be written to ({error.strerror}); write elsewhere."
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CheckpointError(
                f"the folder {where} is in use by another job; wait until it ends, or name "
                f"another folder."
            ) from error
        except OSError:
            alone = False  # a file system without locks
        # Who held the lock before may have removed its file.
        if alone and not _leads_to(lock, descriptor):
            raise CheckpointError(
                f"the folder {where} was just given up by another job; try again."
            )
        yield alone
    finally:
        os.close(descriptor)


def _leads_to(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _read_job(manifest: Path) -> dict[str, Any]:
    try:
        if not manifest.is_file():
            raise ValueError("not a plain file")  # noqa: TRY301  the same damage
        job = json_of(manifest.read_text())
        if not isinstance(job, dict):
            raise ValueError(f"{type(job).__name__}")  # noqa: TRY301, TRY004  the same damage
        json.dumps(job)  # what is nested without end is found here
    except (OSError, RecursionError, ValueError) as error:
        raise CheckpointError(
            f"{manifest} is damaged ({first_line(error)}); remove the folder, or name another."
        ) from error
    return job


def _differences(name: str, saved: Any, found: Any) -> Iterator[str]:
    if isinstance(saved, dict) and isinstance(found, dict):
        for key in sorted(saved.keys() | found.keys()):
            yield from _differences(f"{name} {key}".strip(), saved.get(key), found.get(key))
    elif isinstance(saved, list) and isinstance(found, list) and len(saved) == len(found):
        for i, pair in enumerate(zip(saved, found, strict=True)):
            yield from _differences(f"{name} {i + 1}".strip(), *pair)
    elif saved != found:
        texts = [json.dumps(value) for value in (saved, found)]
        before, now = (text if len(text) <= 40 else f"{text[:37]}..." for text in texts)
        yield f"{name} was {before}, now {now}"
