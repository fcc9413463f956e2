"""New HDF5 files on a disk that may be full."""

from __future__ import annotations

from contextlib import contextmanager
from io import FileIO
from typing import TYPE_CHECKING

import h5py

from streamkern.runtime.signals import between_callbacks, not_interrupted
from streamkern.storage.outputs import check_format, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Buffer


class Disk(FileIO):
    """A file that remembers its first error instead of raising it.

    HDF5 cannot close a file that it cannot write, and takes the process down with it.  So it is
    left to think that all is well, and the error is raised when it has let go.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")
        self.error: OSError | None = None

    @not_interrupted
    def write(self, data: Buffer) -> int:
        """Write all of `data`, or remember why not."""
        view = memoryview(data).cast("B")
        done = 0
        try:
            while done < len(view):
                done += super().write(view[done:])
        except OSError as error:
            self.error = self.error or error
        return len(view)

    @not_interrupted
    def truncate(self, size: int | None = None) -> int:
        """Set the size, or remember why not."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0

    def check(self) -> None:
        """Raise the error that was met, if any."""
        if self.error:
            raise self.error


@contextmanager
def new_hdf5(path: str | Path, *, force: bool = False) -> Iterator[tuple[h5py.File, Disk]]:
    """Give a new HDF5 file and its disk; the file takes its name when everything is in it.

    Who writes much calls `Disk.check` between, to learn early that the disk is full.
    """
    check_format(path, "HDF5")
    with replacing(path, force=force) as temporary, Disk(temporary) as disk:
        try:
            with between_callbacks(), h5py.File(disk, "w") as file:
                yield file, disk
        finally:
            # Of a disk that is full HDF5 may complain in words of its own.
            disk.check()
