"""`streamkern transform`."""

from __future__ import annotations

import time
from typing import Any

import click

from streamkern.cli.common_options import Say, bad_rows_option, common, force_option, place_options


@click.command()
@click.argument("model", metavar="PCA.h5")
@click.argument("data", nargs=-1, required=True, metavar="DATA...")
@click.option("--x", default="X", show_default=True, help="Dataset of inputs.")
@click.option("--out", required=True, metavar="Z.h5", help="What to write; also .csv, .parquet.")
@bad_rows_option
@place_options
@force_option
@common
def transform(say: Say, **options: Any) -> None:
    """Write the scores of every row of DATA along the components of PCA.h5.

    DATA is HDF5; or, for components of a table that `streamkern convert` read, CSV or Parquet with
    the same columns, whose rows are converted beside Z.h5 for as long as the command runs.

    Scores are the dataset X of Z.h5, so that other commands read them as the inputs of rows, or
    columns X_0, X_1, ... of Z.csv or Z.parquet.

    With --on-bad-rows skip, rows with NaN or infinite values become NaN.
    """
    from streamkern.cli.compute_place import Place
    from streamkern.cli.input_rows import opened_rows
    from streamkern.cli.output_paths import check_outputs
    from streamkern.models.component_files import read_components
    from streamkern.models.component_fit import DATASET, transform_to_hdf5
    from streamkern.storage import FORMATS, exported

    found, card = read_components(options["model"])
    begun = time.perf_counter()
    with opened_rows(options, card, y=None) as (source, _, unexpected):
        found.feature_map.check((source.n_samples, source.n_features))
        check_outputs(options, source, formats=FORMATS)
        out, force, skip = options["out"], options["force"], options["on_bad_rows"] == "skip"
        with Place.of(options).entered(say, what=out), exported(out, force=force) as path:
            skipped = transform_to_hdf5(found, source, path, skip_bad_rows=skip, force=force)
    seconds = time.perf_counter() - begun
    K = len(found.components)
    noted = f", {skipped:,} of them NaN" if skipped else ""
    say.line(f"{source.n_samples:,} rows of {K:,} scores in {options['out']}:{DATASET}{noted}")
    say.result(
        {
            "rows": source.n_samples,
            "skipped_rows": skipped,
            "n_components": K,
            "seconds": seconds,
            "rows_per_second": source.n_samples / seconds,
            "scores": options["out"],
            **unexpected,
        }
    )
