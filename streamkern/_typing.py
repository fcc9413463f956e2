"""Names for the types that signatures share."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import h5py

    from streamkern import sources

Floats: TypeAlias = NDArray[np.float64]
Array: TypeAlias = NDArray[Any]
# In words, for who computes with these but must not load what reads files.
Group: TypeAlias = "h5py.Group"  # which a file is, too
Block: TypeAlias = "sources.Block"
Shard: TypeAlias = "sources.Shard"
Source: TypeAlias = "sources.Source"
