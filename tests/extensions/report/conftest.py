"""What tests of other commands have, too; and pictures that are drawn without being laid out."""

import pytest
from cli.conftest import no_reading

__all__ = ["no_reading"]


@pytest.fixture(autouse=True)
def no_layout(monkeypatch):
    """Leave out what takes half of a picture's time; pages that a module shares have it."""
    engine = "matplotlib.layout_engine.ConstrainedLayoutEngine.execute"
    monkeypatch.setattr(engine, lambda *_: None)
