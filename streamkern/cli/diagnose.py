"""`streamkern diagnose`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import place_of
from streamkern.cli.parameter_options import parameter_options
from streamkern.cli.row_files import opened_rows


@command(
    click.argument("model"),
    *shared.data_options,
    shared.delimiter_option,
    shared.count_option(
        "--largest", 1, 10, "How many rows of largest leverage, and of largest error, to name."
    ),
    *parameter_options("on_bad_rows"),
    *shared.place_options,
    examples=("streamkern diagnose model.h5 houses.csv --largest 5",),
)
def diagnose(console: Console, **options: Any) -> None:
    """Say how MODEL would do on each row of DATA without that row.

    DATA holds the rows that MODEL was fitted on.  One pass gives the leave-one-out error of all of
    them without fitting again, and names the rows of largest leverage and of largest error.
    """
    from streamkern.estimators.loading import load_fitted
    from streamkern.models.fitted_classes import FittedClassifier
    from streamkern.models.report_facts import brief
    from streamkern.report.figure_labels import figure_row

    model: Any = load_fitted(options["model"], boosted=False, components=False)
    is_classifier = isinstance(model, FittedClassifier)
    ridge = model.with_bad_rows(options["on_bad_rows"]).ridge
    with (
        opened_rows(options, model.columns, labels=is_classifier) as opened,
        place_of(console, options),
    ):
        source: Any = opened.source
        if is_classifier:
            source = model.labelled(source, weighted=True)
        found = ridge.diagnose(source, n_largest=options["largest"])
    console.table(
        f"Leave-one-out on {found['rows']:,} rows",
        [
            figure_row("loo_rmse", found, brief),
            figure_row("train_rmse", ridge.report, brief),
            figure_row("cv_rmse", ridge.report, brief),
            figure_row("effective_dof", found, "{:,.1f}".format),
            ("rows of leverage 1", f"{found['rows_of_leverage_one']:,}"),
        ],
    )
    for key, title in (
        ("largest_leverages", "Largest leverages"),
        ("largest_errors", "Largest leave-one-out errors"),
    ):
        console.table(
            title,
            [(row["place"], f"{row['leverage']:.4f}", brief(row["error"])) for row in found[key]],
            header=("row", "leverage", "error"),
        )
    console.result(found)
