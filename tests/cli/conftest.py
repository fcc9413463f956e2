"""What commands are run with."""

import pytest

from streamkern.sources.shard_reader import HDF5Reader


@pytest.fixture
def no_reading(monkeypatch):
    monkeypatch.setattr(HDF5Reader, "blocks", lambda *_: pytest.fail("rows were read"))
