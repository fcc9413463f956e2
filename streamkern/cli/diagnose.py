"""`streamkern diagnose`."""

from __future__ import annotations

from typing import Any

import click

from streamkern.cli.class_options import classifier_of
from streamkern.cli.common_options import Say, bad_rows_option, common, data_options, place_options


@click.command()
@click.argument("model")
@data_options
@click.option(
    "--largest",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many rows of largest leverage, and of largest error, to name.",
)
@bad_rows_option
@place_options
@common
def diagnose(say: Say, **options: Any) -> None:
    """Say how MODEL would do on each row of DATA without that row.

    DATA holds the rows that MODEL was fitted on.  One pass gives the leave-one-out error of all of
    them without fitting again, and names the rows of largest leverage and of largest error.
    """
    from streamkern.cli.compute_place import Place
    from streamkern.cli.input_rows import source_of
    from streamkern.models.model_files import read_model
    from streamkern.models.ridge_model import RidgeModel, restored
    from streamkern.report.report_rows import brief

    file = read_model(options["model"])
    model = restored(RidgeModel, file, options["model"])
    classifier = classifier_of(file, options["model"])
    model.on_bad_rows = options["on_bad_rows"]
    source: Any = source_of(options, labels=classifier is not None)
    if classifier is not None:
        source = classifier._labelled(source, weighted=True)
    with Place.of(options).entered(say):
        found = model.diagnose(source, n_largest=options["largest"])
    say.table(
        f"Leave-one-out on {found['rows']:,} rows",
        [
            ("leave-one-out rmse", brief(found["loo_rmse"])),
            ("training rmse", brief(model.report_["train_rmse"])),
            ("cross-validated rmse", brief(model.report_["cv_rmse"])),
            ("effective degrees of freedom", f"{found['effective_dof']:,.1f}"),
            ("rows of leverage 1", f"{found['rows_of_leverage_one']:,}"),
        ],
    )
    for key, title in (
        ("largest_leverages", "Largest leverages"),
        ("largest_errors", "Largest leave-one-out errors"),
    ):
        say.table(
            title,
            [(row["place"], f"{row['leverage']:.4f}", brief(row["error"])) for row in found[key]],
            header=("row", "leverage", "error"),
        )
    say.result(found)
