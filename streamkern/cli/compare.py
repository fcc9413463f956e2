"""`streamkern compare`."""

from __future__ import annotations

import json
from typing import Any

import click

from streamkern.cli.fit import kernel_named, kernel_options
from streamkern.cli.options import (
    Say,
    bad_rows_option,
    common,
    data_options,
    force_option,
    place_options,
)


@click.command()
@data_options
@click.option("--out", required=True, metavar="DIR", help="The folder for JSON and picture.")
@click.option("--test", multiple=True, metavar="DATA", help="Test on these rows instead.")
@kernel_options
@click.option("--alpha", type=float, default=None, help="The penalty.  [default: 0.1]")
@click.option(
    "--components",
    default="64,128,256,512,1024,2048,4096",
    show_default=True,
    metavar="D[,D...]",
    help="Numbers of random features.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=2),
    default=4000,
    show_default=True,
    help="Rows to fit, a uniform sample; exact kernel ridge needs their square.",
)
@bad_rows_option
@place_options
@force_option
@common
def compare(say: Say, **options: Any) -> None:
    """Fit exact kernel ridge regression and random features to the same sample of rows.

    Writes comparison.json and comparison.png into DIR.
    """
    from streamkern.cli.place import Place
    from streamkern.comparison import compare as compare_source
    from streamkern.errors import ParameterError
    from streamkern.estimators import DEFAULT_ALPHA, RandomFeatureRidge
    from streamkern.plots import plot_comparison, pyplot
    from streamkern.sources import open_hdf5
    from streamkern.storage import check_output, make_folder, replacing

    try:
        components = [int(text) for text in options["components"].split(",")]
    except ValueError as error:
        raise ParameterError(
            f"--components must be whole numbers with commas between, not "
            f"{options['components']!r}; give some."
        ) from error
    pyplot()
    source = open_hdf5(options["data"], options["x"], options["y"])
    test = open_hdf5(options["test"], options["x"], options["y"]) if options["test"] else None
    model = RandomFeatureRidge(
        kernel_named(options["kernel"], options["length_scale"]),
        alpha=DEFAULT_ALPHA if options["alpha"] is None else options["alpha"],
        feature_map=options["feature_map"],
        paired=not options["phase"],
        on_bad_rows=options["on_bad_rows"],
        random_state=options["seed"],
    )
    model.options()
    folder = make_folder(options["out"])
    force = options["force"]
    results, picture = folder / "comparison.json", folder / "comparison.png"
    for path in (results, picture):
        check_output(path, force=force)
    with Place.of(options).entered(say):
        found = compare_source(
            source, model, n_components=components, n_train=options["rows"], test=test
        )
    with replacing(results, force=force) as temporary:
        temporary.write_text(json.dumps(found.as_dict(), indent=1))
    plot_comparison(found, picture, force=force)
    say.table(
        f"{found.n_train:,} rows fitted, {found.n_test:,} tested",
        comparison_rows(found),
        header=(
            "model",
            "D",
            "test rmse",
            "/ exact",
            "kernel error",
            "fit s",
            "predict s",
            "matrix",
        ),
    )
    say.line(f"{results} and {picture} written")
    say.result(found.as_dict() | {"json": str(results), "picture": str(picture)})


def comparison_rows(found: Any) -> list[tuple[str, ...]]:
    """Return the rows of the table of a comparison."""
    from streamkern.memory import in_words

    return [
        (
            trial.method,
            f"{trial.n_components:,}" if trial.n_components else "",
            f"{trial.test_rmse:.4g}",
            f"{trial.relative_rmse:.3f}",
            f"{trial.kernel_error:.4f}" if trial.kernel_error is not None else "",
            f"{trial.fit_seconds:.2f}",
            f"{trial.predict_seconds:.3f}",
            in_words(trial.matrix_bytes),
        )
        for trial in found.trials
    ]
