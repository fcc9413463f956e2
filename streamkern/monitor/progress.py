"""A progress bar on standard error."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from streamkern.observing import observed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import TaskID


_SECONDS_WORTH_A_BAR = 1.0


class _Bar:
    """Shows the pass under way as one bar; an `Observer`."""

    def __init__(self, bars: Progress) -> None:
        self.bars = bars
        self.task: TaskID | None = None
        self.begun = 0.0

    def started(self, label: str, n_rows: int) -> None:
        """Begin a bar."""
        self.task = self.bars.add_task(label, total=n_rows)
        self.begun = time.monotonic()

    def advanced(self, n_rows: int) -> None:
        """Move the bar on."""
        if self.task is not None:
            self.bars.advance(self.task, n_rows)

    def finished(self) -> None:
        """Leave the bar as it stands, or take it away where nobody had to wait for it."""
        if self.task is not None and time.monotonic() - self.begun < _SECONDS_WORTH_A_BAR:
            self.bars.remove_task(self.task)
        self.task = None


@contextmanager
def progress() -> Iterator[None]:
    """Show a progress bar on standard error for every pass that runs inside the context.

    Examples
    --------
    >>> import numpy as np, streamkern
    >>> X, y = np.random.default_rng(0).random((1000, 3)), np.arange(1000.0)
    >>> with streamkern.progress():
    ...     model = streamkern.RandomFeatureRidge(n_components=64).fit(X, y)
    """
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars, observed(_Bar(bars)):
        yield
