"""Where rows come from: HDF5 files and arrays, cut into shards and read in blocks."""

from streamkern.sources.arrays import ArraySource, as_source, labelled_rows
from streamkern.sources.base import Block, Reader, Segment, Shard, Source
from streamkern.sources.hdf5 import HDF5Source, open_hdf5
from streamkern.sources.read_ahead import reading_ahead

__all__ = [
    "ArraySource", "Block", "HDF5Source", "Reader", "Segment", "Shard", "Source",
    "as_source", "labelled_rows", "open_hdf5", "reading_ahead",
]  # fmt: skip
