"""What can go wrong, as a tree: every message says what was expected, found, and to be done."""

import warnings
from sys import _getframe
from traceback import walk_stack
from typing import Any

from streamkern.errors.urls import without_secrets


def first_line(error: BaseException) -> str:
    """Return what an error of another library says first, for a sentence of one's own."""
    line = without_secrets(str(error)).strip().partition("\n")[0]
    return line.rstrip(".")[:200] or type(error).__name__


class StreamkernError(Exception):
    """Base of every error that streamkern raises on purpose; none tells secrets of a URL."""

    exit_status = 1

    def __init__(self, *texts: object) -> None:
        super().__init__(*(without_secrets(t) if isinstance(t, str) else t for t in texts))


class ParameterError(StreamkernError, ValueError):
    """An option has a value that it cannot have."""

    exit_status = 2


class DataError(StreamkernError, ValueError):
    """The rows, or the files that hold them, cannot be used as they are."""

    row: int | None = None  # place in the source that is still to be named


class ModelFileError(StreamkernError, ValueError):
    """A file is not a model, or not one that this version can read."""


class OutputError(StreamkernError, OSError):
    """An output file cannot be written."""


class InsufficientMemoryError(StreamkernError, MemoryError):
    """A job needs more memory than it may use; found before the first read."""


class SingularSystemError(StreamkernError, ArithmeticError):
    """The ridge system has no unique solution at the penalty asked for."""


class OverflowedError(StreamkernError, ArithmeticError):
    """Sums over the rows are too large for the precision they are made in."""

    rows: tuple[int, int] | None = None  # the first, and the one after the last, that overflowed


class ClusterError(StreamkernError, RuntimeError):
    """A Dask cluster cannot be started or reached."""


class WorkersLostError(ClusterError):
    """Workers died again and again at one task.

    `tasks` holds its key, and those of tasks that were on the same workers as often; `what` is the
    task in words.
    """

    def __init__(self, tasks: tuple[str, ...], times: int, what: str | None = None) -> None:
        self.tasks, self.times, self.what = tasks, times, what or repr(tasks[0])
        super().__init__(
            f"the workers that ran {self.what} died {times} times; most often they ran out of "
            f"memory, take fewer components or fewer workers a machine."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Go through a pickle, which would make it from its message."""
        return WorkersLostError, (self.tasks, self.times, self.what)


class CheckpointError(StreamkernError, RuntimeError):
    """A folder of checkpoints belongs to another job, is in use, or cannot be read."""


class IncompletePassError(StreamkernError, RuntimeError):
    """The rows that a pass accounts for are not the rows of the source."""


class MissingExtensionError(StreamkernError, ImportError):
    """What was asked for is of an extension that is not installed."""


class StreamkernWarning(UserWarning):
    """Something was decided that the user should know of."""


def warn(sentence: str) -> None:
    """Warn of what was decided, at the line that called this package."""
    names = [frame.f_globals["__name__"].partition(".")[0] for frame, _ in walk_stack(_getframe())]
    level = len(names) - names[::-1].index(__name__.partition(".")[0])
    while names[level : level + 1] == ["contextlib"]:  # of a method that is decorated
        level += 1
    warnings.warn(sentence, StreamkernWarning, stacklevel=level + 1)
