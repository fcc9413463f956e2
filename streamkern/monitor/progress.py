"""Progress of jobs on standard error: live where that is a terminal, else in plain lines."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streamkern.errors import ParameterError
from streamkern.monitor.jobs import Jobs
from streamkern.runtime.events import observed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern.monitor.log_lines import Lines
    from streamkern.monitor.terminal import LiveLines
    from streamkern.runtime.events import Event

STYLES = ("auto", "live", "plain", "json")


@contextmanager
def progress(style: str = "auto") -> Iterator[None]:
    """Show on standard error how every fit, prediction and other job inside comes along.

    Jobs and passes that are over within a second are not mentioned.

    Parameters
    ----------
    style : {'auto', 'live', 'plain', 'json'}
        'live' lines are written anew four times a second; 'plain' ones are added every ten seconds,
        and more rarely later; 'json' is one object a line, for programs.  'auto' is 'live' on a
        terminal, else 'plain'.

    Raises
    ------
    ParameterError
        If there is no such style.

    Examples
    --------
    >>> import numpy as np, streamkern
    >>> X, y = np.random.default_rng(0).random((1000, 3)), np.arange(1000.0)
    >>> with streamkern.progress():
    ...     model = streamkern.RandomFeatureRidge(n_components=64).fit(X, y)
    """
    if style not in STYLES:
        raise ParameterError(f"style must be one of {', '.join(STYLES)}, not {style!r}; take one.")
    if style == "auto":
        style = "live" if sys.stderr.isatty() else "plain"
    view = _view(style)

    def hear(event: Event) -> None:
        view.jobs.hear(event)
        view.told(event)

    with view, observed(hear):
        yield


def _view(style: str) -> LiveLines | Lines:
    if style == "live":
        from streamkern.monitor.terminal import LiveLines  # noqa: PLC0415  rich takes long

        return LiveLines(Jobs())
    from streamkern.monitor.log_lines import JsonLines, PlainLines  # noqa: PLC0415

    return JsonLines(Jobs()) if style == "json" else PlainLines(Jobs())
