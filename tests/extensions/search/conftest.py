"""Rungs of few features, for searches."""

import pytest


@pytest.fixture
def few_components(monkeypatch):
    """Let the rungs have an eighth, a quarter and a half of the features, however few these are."""
    monkeypatch.setattr("streamkern.extensions.search.halving._FEWEST_COMPONENTS", 8)
