"""Memory to work in is taken once."""

import numpy as np

from streamkern.runtime.scratch import Scratch


def test_scratch_gives_the_same_memory_for_the_same_name():
    scratch = Scratch()
    first = scratch.array("a", (3, 4), np.float32)
    assert np.shares_memory(first, scratch.array("a", (2, 5), np.float32))
    assert not np.shares_memory(first, scratch.array("b", (3, 4), np.float32))
    assert scratch.array("a", (30, 4), np.float32).shape == (30, 4)
    assert scratch.array("a", (3,), np.float64).dtype == np.float64
