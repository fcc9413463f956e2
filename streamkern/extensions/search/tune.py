"""`streamkern tune`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.parameter_options import kernel_named, parameter_options, parameters_of
from streamkern.cli.row_files import prepared
from streamkern.cli.saving import save_model, show_model
from streamkern.errors import ParameterError
from streamkern.kernels import separated
from streamkern.registry import tables


@command(
    *shared.rows_options,
    shared.model_option,
    *parameter_options(
        kernel={
            "metavar": "KERNEL[,KERNEL...]|auto",
            "help": "Kernels to choose among, or auto for a short list",
        },
        feature_map={"type": str, "metavar": "NAME[,NAME...]|auto", "help": "Maps to choose among"},
    ),
    click.option(
        "--budget",
        metavar="TIME",
        help="What search and fit may take: 120s, 5m, 1h.  The choice depends on the machine.  "
        "[default: 1m, or none with --kernel, --map, --checkpoint or a length scale]",
    ),
    *shared.options_of_extensions("tune"),
    *shared.job_options,
    *shared.options_of_extensions("report"),
    examples=(
        "streamkern tune houses.csv --target price --out model.h5",
        "streamkern tune train.h5 --out model.h5 --budget 5m",
        "streamkern tune train.h5 --out model.h5 --kernel auto --map auto",
    ),
)
def tune(console: Console, **options: Any) -> None:
    """Choose what suits the rows of DATA within the time given, and fit a model with it.

    That is the scale, kernel, map, metric and number of features.  The choice is made on a spread
    sample, and the rows are read no more often than `fit` reads them; --alpha and the folds are for
    the fit.

    With --kernel, --map or --length-scale and no --budget the length scale is chosen, from an
    eighth of that given to eight times it, and among the kernels and maps that are named.  With
    --map auto the kernel is auto unless it is given, with --budget both are.
    """
    from streamkern.extensions.search.tuned_fit import search_job
    from streamkern.extensions.search.tuned_fit import tune as choose

    first = {"kernel": "auto", "feature_map": "orthogonal"}
    tried: dict[str, Any] = {name: _chosen_among(options, name) for name in first}
    first |= {name: each[0] for name, each in tried.items() if isinstance(each, list)}
    given, kernels = parameters_of(options | first), tried["kernel"]
    if isinstance(kernels, list):
        kernels = [kernel_named(name, options["length_scale"]) for name in kernels]
    problem, search = shared.problem_of(options), {"kernels": kernels, "maps": tried["feature_map"]}
    search |= {"budget": options["budget"], "checkpoint": options["checkpoint"]}
    search["begun"] = click.get_current_context().meta.get("begun")
    job = search_job(problem, given, **search)
    with prepared(console, options, job, labels=problem.reads_labels) as source:
        rows, keep_moments = (source, None, None), bool(options.get("report"))
        model = choose(problem, given, rows, keep_moments=keep_moments, **search)
        save_model(console, model, options, source)
    for table in tables(model.report).values():
        console.table(**table._asdict())
    show_model(console, "Fitted", model, options["out"])


def _chosen_among(options: dict[str, Any], name: str) -> list[str] | str | None:
    """Return the names that an option lists, 'auto', or None where others say what is chosen."""
    if not shared.given_options([name]):
        return None
    names: list[str] = separated(options[name])
    if names == ["auto"]:
        return "auto"
    if len(set(names)) < len(names):
        option, what = {"kernel": ("--kernel", "a kernel")}.get(name, ("--map", "a map"))
        raise ParameterError(f"{option} {options[name]} names {what} twice; name each once.")
    return names
