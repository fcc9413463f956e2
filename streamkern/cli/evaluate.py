"""`streamkern evaluate`."""

from __future__ import annotations

from typing import Any

import click

from streamkern.cli.class_options import confusion_rows, error_rows, opened_model
from streamkern.cli.options import Say, bad_rows_option, common, data_options, place_options


@click.command()
@click.argument("model")
@data_options
@bad_rows_option
@place_options
@common
def evaluate(say: Say, **options: Any) -> None:
    """Compare the predictions of MODEL with the targets of DATA, in one pass.

    Of a classifier these are labels.
    """
    from streamkern.cli.place import Place
    from streamkern.prediction import evaluate as evaluate_source
    from streamkern.sources import open_hdf5

    predictor, classifier, _ = opened_model(options["model"])
    skip, labels = options["on_bad_rows"] == "skip", classifier is not None
    source = open_hdf5(options["data"], options["x"], options["y"], labels=labels)
    place = Place.of(options)
    with place.entered(say):
        if classifier is not None:
            classifier.on_bad_rows = options["on_bad_rows"]
            found = classifier.evaluate(source)
        else:
            found = evaluate_source(predictor, source, skip_bad_rows=skip)
    rows = [("rows", f"{found['rows']:,}")]
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
