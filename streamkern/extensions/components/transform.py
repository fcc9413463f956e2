"""`streamkern transform`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.parameter_options import parameter_options
from streamkern.cli.row_files import write_rows


@command(
    click.argument("model", metavar="PCA.h5"),
    shared.rows_argument,
    shared.x_option,
    *shared.options_of_extensions("rows of a model"),
    shared.out_option("Z.h5", "What to write; also .csv, .parquet."),
    *parameter_options("on_bad_rows"),
    *shared.place_options,
    shared.force_option,
    examples=("streamkern transform components.h5 test.h5 --out scores.h5",),
)
def transform(console: Console, **options: Any) -> None:
    """Write the scores of every row of DATA along the components of PCA.h5.

    DATA is HDF5; or, for components of a table, CSV or Parquet with the same columns.

    Scores are the dataset X of Z.h5, so that other commands read them as the inputs of rows, or
    columns X_0, X_1, ... of Z.csv or Z.parquet.

    With --on-bad-rows skip, rows with NaN or infinite values become NaN.
    """
    from streamkern.estimators.loading import read_fitted
    from streamkern.extensions.components.fitted_components import DATASET, FittedComponents

    model: FittedComponents = read_fitted(options["model"], FittedComponents)[0]
    K, out = len(model.components.components), options["out"]
    what = f"rows of {K:,} scores in {out}:{DATASET}"
    write_rows(
        console, options, model, model.transform_to_hdf5, what=what, n_components=K, scores=out
    )
