"""Rows, and what a fit of them must yield wherever it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dask
import pytest
import yaml
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


@pytest.fixture
def cluster_file(tmp_path):
    """Write a cluster file: a valid one, changed by keywords; None leaves a key out."""

    def write(text: str | None = None, **changes: object) -> Path:
        content = {"version": 1, "module": "dask.distributed", "class": "LocalCluster"}
        changes = {key.rstrip("_"): value for key, value in changes.items()}
        content = {k: v for k, v in (content | changes).items() if v is not None}
        path = tmp_path / "cluster.yaml"
        path.write_text(yaml.safe_dump(content) if text is None else text)
        return path

    return write
