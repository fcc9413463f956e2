"""Models that commands write, their reports, and the command line that a report repeats."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamkern.cli.common_options import drop_checkpoint, given_options
from streamkern.errors.urls import shown, without_secrets

if TYPE_CHECKING:
    from streamkern.cli.common_options import Say
    from streamkern.sources import Source

# Options whose values may look like absolute paths.
_DATASETS = {"x", "y", "weights"}

report_option = click.option(
    "--report",
    metavar="FILE.html",
    help="Write what was fitted, how well it does on rows left out, and what it took.",
)
folders_option = click.option(
    "--folders",
    is_flag=True,
    help="Say in models and reports in which folders the files are, not their names alone.",
)


def save_model(say: Say, model: Any, options: dict[str, Any], source: Source | None = None) -> None:
    """Save a model and write its report if one is wanted; the model stays whatever comes."""
    out, force = options["out"], options["force"]
    more = {"compact": options["compact"]} if "compact" in options else {}
    model.save(out, force=force, **more)
    if options["report"] is not None:
        from streamkern.report.html_page import write_report

        names = {"title": Path(out).name, "command": command_line()}
        try:
            write_report(model, options["report"], source, **names, force=force)
        except BaseException:
            say.note(f"the model is saved in {out}; only the report is missing.")
            raise
    drop_checkpoint(options.get("checkpoint"))


def show_model(say: Say, title: str, model: Any, path: str) -> None:
    """Print what a model file holds, for people and for programs."""
    from streamkern.report.report_rows import model_rows

    report = json_report(model.report, model=path)
    say.table(title, model_rows(report))
    say.result(report)


def json_report(report: dict[str, Any], **file: str) -> dict[str, Any]:
    """Return a report as commands print it: without its files, but with the one written."""
    return {key: value for key, value in report.items() if key != "data"} | file


def command_line() -> str:
    """Return the command that is running, as a shell reads it: what was given, and no more.

    What may be secret in a URL is left out, and the folders of absolute paths unless wanted.
    """
    context = click.get_current_context()
    words, arguments = ["streamkern", context.info_name or ""], []
    for parameter in given_options(context.params):
        name = parameter.name or ""
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
