"""`streamkern show`."""

from __future__ import annotations

import click

from streamkern.cli.console import Say, command
from streamkern.cli.saving import moments_report, show_search
from streamkern.errors import ModelFileError, StreamkernError, first_line


@command(click.argument("model"))
def show(say: Say, model: str) -> None:
    """Show the card of a model: what it was fitted on, how, and with what result.

    Of a file of moments or of principal components, show which rows it is of, and how they were
    read.
    """
    from streamkern.models.loading import read_fitted
    from streamkern.report.report_rows import boosted_rows, card_rows, component_rows, model_rows
    from streamkern.report.trial_tables import round_table
    from streamkern.storage import holds_components, holds_ensemble, holds_moments
    from streamkern.storage.untrusted import WRONG_VALUES

    kind, options = "Model", {}
    try:
        if holds_moments(model):
            _show_moments(say, model)
            return
        if holds_components(model):
            kind, card, rows = "Principal components", read_fitted(model)[1], component_rows
        elif holds_ensemble(model):
            card, rows = read_fitted(model)[1], boosted_rows
            options = card["base"]
        else:
            card, rows = read_fitted(model, with_equations=False)[1], model_rows
            options = card["options"]
        report = card["report"]
        say.table(f"{kind} {model}", card_rows(card, rows(report), options.get("random_state")))
        if report.get("rounds"):
            say.table("Training error after every round", **round_table(report)._asdict())
        if report.get("tuning"):
            show_search(say, report)
        say.result(card)
    except StreamkernError:
        raise
    except WRONG_VALUES as error:
        raise ModelFileError(f"{model} is damaged ({first_line(error)}); copy it again.") from error


def _show_moments(say: Say, path: str) -> None:
    from streamkern.models.data_moments import moments_header
    from streamkern.report.report_rows import Row, data_words, moments_rows

    found = moments_header(path)
    report, data = moments_report(found, path), found.report["data"]
    say.table(f"Moments {path}", [*moments_rows(report), Row("data", data_words(data))])
    say.result(report | {"data": data})
