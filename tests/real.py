"""The real data sets that some tests read, and are skipped without."""

import os
from pathlib import Path

import numpy as np
import pytest

DATA = Path(
    os.environ.get("STREAMKERN_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no real data at {DATA}; set STREAMKERN_DATA"
)


def load(name):
    """The arrays of a data set."""
    with np.load(DATA / name / "data.npz", allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}
