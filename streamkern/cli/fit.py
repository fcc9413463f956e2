"""`streamkern fit`."""

from __future__ import annotations

from typing import Any

import click

from streamkern.cli.options import (
    Say,
    bad_rows_option,
    common,
    data_options,
    force_option,
    place_options,
)
from streamkern.errors import ParameterError
from streamkern.kernels import KERNELS, Kernel, ShiftInvariantKernel


def kernel_options(command: Any) -> Any:
    """Give a command the options that make a kernel and its map."""
    for option in (
        click.option(
            "--seed",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Seed of the map, and of the sample behind the median.",
        ),
        click.option("--phase", is_flag=True, help="Cosines with random phases, instead of pairs."),
        click.option(
            "--map",
            "feature_map",
            type=click.Choice(["orthogonal", "iid", "identity"]),
            default="orthogonal",
            show_default=True,
            help="How frequencies are drawn.",
        ),
        click.option(
            "--length-scale",
            default="median",
            show_default=True,
            metavar="median|FLOAT[,FLOAT...]",
            help="In units of the standardised inputs; several: one per input.",
        ),
        click.option(
            "--kernel",
            type=click.Choice(list(KERNELS)),
            default="gaussian",
            show_default=True,
            help="How similar two rows are.",
        ),
    ):
        command = option(command)
    return command


def kernel_named(name: str, length_scale: str) -> Kernel:
    """Return the kernel that two options describe."""
    kernel = KERNELS[name]
    if not isinstance(kernel, ShiftInvariantKernel):
        if length_scale != "median":
            raise ParameterError(
                f"the {name} kernel has no length scale; leave --length-scale out."
            )
        return kernel
    if length_scale == "median":
        return kernel.with_length_scale("median")
    try:
        numbers = tuple(float(text) for text in length_scale.split(","))
    except ValueError as error:
        raise ParameterError(
            f"--length-scale must be 'median' or numbers with commas between, not "
            f"{length_scale!r}; give one of these."
        ) from error
    return kernel.with_length_scale(numbers[0] if len(numbers) == 1 else numbers)


@click.command()
@data_options
@click.option("--out", required=True, metavar="MODEL.h5", help="The model file to write.")
@kernel_options
@click.option(
    "--components", type=int, default=2048, show_default=True, help="D, counting all outputs."
)
@click.option(
    "--alpha",
    type=float,
    default=None,
    help="The penalty, in units of the sum of squares.  [default: 0.1]",
)
@click.option(
    "--precision",
    type=click.Choice(["single", "double"]),
    default="single",
    show_default=True,
    help="Of features and products, which are summed in double.",
)
@click.option("--no-standardize", is_flag=True, help="Take the inputs in their own units.")
@click.option("--no-intercept", is_flag=True, help="Fit through the origin.")
@bad_rows_option
@place_options
@click.option("--dry-run", is_flag=True, help="Print the plan, and read no rows.")
@force_option
@common
def fit(say: Say, **options: Any) -> None:
    """Fit random-feature kernel ridge regression to the rows of DATA.

    DATA is an HDF5 file, several, or a quoted pattern, whose rows are one data set.
    """
    from streamkern.cli.place import Place
    from streamkern.estimators import DEFAULT_ALPHA, RandomFeatureRidge
    from streamkern.plan import plan_fit
    from streamkern.sources import open_hdf5
    from streamkern.storage import check_output

    model = RandomFeatureRidge(
        kernel_named(options["kernel"], options["length_scale"]),
        n_components=options["components"],
        alpha=DEFAULT_ALPHA if options["alpha"] is None else options["alpha"],
        feature_map=options["feature_map"],
        paired=not options["phase"],
        standardize=not options["no_standardize"],
        fit_intercept=not options["no_intercept"],
        precision=options["precision"],
        on_bad_rows=options["on_bad_rows"],
        random_state=options["seed"],
    )
    checked = model.options()
    source = open_hdf5(options["data"], options["x"], options["y"])
    place = Place.of(options)
    plan = plan_fit(
        source,
        checked.components_for(source.n_features),
        precision=options["precision"],
        n_workers=place.workers,
    )
    if options["dry_run"]:
        if place.is_elsewhere:
            raise ParameterError(
                "--dry-run plans for this machine; leave out either it, or the cluster."
            )
        say.table("Plan", plan.rows())
        plan.check()
        say.result(plan.as_dict())
        return
    check_output(
        options["out"], force=options["force"], inputs=[file.path for file in source.files]
    )
    if place.workers or not place.is_named:
        plan.check()
    with place.entered(say, plan):
        model.fit(source)
    model.save(options["out"], force=options["force"])
    report = fit_report(model, options["out"])
    say.table("Fitted", card_rows(report))
    say.result(report)


def fit_report(model: Any, path: str) -> dict[str, Any]:
    """Return the JSON of a fit: the keys of the contract first."""
    report = {key: value for key, value in model.report_.items() if key != "data"}
    return report | {"model": str(path)}


def card_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a person wants to know of a fitted model, as pairs of a name and a value."""
    from streamkern.memory import in_words

    seconds, peak = report["seconds"], in_words(report["peak_worker_bytes"])
    kernel, scale = report["kernel"], report["length_scale"]
    kernel += f", length scale {_brief(scale)}" if scale is not None else ""
    rows = [
        ("rows x inputs", f"{report['rows']:,} x {report['n_features']:,}"),
        ("targets", f"{report['n_targets']:,}"),
        ("kernel", kernel),
        ("components", f"{report['n_components']:,} ({report['precision']} precision)"),
        ("alpha", f"{report['alpha']:g}"),
        ("training rmse", _brief(report["train_rmse"])),
        ("effective degrees of freedom", f"{report['effective_dof']:,.1f}"),
        ("solver", f"{report['solver']}, condition {_brief(report['condition'])}"),
        (
            "seconds",
            ", ".join(f"{name} {value:.1f}" for name, value in seconds.items()),
        ),
        (
            "memory of a worker",
            f"{peak} of {in_words(report['projected_worker_bytes'])} projected",
        ),
    ]
    for key, label in (("skipped_rows", "rows skipped"), ("retried_shards", "shards retried")):
        if report[key]:
            rows.append((label, f"{report[key]:,}"))
    if report["dropped_columns"]:
        rows.append(("constant columns left out", _brief(report["dropped_columns"])))
    if "model" in report:
        rows.append(("model", report["model"]))
    return rows


def _brief(value: Any) -> str:
    if isinstance(value, list):
        shown = ", ".join(_brief(item) for item in value[:4])
        return shown + (f", ... ({len(value)})" if len(value) > 4 else "")
    if value is None:
        return "none"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
