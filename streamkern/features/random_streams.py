"""Random numbers of a seed, in streams that are kept apart: more of one never changes another."""

from __future__ import annotations

import numpy as np


def stream(seed: int, *key: int) -> np.random.Generator:
    """Return the random numbers of a seed that are for one use."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
