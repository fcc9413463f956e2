"""`streamkern export`."""

from pathlib import Path
from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import check_outputs
from streamkern.errors import ParameterError
from streamkern.registry import more_options


@command(
    click.argument("model", metavar="MODEL.h5"),
    shared.out_option("MODEL.onnx", "The file to write, MODEL.onnx or MODEL.c."),
    click.option(
        "--precision",
        type=click.Choice(["single", "double"]),
        help="Of rows, features and what is returned; by default the model's.",
    ),
    click.option("--std", is_flag=True, help="Give standard deviations of new targets, as y_std."),
    click.option(
        "--interval",
        type=shared.percent,
        help="Give the ends of intervals that hold so much of new targets, as y_lower and y_upper.",
    ),
    click.option(
        "--table", is_flag=True, help="Take the columns of the table of MODEL.h5; not in C."
    ),
    *shared.options_of_extensions("export"),
    shared.force_option,
    examples=[f"streamkern export model.h5 --out model.{ending}" for ending in ("onnx", "c")],
)
def export(console: Console, **options: Any) -> None:
    """Write the predictions of MODEL.h5 as an ONNX graph or as C, for programs without Python.

    They take rows X and give y_pred; of a classifier the probabilities of classes as y_proba, of a
    file of principal components scores.  C is written where the name of the file ends in .c.
    """
    from streamkern.estimators.loading import load_fitted
    from streamkern.extensions.export.c_source import to_c
    from streamkern.extensions.export.onnx import to_onnx
    from streamkern.runtime.memory import in_words

    path, out = options["model"], options["out"]
    kind, write = ("c", to_c) if Path(out).suffix.lower() == ".c" else ("onnx", to_onnx)
    check_outputs(options, formats=["C" if kind == "c" else "ONNX"])
    model, facts = None, dict[str, Any]()
    for each in more_options("export"):
        model, facts = each.smaller(console, options)
    if model is None:
        model = load_fitted(path, "is_linear", with_equations=options["std"])
    precision = options["precision"] or model.predictor.precision
    how: Any = {"return_std": options["std"], "interval": options["interval"]}
    if options["table"]:
        if kind == "c":
            raise ParameterError("C takes no texts of a table; write ONNX, or leave out --table.")
        how["table"] = True
    output = write(model, out, precision=precision, force=options["force"], **how)
    n_bytes = Path(out).stat().st_size
    taken = "columns" if options["table"] else "X"
    console.line(f"{output} of {taken} in {out}, {precision} precision, {in_words(n_bytes)}")
    console.result(facts | {kind: out, "output": output, "precision": precision, "bytes": n_bytes})
