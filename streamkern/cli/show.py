"""`streamkern show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamkern.cli.common_options import Say, common
from streamkern.errors import ModelFileError, StreamkernError, first_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamkern.report.report_rows import Row


@click.command()
@click.argument("model")
@common
def show(say: Say, model: str) -> None:
    """Show the card of a model: what it was fitted on, how, and with what result.

    Of a file of moments or of principal components, show which rows it is of, and how they were
    read.
    """
    from streamkern.models.loading import read_fitted
    from streamkern.report.report_rows import boosted_rows, component_rows, model_rows
    from streamkern.storage import holds_components, holds_ensemble, holds_moments
    from streamkern.storage.untrusted import WRONG_VALUES

    try:
        if holds_moments(model):
            _show_moments(say, model)
        elif holds_components(model):
            card = read_fitted(model)[1]
            _show_card(say, f"Principal components {model}", card, component_rows)
        elif holds_ensemble(model):
            card = read_fitted(model)[1]
            _show_card(say, f"Model {model}", card, boosted_rows, card["base"])
        else:
            card = read_fitted(model, with_equations=False)[1]
            _show_card(say, f"Model {model}", card, model_rows, card["options"])
    except StreamkernError:
        raise
    except WRONG_VALUES as error:
        raise ModelFileError(f"{model} is damaged ({first_line(error)}); copy it again.") from error


def _show_card(
    say: Say,
    title: str,
    card: dict[str, Any],
    rows: Callable[[dict[str, Any]], list[Row]],
    options: dict[str, Any] | None = None,
) -> None:
    """Print the card of a file, with the options that its map was drawn by."""
    from streamkern.cli.tune import show_search
    from streamkern.report.report_rows import card_rows
    from streamkern.report.trial_tables import round_table

    report = card["report"]
    seed = None if options is None else options["random_state"]
    say.table(title, card_rows(card, rows(report), seed))
    if report.get("rounds"):
        say.words(round_table(report), "Training error after every round")
    if report.get("tuning"):
        show_search(say, report)
    say.result(card)


def _show_moments(say: Say, path: str) -> None:
    from streamkern.cli.moments import moments_report
    from streamkern.models.data_moments import moments_header
    from streamkern.report.report_rows import Row, data_words, moments_rows

    found = moments_header(path)
    report, data = moments_report(found, path), found.report["data"]
    say.table(f"Moments {path}", [*moments_rows(report), Row("data", data_words(data))])
    say.result(report | {"data": data})
