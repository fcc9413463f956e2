"""`streamkern evaluate`."""

from __future__ import annotations

from typing import Any

import click

from streamkern.cli.class_options import confusion_rows, error_rows, opened_model
from streamkern.cli.common_options import Say, bad_rows_option, common, data_options, place_options


@click.command()
@click.argument("model")
@data_options
@bad_rows_option
@place_options
@common
def evaluate(say: Say, **options: Any) -> None:
    """Compare the predictions of MODEL with the targets of DATA, in one pass.

    Targets of a classifier are labels.  DATA is HDF5; or, for a model of a table that `streamkern
    convert` read, CSV or Parquet with the same columns, whose rows are converted in TMPDIR for as
    long as the command runs.  Rows of such a table count by the column that was --weights there, or
    by the one that --weights names here.
    """
    from streamkern.cli.compute_place import Place
    from streamkern.cli.input_rows import opened_rows
    from streamkern.models.classifier_passes import evaluate_classes
    from streamkern.models.scoring import evaluate as evaluate_source

    (predictor, classifier, _, card), place = opened_model(options["model"]), Place.of(options)
    opened = opened_rows(options, card, options["y"], labels=classifier is not None)
    skip = options["on_bad_rows"] == "skip"
    with opened as (source, unlabelled, unexpected), place.entered(say):
        if classifier is not None:
            labelled = classifier._labelled(source)
            found = evaluate_classes(predictor, classifier.rule_, labelled, skip_bad_rows=skip)
        else:
            found = evaluate_source(predictor, source, skip_bad_rows=skip)
    found |= unexpected
    rows = [("rows", f"{found['rows']:,}")]
    if unlabelled:
        found["unlabelled_rows"] = unlabelled
        rows.append(("rows without a label", f"{unlabelled:,}, left out"))
    if found["skipped_rows"]:
        rows.append(("rows skipped", f"{found['skipped_rows']:,}"))
    if classifier is not None:
        say.table("Errors", [*rows, *error_rows(found)])
        header, counts = confusion_rows(found)
        say.table("Rows of each class, by the class predicted", counts, header=header)
        say.result(found)
        return
    for name in ("rmse", "mae", "r2"):
        value = found.get(f"{name}_mean", found[name])
        label = f"{name}, mean over targets" if f"{name}_mean" in found else name
        rows.append((label, f"{value:.6g}"))
    say.table("Errors", rows)
    say.result(found)
