"""Rows, and what a fit of them must yield wherever it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dask
import pytest
from places import N_COMPONENTS, write_rows

import streamkern

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of rows that are several shards."""
    path = tmp_path_factory.mktemp("rows") / "rows.h5"
    write_rows(path)
    return path


@pytest.fixture(scope="session")
def expected(rows: Path) -> bytes:
    """The bits of the coefficients."""
    model = streamkern.RandomFeatureRidge(n_components=N_COMPONENTS, alpha=0.1)
    with dask.config.set(scheduler="synchronous"):
        return model.fit(streamkern.open_hdf5(str(rows))).coef_.tobytes()
