"""The folder that commands are run in: one for each test, with small rows in data.h5."""

import pytest
from commandline import rows, write

from streamkern.sources.shard_reader import HDF5Reader


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("data.h5", *rows())
    return tmp_path


@pytest.fixture
def no_reading(monkeypatch):
    monkeypatch.setattr(HDF5Reader, "blocks", lambda *_: pytest.fail("rows were read"))
