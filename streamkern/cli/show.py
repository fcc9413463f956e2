"""`streamkern show`."""

import click

from streamkern.cli.console import Console, command
from streamkern.cli.saving import moments_report, show_search
from streamkern.errors import ModelFileError, StreamkernError, first_line


@command(click.argument("model"), examples=["streamkern show model.h5"])
def show(console: Console, model: str) -> None:
    """Show the card of a model: what it was fitted on, how, and with what result.

    Of a file of moments or of principal components, show which rows it is of, and how they were
    read.
    """
    from streamkern.estimators.loading import read_fitted
    from streamkern.models.data_moments import moments_header
    from streamkern.report import report_rows as words
    from streamkern.report.trial_tables import round_table
    from streamkern.storage.codec import BOOSTED, COMPONENTS, MOMENTS, kind_of
    from streamkern.storage.untrusted import WRONG_VALUES

    kind, options = "Model", {}
    try:
        held = kind_of(model)
        if held is MOMENTS:
            found = moments_header(model)
            report, data = moments_report(found, model), found.report["data"]
            rows = [*words.moments_rows(report), ("data", words.data_words(data))]
            console.table(f"Moments {model}", rows)
            console.result(report | {"data": data})
            return
        card = read_fitted(model, with_equations=False)[1]
        report, rows_of = card["report"], words.model_rows
        if held is COMPONENTS:
            kind, rows_of = "Principal components", words.component_rows
        elif held is BOOSTED:
            options, rows_of = card["base"], words.boosted_rows
        else:
            options = card["options"]
        shown = words.card_rows(card, rows_of(report), options.get("random_state"))
        console.table(f"{kind} {model}", shown)
        if report.get("rounds"):
            console.table("Training error after every round", **round_table(report)._asdict())
        if report.get("tuning"):
            show_search(console, report)
        console.result(card)
    except StreamkernError:
        raise
    except WRONG_VALUES as error:
        raise ModelFileError(f"{model} is damaged ({first_line(error)}); copy it again.") from error
