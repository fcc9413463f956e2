"""`streamkern show`."""

import click

from streamkern.cli.console import Console, command
from streamkern.cli.saving import moments_report
from streamkern.errors import ModelFileError, StreamkernError, first_line


@command(click.argument("model"), examples=["streamkern show model.h5"])
def show(console: Console, model: str) -> None:
    """Show the card of a model: what it was fitted on, how, and with what result.

    Of a file of moments or of principal components, show which rows it is of, and how they were
    read.
    """
    from streamkern.estimators.loading import read_fitted
    from streamkern.models.data_moments import moments_header
    from streamkern.models.report_rows import card_rows, data_words, moments_rows
    from streamkern.registry import tables
    from streamkern.storage.codec import MOMENTS, kind_of
    from streamkern.storage.untrusted import WRONG_VALUES

    try:
        if kind_of(model) is MOMENTS:
            found = moments_header(model)
            report, data = moments_report(found, model), found.report["data"]
            rows = [*moments_rows(report), ("data", data_words(data))]
            console.table(f"Moments {model}", rows)
            console.result(report | {"data": data})
            return
        fitted, card = read_fitted(model, with_equations=False)
        report, options = card["report"], card[fitted.options_in] if fitted.options_in else {}
        shown = card_rows(card, fitted.rows_of(report), options.get("random_state"))
        console.table(f"{fitted.title} {model}", shown)
        for table in tables(report).values():
            console.table(**table._asdict())
        console.result(card)
    except StreamkernError:
        raise
    except WRONG_VALUES as error:
        raise ModelFileError(f"{model} is damaged ({first_line(error)}); copy it again.") from error
