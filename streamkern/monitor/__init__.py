"""Watching jobs: what was told of them, in the terminal and on the dashboard."""

from streamkern.monitor.log_lines import progress

__all__ = ["progress"]
