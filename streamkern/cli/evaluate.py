"""`streamkern evaluate`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import place_of
from streamkern.cli.parameter_options import parameter_options
from streamkern.cli.row_files import opened_rows
from streamkern.registry import more_options

# Targets that are named.
_MOST_TARGETS = 12


@command(
    click.argument("model"),
    *shared.data_options,
    *shared.options_of_extensions("rows of a model"),
    *shared.options_of_extensions("evaluate"),
    click.option(
        "--leave-one-out",
        type=click.IntRange(min=1),
        metavar="N",
        help="DATA holds the rows of the fit: say how MODEL would do on each without it, and name "
        "the N rows of largest leverage and of largest error.",
    ),
    *parameter_options("on_bad_rows"),
    *shared.place_options,
    examples=(
        "streamkern evaluate model.h5 test.csv",
        "streamkern evaluate model.h5 train.csv --leave-one-out 5",
    ),
)
def evaluate(console: Console, **options: Any) -> None:
    """Compare the predictions of MODEL with the targets of DATA, in one pass.

    Targets of a classifier are labels.  DATA is HDF5; or, for a model of a table, CSV or Parquet
    with the same columns, whose rows count by the column that was --weights there, or by the one
    that --weights names here.
    """
    from streamkern.errors.formatting import listed
    from streamkern.estimators.loading import load_fitted
    from streamkern.models.report_rows import unit_of

    left_out = options["leave_one_out"]
    needs = ["evaluate"] if left_out is None else ["evaluate", "is_linear"]
    model: Any = load_fitted(options["model"], *needs, with_equations=left_out is not None)
    model = model.with_bad_rows(options["on_bad_rows"])
    opened = opened_rows(options, model.columns, labels=model.encoding.reads_labels)
    with place_of(console, options):
        source = model.source(opened.source, as_fitted=left_out is not None)
        if left_out is not None:
            found = model.ridge.diagnose(source, n_largest=left_out)
            _show_left_out(console, model.ridge, found)
            return
        for each in more_options("evaluate"):
            source = each.rows(options, model, source)
        found = model.evaluate(source)
    found |= opened.unexpected
    rows = [("rows", f"{found['rows']:,}")]
    if names := model.columns.target_names:
        rows.insert(0, ("targets" if names[1:] else "target", listed(names, _MOST_TARGETS)))
    if unlabelled := opened.unlabelled:
        found["unlabelled_rows"] = unlabelled
        rows.append(("rows without a label", f"{unlabelled:,}, left out"))
    if found["skipped_rows"]:
        rows.append(("rows skipped", f"{found['skipped_rows']:,}"))
    (title, errors), *tables = model.error_tables(found)
    unit = unit_of(model.report)
    errors = [(name, said + unit * (name in ("rmse", "mae"))) for name, said in errors]
    console.table(title, [*rows, *errors])
    for each in tables:
        console.table(*each)
    console.result(found)


def _show_left_out(console: Console, ridge: Any, found: dict[str, Any]) -> None:
    """Print leave-one-out errors, and the rows that matter most."""
    from streamkern.models.report_rows import brief

    rows = [
        ("leave-one-out rmse", brief(found["loo_rmse"])),
        ("training rmse", brief(ridge.report["train_rmse"])),
        ("cross-validated rmse", brief(ridge.report["cv_rmse"])),
        ("effective degrees of freedom", f"{found['effective_dof']:,.1f}"),
        ("rows of leverage 1", f"{found['rows_of_leverage_one']:,}"),
    ]
    console.table(f"Leave-one-out on {found['rows']:,} rows", rows)
    for key, title in (
        ("largest_leverages", "Largest leverages"),
        ("largest_errors", "Largest leave-one-out errors"),
    ):
        cells = [(r["place"], f"{r['leverage']:.4f}", brief(r["error"])) for r in found[key]]
        console.table(title, cells, header=("row", "leverage", "error"))
    console.result(found)
