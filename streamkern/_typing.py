"""Names for the array types that signatures share."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Array: TypeAlias = NDArray[Any]
