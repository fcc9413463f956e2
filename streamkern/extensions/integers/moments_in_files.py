"""Sums of integers in moments files: products in 32 bits, with others above these if need be."""

from typing import Any

import numpy as np

from streamkern._typing import Group
from streamkern.extensions.integers.integer_moments import IntegerMoments
from streamkern.statistics import Triangle
from streamkern.storage.untrusted import finite_array, finite_arrays


def written(part: IntegerMoments) -> dict[str, Any]:
    """Return the products of a fold by name: their lower 32 bits, and the upper if there are."""
    triangle: Any = part.gram
    gram = triangle.packed()
    lower = gram.astype(np.int32)  # which keeps the lower bits
    upper = (gram - lower) >> 32
    if not upper.any():
        return {"gram": lower}
    narrow = np.int8 if np.abs(upper).max() < 128 else np.int32
    return {"gram": lower, "gram_upper": upper.astype(narrow)}


def read(group: Group, part: IntegerMoments) -> dict[str, Any]:
    """Return the sums of a fold by name, but for its weight and rows."""
    D = part.feature_map.n_components
    words = {name: getattr(part, name).shape for name in ("cross", "target", "target_sum")}
    gram = finite_array(group, "gram", (D * (D + 1) // 2,), "i").astype(np.int64)
    if "gram_upper" in group:
        gram += finite_array(group, "gram_upper", gram.shape, "i").astype(np.int64) << 32
    return {"gram": Triangle.unpacked(gram), **finite_arrays(group, words, "i")}
