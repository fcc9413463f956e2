"""`streamkern predict`."""

from __future__ import annotations

import time
from typing import Any

import click

from streamkern.cli.class_options import opened_model
from streamkern.cli.common_options import Say, bad_rows_option, common, force_option, place_options
from streamkern.errors import ModelFileError, ParameterError


@click.command()
@click.argument("model")
@click.argument("data", nargs=-1, required=True, metavar="DATA...")
@click.option("--x", default="X", show_default=True, help="Dataset of inputs.")
@click.option("--out", required=True, metavar="PRED.h5", help="What to write; also .csv, .parquet.")
@click.option("--proba", is_flag=True, help="Write the probabilities of classes, as y_proba.")
@click.option("--std", is_flag=True, help="Write standard deviations of new targets, as y_std.")
@bad_rows_option
@place_options
@force_option
@common
def predict(say: Say, **options: Any) -> None:
    """Predict every row of DATA into the dataset y_pred of PRED.h5, or a column of PRED.csv.

    DATA is HDF5; or, for a model of a table that `streamkern convert` read, CSV or Parquet with the
    same columns, whose rows are converted beside PRED.h5 for as long as the command runs.

    With --std, a dataset y_std holds the standard deviation of a new target at every row.

    Of a classifier, y_pred holds labels, and a dataset classes all of them; with --proba, a
    dataset y_proba holds a column of probabilities for each.

    With --on-bad-rows skip, rows with NaN or infinite values are predicted as NaN, or as an empty
    text.
    """
    from streamkern.cli.compute_place import Place
    from streamkern.cli.input_rows import opened_rows
    from streamkern.cli.output_paths import check_outputs
    from streamkern.models.classifier_passes import predict_classes_to_hdf5
    from streamkern.models.prediction import predict_to_hdf5
    from streamkern.storage import FORMATS, exported

    opened = opened_model(options["model"], with_equations=options["std"])
    predictor, classifier, equations, card = opened
    _check_kind(options, is_classifier=classifier is not None)
    if options["std"] and equations is None:
        raise ModelFileError(
            f"--std needs the normal equations, but {options['model']} was saved without them; fit "
            f"it again without --compact."
        )
    out, force, skip = options["out"], options["force"], options["on_bad_rows"] == "skip"
    begun = time.perf_counter()
    with opened_rows(options, card, y=None) as (source, _, unexpected):
        predictor.check((source.n_samples, source.n_features))
        check_outputs(options, source, formats=FORMATS)
        place = Place.of(options)
        with place.entered(say), exported(out, force=force) as path:
            if classifier is not None:
                skipped = predict_classes_to_hdf5(
                    *(predictor, classifier.rule_, source, path),
                    probabilities=options["proba"],
                    skip_bad_rows=skip,
                    force=force,
                )
            else:
                skipped = predict_to_hdf5(
                    *(predictor, source, path),
                    equations=equations,
                    skip_bad_rows=skip,
                    force=force,
                )
    seconds = time.perf_counter() - begun
    missing = "NaN" if classifier is None else "without a class"
    noted = f", {skipped:,} of them {missing}" if skipped else ""
    more = " and y_std" * options["std"] + " and y_proba" * options["proba"]
    say.line(f"{source.n_samples:,} predictions in {out}:y_pred{more}{noted}")
    say.result(
        {
            "rows": source.n_samples,
            "skipped_rows": skipped,
            "seconds": seconds,
            "rows_per_second": source.n_samples / seconds,
            "predictions": out,
            **unexpected,
        }
    )


def _check_kind(options: dict[str, Any], *, is_classifier: bool) -> None:
    """Raise ParameterError if something is asked of a model that it is not made for."""
    if options["proba"] and not is_classifier:
        raise ParameterError(
            f"--proba is for classifiers, but {options['model']} is a regression; leave it out."
        )
    if options["std"] and is_classifier:
        raise ParameterError(
            f"--std is for regressions, but {options['model']} is a classifier; take --proba."
        )
