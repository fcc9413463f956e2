"""A folder of files that answer late: python jobs/slow_files.py FOLDER MOUNTPOINT --seconds 0.02.

Every read that the kernel asks for, of up to 128 KiB, takes so much longer; what it has read it
keeps, as it does for network file systems.  Needs FUSE on the machine, and `pip install mfusepy`.
It ends, and the mount with it, on Ctrl-C.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import mfusepy


class Late(mfusepy.Operations):
    """A folder, to be read only, that waits before every answer.

    Parameters
    ----------
    folder : Path
    seconds : float
    """

    use_ns = True

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder.resolve()
        self.seconds = seconds

    def getattr(self, path: str, *_: Any) -> dict[str, Any]:
        """Return what is known of a file."""
        found = os.lstat(f"{self.folder}{path}")
        times = {f"st_{of}time": getattr(found, f"st_{of}time_ns") for of in "amc"}
        names = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid")
        return {name: getattr(found, name) for name in names} | times

    def readdir(self, path: str, *_: Any) -> list[str]:
        """Return the names in a folder."""
        return [".", "..", *(found.name for found in Path(f"{self.folder}{path}").iterdir())]

    def open(self, path: str, *_: Any) -> int:
        """Open a file for reading."""
        return os.open(f"{self.folder}{path}", os.O_RDONLY)

    def release(self, _path: str, fh: int) -> int:
        """Close it."""
        os.close(fh)
        return 0

    def read(self, _path: str, size: int, offset: int, fh: int) -> bytes:
        """Read from it, late."""
        time.sleep(self.seconds)
        return os.pread(fh, size, offset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("mountpoint", type=Path)
    parser.add_argument("--seconds", type=float, default=0.02)
    given = parser.parse_args()
    late = Late(given.folder, given.seconds)
    mfusepy.FUSE(late, str(given.mountpoint), foreground=True, ro=True, auto_cache=True)


if __name__ == "__main__":
    main()
