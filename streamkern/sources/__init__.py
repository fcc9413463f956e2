"""Where rows come from: HDF5 files and arrays, cut into shards and read in blocks."""

from streamkern.sources.ahead import reading_ahead
from streamkern.sources.arrays import ArraySource, as_source
from streamkern.sources.base import Block, Reader, Shard, Source
from streamkern.sources.hdf5 import HDF5Source, open_hdf5

__all__ = [
    "ArraySource",
    "Block",
    "HDF5Source",
    "Reader",
    "Shard",
    "Source",
    "as_source",
    "open_hdf5",
    "reading_ahead",
]
