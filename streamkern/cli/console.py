"""What commands print: results, notes and errors, for people and for programs."""

import errno
import functools
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from streamkern.cli.help_pages import Command
from streamkern.cli.signals import end_at_once, raised, stoppable
from streamkern.errors import StreamkernError, StreamkernWarning, first_line
from streamkern.errors.formatting import json_text, printable
from streamkern.errors.urls import without_secrets

Function = Callable[..., Any]

# What standard output says where it cannot be written: full, gone, too large.
_UNWRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


@dataclass(kw_only=True)
class Console:
    """Output of a command: text on standard output for people, or one line of JSON for programs.

    With `quiet` there is no progress on standard error; with `log_json` all there is JSON.
    """

    as_json: bool
    quiet: bool
    log_json: bool = False

    def line(self, text: str = "") -> None:
        if not self.as_json:
            click.echo(printable(text))

    def table(
        self, title: str, rows: Sequence[Sequence[str]], header: Sequence[str] | None = None
    ) -> None:
        """Print a table for people: pairs of name and value, or columns under a header."""
        if self.as_json:
            return
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        is_wide = bool(header)
        table = Table(box=SIMPLE_HEAD if header else None, show_header=is_wide, padding=(0, 1))
        for i in range(max((len(row) for row in rows), default=0)):
            table.add_column(
                Text("\n".join(map(printable, header[i].split("\n"))) if header else ""),
                justify="right" if is_wide and i > 0 else "left",
                overflow="fold",
                no_wrap=is_wide,
            )
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        # A file or a pipe has no width of its own.
        console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
        if header:
            # Lines that a narrow terminal breaks still hold every digit.
            console.width = max(console.width, Console(width=1000).measure(table).maximum)
        console.print(Text(printable(title), "bold"))
        console.print(table)

    def result(self, values: Mapping[str, Any]) -> None:
        """Print the result for programs, as the last line."""
        if self.as_json:
            click.echo(json_text(values))

    def note(self, text: str, kind: str = "note") -> None:
        """Print a note, or an error, on standard error, for everyone."""
        text = without_secrets(text)
        if self.log_json:
            from streamkern.monitor.log_lines import write_event

            write_event(kind.lower(), {"text": text})
        else:
            click.echo(f"{kind}: {printable(text)}", err=True)


def command(
    *options: Callable[[Any], Any], examples: Sequence[str] = ()
) -> Callable[[Function], Command]:
    """Return what makes a function a command with these options and those of all commands.

    These are --json, --quiet, --log-json and --debug; errors become a sentence.
    """

    def make(function: Function) -> Command:
        made: Any = _run(function)
        for option in reversed((*options, *_COMMON)):
            made = option(made)
        command = click.command(cls=Command, context_settings={"show_default": True})(made)
        command.examples = examples
        return command

    return make


_COMMON = (
    click.option("--json", "as_json", is_flag=True, help="End with one JSON object on one line."),
    click.option("--quiet", is_flag=True, help="Show no progress."),
    click.option("--log-json", is_flag=True, help="Log in JSON, a line an event."),
    click.option("--debug", is_flag=True, help="Show the traceback of an error."),
)


def _run(function: Function) -> Function:
    @functools.wraps(function)
    def run(
        *args: Any, as_json: bool, quiet: bool, log_json: bool, debug: bool, **kwargs: Any
    ) -> None:
        console = Console(as_json=as_json, quiet=quiet, log_json=log_json)
        try:
            from streamkern.runtime.memory import check_addresses

            check_addresses()
            with stoppable(), warnings.catch_warnings():
                warnings.simplefilter("default", StreamkernWarning)
                warnings.showwarning = _as_note(console)
                function(*args, console=console, **kwargs)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            stopped = raised()
            if stopped is not None:  # of which others may have made an error of their own
                end_at_once()
            if stopped is not None or isinstance(error, KeyboardInterrupt):
                folder = kwargs.get("checkpoint")
                again = f"; run the same command again to go on from {folder}, where finished sums"
                more = "" if folder is None else f"{again} are kept"
                sentence = f"interrupted; the output was not written{more}."
                status = 130 if stopped is None else stopped.exit_status
            elif isinstance(error, BrokenPipeError):
                raise  # who reads has read enough, which click says by its exit status
            else:
                sentence, status = _sentence(error), getattr(error, "exit_status", 1)
            if debug:
                click.echo(without_secrets(traceback.format_exc()), err=True)
            console.note(sentence, "Error")
            sys.exit(status)

    return run


def _sentence(error: BaseException) -> str:
    if isinstance(error, StreamkernError):
        from streamkern.cli.parameter_options import with_flags

        return with_flags(str(error))
    if isinstance(error, OSError) and error.errno in _UNWRITTEN and not error.filename:
        return (
            f"what this command prints cannot be written ({error.strerror}); send it elsewhere, "
            f"files it named are whole."
        )
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many files are open; raise ulimit -n, or take fewer workers."
    if isinstance(error, MemoryError):
        return "out of memory; take fewer components, or shut other programs."
    return (
        f"unexpected {type(error).__name__} ({first_line(error)}); run again with --debug and "
        f"report what it prints."
    )


def _as_note(console: Console) -> Callable[..., None]:
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
        if issubclass(category, StreamkernWarning):
            from streamkern.cli.parameter_options import with_flags

            console.note(with_flags(str(message)))
        else:
            usual(message, category, *rest, **named)

    return show
