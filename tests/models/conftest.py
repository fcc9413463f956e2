"""What tests of models have in common."""

import pytest

from streamkern.parameters import plan


@pytest.fixture
def small_shards(monkeypatch):
    """Cut rows into shards of 200, and these into blocks of 100."""
    monkeypatch.setattr(plan, "_SHARD_ROWS", (200, 200))
    monkeypatch.setattr(plan, "_BLOCK_ROWS", (100, 100))
