"""Rows of another source, of which something is changed where they are read."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

from streamkern.sources.base import Segment, Source

if TYPE_CHECKING:
    from streamkern.sources.base import Shard


class DerivedSource(Source):
    """The rows of another source with other targets, weights or inputs.

    A class of them says with `reader` what is changed.  Where it has other targets, it sets
    `n_targets` and `target_ndim`.
    """

    def __init__(self, rows: Source) -> None:
        self.rows = rows
        self.n_samples = rows.n_samples
        self.n_features = rows.n_features
        self.n_targets = rows.n_targets
        self.target_ndim = rows.target_ndim
        self.dtype = rows.dtype
        self.rounding = rows.rounding
        self.loads_whole_shards = rows.loads_whole_shards
        self.chunk_bytes = rows.chunk_bytes
        self.weighted_by = rows.weighted_by
        self.paths = rows.paths

    @abstractmethod
    def reader(self, shard: Shard) -> Any:
        """Return a `Reader` of the shard, or a Dask task that makes one."""

    @abstractmethod
    def of(self, rows: Source) -> Self:
        """Return the same changes to other rows."""

    @abstractmethod
    def changes(self) -> dict[str, Any]:
        """Return what is changed, as plain JSON values."""

    def segments(self) -> list[Segment]:
        """Return where the rows may be cut."""
        return self.rows.segments()

    def check_unchanged(self) -> None:
        """Raise DataError if the rows are known not to be what they were."""
        self.rows.check_unchanged()

    def locate(self, row: int) -> str:
        """Say in words where a row is."""
        return self.rows.locate(row)

    def describe(self) -> dict[str, Any]:
        """Return where the rows are, and what is changed."""
        return self.rows.describe() | self.changes()
