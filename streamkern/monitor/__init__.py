"""Watching a pass: so far a progress bar in the terminal."""

from streamkern.monitor.progress import progress

__all__ = ["progress"]
