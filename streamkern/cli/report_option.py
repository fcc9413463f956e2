"""The option --report, and the command line that a report repeats."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamkern.errors.urls import shown, without_secrets

if TYPE_CHECKING:
    from streamkern.cli.common_options import Say
    from streamkern.sources import Source


# Options whose values may look like absolute paths.
_DATASETS = {"x", "y", "weights"}


def report_option(command: Any) -> Any:
    """Give a command a report to write."""
    return click.option(
        "--report",
        metavar="FILE.html",
        help="Write what was fitted, how well it does on rows left out, and what it took.",
    )(command)


def folders_option(command: Any) -> Any:
    """Give a command the choice of whether what it writes names folders."""
    return click.option(
        "--folders",
        is_flag=True,
        help="Say in models and reports in which folders the files are, not their names alone.",
    )(command)


def write_report(say: Say, model: Any, options: dict[str, Any], source: Source | None) -> None:
    """Write the report of a model that is saved, if one is wanted; the model stays whatever comes.

    Parameters
    ----------
    source : Source, optional
        The rows, for those commands that have them.
    """
    if options["report"] is None:
        return
    from streamkern import report

    try:
        report.write_report(
            model,
            options["report"],
            source,
            title=Path(options["out"]).name,
            command=command_line(),
            force=options["force"],
        )
    except BaseException:
        say.note(f"the model is saved in {options['out']}; only the report is missing.")
        raise


def command_line() -> str:
    """Return the command that is running, as a shell reads it: what was given, and no more.

    What may be secret in a URL is left out, and the folders of absolute paths unless wanted.
    """
    context = click.get_current_context()
    words, arguments = ["streamkern", context.info_name or ""], []
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        values = [str(each) for each in (value if isinstance(value, tuple) else (value,))]
        if name not in _DATASETS and not context.params.get("folders"):
            values = [Path(each).name if Path(each).is_absolute() else each for each in values]
        if isinstance(parameter, click.Argument):
            arguments += values
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            words.append(parameter.opts[0])
        else:
            words += [word for each in values for word in (parameter.opts[0], each)]
    # Whatever begins with a dash would be taken for an option.
    dashed = any(argument.startswith("-") for argument in arguments)
    words += ["--"] * dashed + arguments
    return " ".join(quoted(without_secrets(shown(word))) for word in words)


def quoted(word: str) -> str:
    """Return a word as a shell reads it, with what cannot be printed as numbers of bytes."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))
