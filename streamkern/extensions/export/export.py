"""`streamkern export`."""

from pathlib import Path
from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import check_outputs


@command(
    click.argument("model", metavar="MODEL.h5"),
    shared.out_option("MODEL.onnx", "The ONNX file to write."),
    click.option(
        "--precision",
        type=click.Choice(["single", "double"]),
        help="Of rows, features and what is returned; by default the model's.",
    ),
    shared.force_option,
    examples=("streamkern export model.h5 --out model.onnx",),
)
def export(console: Console, **options: Any) -> None:
    """Write the predictions of MODEL.h5 as an ONNX graph, for runtimes without Python.

    It takes rows X and gives y_pred; of a classifier the probabilities of classes as y_proba, of a
    file of principal components scores.
    """
    from streamkern.estimators.loading import load_fitted
    from streamkern.extensions.export.onnx import to_onnx
    from streamkern.runtime.memory import in_words

    path, out = options["model"], options["out"]
    check_outputs(options, formats=["ONNX"])
    model: Any = load_fitted(path, "is_linear", with_equations=False)
    precision = options["precision"] or model.predictor.precision
    output = to_onnx(model, out, precision=precision, force=options["force"])
    n_bytes = Path(out).stat().st_size
    console.line(f"{output} of X in {out}, {precision} precision, {in_words(n_bytes)}")
    console.result({"onnx": out, "output": output, "precision": precision, "bytes": n_bytes})
