"""Watching jobs: what was told of them, in the terminal, on the dashboard and as metrics."""

from streamkern.monitor.log_lines import progress

__all__ = ["progress"]
