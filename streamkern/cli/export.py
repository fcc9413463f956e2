"""`streamkern export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streamkern.cli.common_options import Say, common, force_option


@click.command()
@click.argument("model", metavar="MODEL.h5")
@click.option("--out", required=True, metavar="MODEL.onnx", help="The ONNX file to write.")
@click.option(
    "--precision",
    type=click.Choice(["single", "double"]),
    help="Of rows, features and what is returned; by default the model's.",
)
@force_option
@common
def export(say: Say, **options: Any) -> None:
    """Write the predictions of MODEL.h5 as an ONNX graph, for runtimes without Python.

    It takes rows X and gives y_pred; of a classifier the probabilities of classes as y_proba, of a
    file of principal components scores.
    """
    from streamkern.cli.output_paths import check_outputs
    from streamkern.models.loading import load_fitted
    from streamkern.report.onnx import write_onnx
    from streamkern.runtime.memory import in_words

    path, out = options["model"], options["out"]
    check_outputs(options, formats=["ONNX"])
    model: Any = load_fitted(path, boosted=False, with_equations=False)
    precision = options["precision"] or model.predictor.precision
    output = write_onnx(out, model, precision=precision, force=options["force"])
    n_bytes = Path(out).stat().st_size
    say.line(f"{output} of X in {out}, {precision} precision, {in_words(n_bytes)}")
    say.result({"onnx": out, "output": output, "precision": precision, "bytes": n_bytes})
