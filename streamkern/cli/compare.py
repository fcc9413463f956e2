"""`streamkern compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import check_outputs, place_of
from streamkern.cli.parameter_options import GIVEN_KERNEL, numbers_of, parameter_options, values_of
from streamkern.cli.row_files import opened_rows

if TYPE_CHECKING:
    from streamkern.estimators.comparison import Trial

_HEADER = (
    *("model", "D", "test rmse", "over\nexact", "kernel\nerror"),
    *("fit\ns", "test\ns", "matrix\nMB"),
)


@command(
    *shared.rows_options,
    shared.out_option("DIR", "The folder for JSON and pictures."),
    click.option(
        "--maps", default="orthogonal,iid", metavar="MAP[,MAP...]", help="Maps as of fit --map."
    ),
    click.option(
        "--components",
        default="64,128,256,512,1024,2048",
        metavar="D[,D...]",
        help="Numbers of random features.",
    ),
    click.option("--seeds", type=int, default=5, help="How many times every map is drawn."),
    shared.count_option(
        "--rows", 2, 4000, "Rows to fit, a uniform sample; exact kernel ridge needs their square."
    ),
    *parameter_options(
        *("kernel", "alpha", "n_folds", "solver", "on_bad_rows", "random_state"),
        alpha={
            "help": "The penalty, in units of the sum of squares.  Where it is chosen, every model "
            "chooses its own; exact kernel ridge by leave-one-out."
        },
        kernel=GIVEN_KERNEL,
        random_state={"help": "Seed of the sample of rows, and the first of the maps' seeds."},
    ),
    *shared.place_options,
    shared.force_option,
    examples=(
        "streamkern compare houses.csv --target price --out comparison",
        "streamkern compare train.h5 --out comparison --maps orthogonal,nystroem",
    ),
)
def compare(console: Console, **options: Any) -> None:
    """Compare exact kernel ridge regression with random features, over their number and map.

    All models are fitted to the same sample of rows and tested on the same others.  Writes
    comparison.json, comparison.png and comparison.svg into DIR.
    """
    from streamkern.errors.formatting import json_text
    from streamkern.estimators import comparison
    from streamkern.estimators.random_feature_ridge import RandomFeatureRidge
    from streamkern.registry import extension, installed
    from streamkern.storage.outputs import make_folder, replacing

    components = numbers_of(options["components"], "--components", kind=int)
    maps, n_seeds = options["maps"].split(","), options["seeds"]
    model = RandomFeatureRidge(**values_of(options))
    comparison.checked_comparison(model, components, maps, n_seeds)
    source: Any = opened_rows(options | {"out": None}).source  # which is a folder
    folder, force = make_folder(options["out"]), options["force"]
    forms = ("json", "png", "svg") if "report" in installed() else ("json",)
    results, *pictures = (folder / f"comparison.{form}" for form in forms)
    check_outputs(options, source, outs=[results, *pictures], formats=())
    sizes = {"n_components": components, "n_seeds": n_seeds, "n_train": options["rows"]}
    with place_of(console, options):
        found = comparison.compare(source, model, maps=maps, **sizes)
    with replacing(results, force=force) as temporary:
        temporary.write_text(json_text(found.as_dict(), indent=1))
    for path in pictures:
        extension("report", "comparison_picture").plot_comparison(found, path, force=force)
    if not pictures:
        console.note("pictures are drawn by the extension 'report', which is not installed.")
    title = f"{found.n_train:,} rows fitted, {found.n_test:,} tested"
    console.table(title, [_row(trial) for trial in found.trials], _HEADER)
    exact = found.trials[0]
    console.line(
        f"exact kernel ridge: alpha {exact.alpha:.3g}, leave-one-out rmse {exact.loo_rmse:.4g}"
    )
    if n_seeds > 1:
        console.line(
            f"means over {n_seeds} seeds of the map, with the 95% intervals of the means (t)"
        )
    named = ", ".join([str(results), *(path.name for path in pictures)])
    console.line(f"{' and '.join(named.rsplit(', ', 1))} written")
    written = zip(("json", "picture", "svg"), map(str, [results, *pictures]), strict=False)
    console.result(found.as_dict() | dict(written))


def _row(trial: Trial) -> tuple[str, ...]:
    error, interval = f"{trial.test_rmse:#.4g}", trial.interval["test_rmse"]
    if interval is not None:
        error += f" \N{PLUS-MINUS SIGN} {trial.test_rmse - interval[0]:#.2g}"
    return (
        (trial.map or trial.method) + ", by gradients" * (trial.solver == "cg"),
        f"{trial.n_components:,}" if trial.n_components else "",
        error,
        f"{trial.relative_rmse:.3f}",
        "" if trial.kernel_error is None else f"{trial.kernel_error:.4f}",
        f"{trial.fit_seconds:.2f}",
        f"{trial.predict_seconds:.3f}",
        f"{trial.matrix_bytes / 1e6:.3f}",
    )
