"""Rows, and what a fit of them must yield wherever it runs: those of other clusters."""

from engine.conftest import expected, rows  # noqa: F401  as fixtures
