"""`streamkern predict`."""

from functools import partial
from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Say, command
from streamkern.cli.parameter_options import parameter_options
from streamkern.cli.row_files import write_rows
from streamkern.errors import ModelFileError, ParameterError


@command(
    click.argument("model"),
    shared.rows_argument,
    shared.x_option,
    shared.delimiter_option,
    shared.out_option("PRED.h5", "What to write; also .csv, .parquet."),
    click.option("--proba", is_flag=True, help="Write the probabilities of classes, as y_proba."),
    click.option("--std", is_flag=True, help="Write standard deviations of new targets, as y_std."),
    *parameter_options("on_bad_rows"),
    *shared.place_options,
    shared.force_option,
    examples=(
        "streamkern predict model.h5 new.csv --out predictions.csv",
        "streamkern predict model.h5 test.h5 --out predictions.h5 --std",
    ),
)
def predict(say: Say, **options: Any) -> None:
    """Predict every row of DATA into the dataset y_pred of PRED.h5, or a column of PRED.csv.

    DATA is HDF5; or, for a model of a table, CSV or Parquet with the same columns, whose rows are
    converted beside PRED.h5 meanwhile, and whose columns of --id come first in what is written.

    With --std, a dataset y_std holds the standard deviation of a new target at every row.

    Of a classifier, y_pred holds labels, and a dataset classes all of them; with --proba, a
    dataset y_proba holds a column of probabilities for each.

    With --on-bad-rows skip, rows with NaN or infinite values are predicted as NaN, or as an empty
    text.
    """
    from streamkern.models.fitted_classes import FittedClasses
    from streamkern.models.loading import load_fitted
    from streamkern.models.prediction_files import predict_to_hdf5

    model: Any = load_fitted(options["model"], components=False, with_equations=options["std"])
    is_classifier = isinstance(model, FittedClasses)
    if options["proba"] and not is_classifier:
        raise ParameterError(
            f"--proba is for classifiers, but {options['model']} is a regression; leave it out."
        )
    if options["std"] and is_classifier:
        raise ParameterError(
            f"--std is for regressions, but {options['model']} is a classifier; take --proba."
        )
    if options["std"] and model.equations is None:
        raise ModelFileError(
            f"--std needs the normal equations, but {options['model']} was saved without them; fit "
            f"it again without --compact."
        )
    if is_classifier:
        write: Any = partial(model.predict_to_hdf5, probabilities=options["proba"])
    else:
        equations = model.equations if options["std"] else None
        write = partial(predict_to_hdf5, model.predictor, equations=equations)
    more = " and y_std" * options["std"] + " and y_proba" * options["proba"]
    missing, out = "without a class" if is_classifier else "NaN", options["out"]
    what = f"predictions in {out}:y_pred{more}"
    write_rows(say, options, model, write, what=what, missing=missing, predictions=out)
