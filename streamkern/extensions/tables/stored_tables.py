"""Tables in files: what is known of one before its rows are read, and how workers read them."""

import lzma
import tokenize
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from csv import Error as CSVError
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError, first_line
from streamkern.sources.stored_files import StoredFile, StoreError

# Of a file that are read at a time.
PIECE_BYTES = 4 << 20
# Of memory that Arrow keeps beside, with what cells become on their way.
ARROW_BYTES = 48 << 20
# A long group of rows is cut into so many parts; each is read from the beginning of the group.
_MOST_PARTS, _PART_ROWS = 8, 1 << 17
_UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, SyntaxError, CSVError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError, OverflowError),
)


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Raise DataError for what a damaged file makes libraries raise."""
    try:
        yield
    except DataError:
        raise
    except StoreError as error:
        raise DataError(f"{path} {error}") from error
    except _UNREADABLE as error:
        reason = first_line(error)
        raise DataError(f"{path} cannot be read ({reason}); mend or replace it.") from error
    except MemoryError as error:
        raise DataError(
            f"{path} takes more memory than there is; write it again in smaller pieces."
        ) from error


def opened_bytes(path: str) -> Any:
    """Open a file as bytes, here or in a store."""
    return path.raw() if isinstance(path, StoredFile) else open(path, "rb")  # noqa: PTH123


class StoredTable(ABC):
    """A table in a file, whose columns may hold anything.

    It is what a worker is sent, so it holds what reading takes, and no rows.
    """

    path: str  # a `StoredFile` where it is in a store
    schema: Any  # of Arrow
    groups: Sequence[int]  # rows of each group that is read from its beginning
    version: tuple[int, float | str]  # size, and the time or tag of the last change
    # Columns whose cells are never read, since they would take much memory, and why.
    long_texts: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def narrowed(self, first: int, last: int) -> Self:
        """Return what is enough to read some groups."""

    @abstractmethod
    def batches(self, names: Sequence[str], first: int, last: int) -> Iterator[Any]:
        """Yield batches of Arrow with columns of some groups, from the beginning of the first."""

    @property
    @abstractmethod
    def kept_bytes(self) -> int:
        """What is held in memory while rows are read, at most."""

    @property
    def n_rows(self) -> int:
        return sum(self.groups)

    @property
    @abstractmethod
    def written(self) -> set[str]:
        """The columns of texts that may be numbers or times."""

    @cached_property
    def _group_ends(self) -> Array:
        return np.cumsum(self.groups)

    def read(self, names: Sequence[str], start: int = 0, stop: int | None = None) -> Iterator[Any]:
        """Yield batches of Arrow with columns of rows `start` to `stop`, by default of all."""
        stop = self.n_rows if stop is None else stop
        if not (left := stop - start):
            return
        first, last, skipped = self._groups_of(start, stop)
        for batch in self.batches(names, first, last):
            part = batch.slice(skipped, left)
            skipped, left = max(skipped - len(batch), 0), left - len(part)
            if len(part):
                yield part
            if not left:
                return
        raise self.changed()

    def part(self, start: int, stop: int) -> tuple[Self, int, int]:
        """Return what is enough to read some rows, and where these are there."""
        first, last, skipped = self._groups_of(start, stop)
        return self.narrowed(first, last), skipped, skipped + stop - start

    def _groups_of(self, start: int, stop: int) -> tuple[int, int, int]:
        """Return the first group with some rows, the one after the last, and rows to skip."""
        first, last = np.searchsorted(self._group_ends, [start, stop - 1], side="right").tolist()
        before = int(self._group_ends[first - 1]) if first else 0
        return first, last + 1, start - before

    def segments(self) -> Iterator[tuple[int, int]]:
        """Yield the rows of every group, and of the parts that it may be cut into."""
        for n_rows in self.groups:
            if n_rows:
                yield n_rows, max(-(-n_rows // _MOST_PARTS), min(n_rows, _PART_ROWS))

    def check_names(self) -> None:
        """Raise DataError if two columns share a name."""
        if twice := [name for name, n in Counter(self.schema.names).items() if n > 1]:
            raise DataError(f"{self.path} has two columns {twice[0]!r}; rename one.")

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Name the table in errors about its cells."""
        try:
            yield
        except DataError as error:
            raise DataError(f"{self.path}: {error}") from error

    def changed(self) -> DataError:
        return DataError(f"{self.path} changed while it was in use; start again.")
