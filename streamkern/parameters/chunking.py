"""How rows are cut up: into shards, which are tasks, and blocks, which features are made of.

That follows from the data and the system that is solved, so that results do not depend on who
computes them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from streamkern._typing import Source
from streamkern.sources import Shard

# A block of features should be tall enough for the product and small beside the Gram matrix.
BLOCK_BYTES = 128 << 20
_BLOCK_ROWS = (1024, 8192)
# The features of a row that has no more of them than fit a block of most rows.
NARROW_BYTES = BLOCK_BYTES // _BLOCK_ROWS[1]
# Of rows alone, so many that what is not computing hardly counts.
_COLUMN_BLOCK_BYTES, _COLUMN_BLOCK_ROWS = 8 << 20, 1 << 16
# The fewest rows where they have more targets than features: products with those are wide.
_WIDE_ROWS = 256
# A shard is what a lost worker costs; many shards cost merges.
_SHARDS = 256
SHARD_ROWS = (32768, 1 << 20)
# Squared bytes of features of all its rows, by which products take minutes of one core.
_SHARD_WORK = 1 << 49
# Folds of fewer shards than this are too uneven to choose by; rows are dealt then.
SHARDS_A_FOLD = 3
# What a target of one row takes in the blocks that are read, and as it enters products.
TARGET_BYTES = 56


class Chunks(NamedTuple):
    """The shards of a pass, and the most rows of a shard and of a block."""

    shards: Sequence[Shard]
    shard_rows: int
    block_rows: int

    @classmethod
    def of(
        cls, source: Source, shard_rows: int, block_rows: int, *, even: bool = False
    ) -> "Chunks":
        """Return the shards, and blocks that are no longer than the longest shard.

        The last shards of a segment are smaller, unless they are `even`.
        """
        longest = max(shard.n_rows for shard in source.shards(shard_rows, block_rows))
        block_rows = min(block_rows, longest)
        fewest = shard_rows if even else block_rows
        return cls(source.shards(shard_rows, fewest), shard_rows, block_rows)


def chunk_sizes(source: Source, feature_bytes: int) -> tuple[int, int]:
    """Return the rows of a shard and of a block, given the bytes of one row of features."""
    (fewest, most), target_bytes = _BLOCK_ROWS, TARGET_BYTES * source.n_targets
    if target_bytes > feature_bytes:
        feature_bytes, fewest = target_bytes, _WIDE_ROWS
    block_rows = _of_chunks(min(max(BLOCK_BYTES // feature_bytes, fewest), most), source)
    fewest, most = SHARD_ROWS
    most = max(min(most, _SHARD_WORK // feature_bytes**2), fewest)
    shard_rows = min(max(-(-source.n_samples // _SHARDS), fewest), most)
    shard_rows = -(-shard_rows // block_rows) * block_rows
    if source.loads_whole_shards:
        loaded = max(source.row_bytes, 8 * source.n_targets)
        shard_rows = min(shard_rows, max(BLOCK_BYTES // loaded, _chunk_rows(source)))
    return shard_rows, block_rows


def column_block_rows(source: Source) -> int:
    """Return the rows of a block that no features are made of."""
    row_bytes = max(source.row_bytes, 8 * source.n_targets)
    rows = min(_COLUMN_BLOCK_BYTES // row_bytes, _COLUMN_BLOCK_ROWS)
    return _of_chunks(max(rows, 1), source)


def _of_chunks(block_rows: int, source: Source) -> int:
    """Return as many rows as whole chunks have, if a block is larger than one."""
    chunk_rows = _chunk_rows(source)
    return block_rows - block_rows % chunk_rows if 1 < chunk_rows <= block_rows else block_rows


def _chunk_rows(source: Source) -> int:
    return max(segment.chunk_rows for segment in source.segments())
