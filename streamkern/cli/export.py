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
    from streamkern.cli.class_options import classifier_of
    from streamkern.cli.output_paths import check_outputs
    from streamkern.models.component_files import read_components
    from streamkern.models.model_files import read_model
    from streamkern.report.onnx import write_onnx
    from streamkern.runtime.memory import in_words
    from streamkern.storage import holds_components

    path, out, rule = options["model"], options["out"], None
    check_outputs(options, formats=["ONNX"])
    if holds_components(path):
        predictor, output = read_components(path)[0].projection, "scores"
    else:
        file = read_model(path, with_equations=False)
        classifier = classifier_of(file, path)
        rule = None if classifier is None else classifier.rule_
        predictor, output = file.predictor, "y_pred" if rule is None else "y_proba"
    precision = options["precision"] or predictor.precision
    write_onnx(out, predictor, output, rule=rule, precision=precision, force=options["force"])
    n_bytes = Path(out).stat().st_size
    say.line(f"{output} of X in {out}, {precision} precision, {in_words(n_bytes)}")
    say.result({"onnx": out, "output": output, "precision": precision, "bytes": n_bytes})
