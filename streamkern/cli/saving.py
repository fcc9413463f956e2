"""What commands save, models and moments, with their reports and the command that made them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamkern.cli.options import given_options
from streamkern.errors.urls import shown, without_secrets
from streamkern.registry import extension

if TYPE_CHECKING:
    from streamkern.cli.console import Console
    from streamkern.models.data_moments import DataMoments
    from streamkern.parameters.fit_report import FitReport
    from streamkern.sources import Source

# Options whose values may look like absolute paths.
_DATASETS = {"x", "y", "weights"}
# Titles of commands that read no rows, and what a pass over rows took.
_WITHOUT_ROWS, _OF_A_PASS = {"Solved", "Merged"}, {"seconds", "memory of a worker"}


def save_model(
    console: Console, model: Any, options: dict[str, Any], source: Source | None = None
) -> None:
    """Save a model and write its report if one is wanted; the model stays whatever comes."""
    out, force = options["out"], options["force"]
    model.save(out, compact=options.get("compact", False), force=force)
    if options.get("report") is not None:
        names = {"title": Path(out).name, "command": command_line()}
        try:
            page = extension("report", "html_page")
            page.write_report(model, options["report"], source, **names, force=force)
        except BaseException:
            console.note(f"the model is saved in {out}; only the report is missing.")
            raise
    drop_checkpoint(options.get("checkpoint"))


def drop_checkpoint(folder: str | None) -> None:
    from streamkern.storage.checkpoints import remove_checkpoint

    if folder is not None:
        remove_checkpoint(folder)


def show_model(console: Console, title: str, model: Any, path: str) -> None:
    written: FitReport = {"model": path}
    console.table(title, _of_command(title, model.rows_of(model.report | written)))
    console.result(json_report(model.report, written))


def json_report(report: FitReport, written: FitReport) -> FitReport:
    """Return a report as commands print it: without its files, but with the one written."""
    printed = report.copy()
    printed.pop("data", None)
    return printed | written


def save_moments(
    console: Console, title: str, found: DataMoments, path: str, *, force: bool
) -> None:
    from streamkern.models.report_rows import moments_rows

    found.save(path, force=force)
    report = moments_report(found, path)
    console.table(title, _of_command(title, moments_rows(report)))
    console.result(report)


def _of_command(title: str, rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what is told of a command: where it read no rows, not what those took before."""
    return [row for row in rows if title not in _WITHOUT_ROWS or row[0] not in _OF_A_PASS]


def moments_report(found: DataMoments, path: str) -> FitReport:
    from streamkern.models.report_facts import kernel_facts

    return json_report(found.report, kernel_facts(found.kernel)) | {
        "n_components": found.feature_map.n_components,
        "bytes": Path(path).stat().st_size,
        "moments": path,
    }


def command_line() -> str:
    """Return the command that is running, as a shell reads it: what was given, and no more.

    What may be secret in a URL is left out, and the folders of absolute paths.
    """
    context = click.get_current_context()
    words, arguments = ["streamkern", context.info_name or ""], []
    for parameter in given_options(context.params):
        name = parameter.name or ""
        value = context.params[name]
        values = [str(each) for each in (value if isinstance(value, tuple) else (value,))]
        if name not in _DATASETS:
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
    """Return a word as a shell reads it: where it cannot be printed, as numbers of bytes."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(f"\\x{byte:02x}" for byte in os.fsencode(word)) + "'"
