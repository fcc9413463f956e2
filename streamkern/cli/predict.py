"""`streamkern predict`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.parameter_options import parameter_options
from streamkern.cli.row_files import write_rows
from streamkern.errors import ModelFileError, ParameterError
from streamkern.registry import more_options


@command(
    click.argument("model"),
    click.argument("data", nargs=-1, metavar="[DATA...]"),
    shared.x_option,
    *shared.options_of_extensions("rows of a model"),
    shared.out_option("PRED.h5", "What to write; also .csv, .parquet."),
    *shared.options_of_extensions("predict"),
    click.option("--std", is_flag=True, help="Write standard deviations of new targets, as y_std."),
    click.option("--support", is_flag=True, help="Write how well rows of the fit cover each row."),
    click.option(
        "--interval",
        type=shared.percent,
        help="Write the ends of intervals that hold so many per cent of new targets, as y_lower "
        "and y_upper; of classes sets, as y_set.",
    ),
    *parameter_options("on_bad_rows"),
    *shared.place_options,
    shared.force_option,
    examples=(
        "streamkern predict model.h5 new.csv --out predictions.csv",
        "streamkern predict model.h5 test.h5 --out predictions.h5 --std",
        "streamkern predict model.h5 new.csv --out predictions.csv --interval 90",
    ),
)
def predict(console: Console, **options: Any) -> None:
    """Predict every row of DATA into the dataset y_pred of PRED.h5, or a column of PRED.csv.

    DATA is HDF5; or, for a model of a table, CSV or Parquet with the same columns, of
    which those of --id come first in what is written.

    With --std, a dataset y_std holds the standard deviation of a new target at every row.  With
    --interval 90, y_lower and y_upper hold the ends of intervals of 90%, which are as wide as
    errors on rows held out in the fit tell: narrow where these were small.

    With --support, a dataset support holds the share of the rows of the fit that lie as far from
    the others as a row does: below 0.01 nothing like it was fitted.

    Of a classifier, y_pred holds labels, and a dataset classes all of them; with --proba, a
    dataset y_proba holds a column of probabilities for each, and with --interval 90 y_set says of
    each whether it is among those that a row may be of.

    With --on-bad-rows skip, rows with NaN or infinite values are predicted as NaN, or as an empty
    text or set.
    """
    from streamkern.estimators.loading import load_fitted

    model: Any = load_fitted(options["model"], "prediction_writer", with_equations=options["std"])
    others = more_options("predict")
    for each in others:
        if hasattr(each, "check_predictions"):
            each.check_predictions(options, model)
    if options["std"] and model.equations is None:
        raise ModelFileError(
            f"--std needs the normal equations, but {options['model']} was saved without them; fit "
            f"it again without --compact."
        )
    has_levels = hasattr(model, "interval") or hasattr(model, "sets")
    if options["interval"] is not None and options["interval"] < 0.01:
        raise ParameterError(
            f"--interval is in per cent, and {100 * options['interval']:g}% holds next to nothing; "
            f"give 90 for 0.9."
        )
    if options["interval"] is not None and (options.get("grid") or not has_levels):
        raise ParameterError(
            "--interval is for rows that a regression or a classifier predicts, not for boosting, "
            "components or grids; leave it out."
        )
    if any(each.predict(console, model, options) for each in others if hasattr(each, "predict")):
        return
    if not options["data"]:
        raise ParameterError("there is nothing to predict; name files of rows.")
    out = options["out"]
    write, datasets, missing = model.prediction_writer(options)
    what = f"predictions in {out}:{' and '.join(['y_pred', *datasets])}"
    write_rows(console, options, model, write, what=what, missing=missing, predictions=out)
