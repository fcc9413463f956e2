"""How the command line takes a parameter."""

from collections.abc import Callable, Collection
from dataclasses import field
from typing import Any, NamedTuple


class Option(NamedTuple):
    """How the command line takes a parameter: text of a form, a choice, a number, or a flag.

    A flag turns its field around: one whose default is True is named by what it takes away.
    """

    help: str
    name: str | None = None  # without dashes, where the field has another
    form: str | None = None  # alternatives: words as they are, others in capitals
    choices: Collection[str] = ()  # beside which there may be a form
    least: int | None = None
    listed: Callable[[], str] | None = None  # the values, where the help goes on with them
    extension: str | None = None  # without which the option is not there


def option(default: Any, *args: Any, **named: Any) -> Any:
    """Return a field that is an option of commands too."""
    return field(default=default, metadata={"option": Option(*args, **named)})
