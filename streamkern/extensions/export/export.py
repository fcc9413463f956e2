"""`streamkern export`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import check_outputs

if TYPE_CHECKING:
    from streamkern.models.fitted_ridge import FittedRidge


def percent(text: str) -> float:
    return float(text.removesuffix("%")) / 100


@command(
    click.argument("model", metavar="MODEL.h5"),
    shared.out_option("MODEL.onnx", "The file to write, MODEL.onnx or MODEL.c."),
    click.option(
        "--precision",
        type=click.Choice(["single", "double"]),
        help="Of rows, features and what is returned; by default the model's.",
    ),
    click.option(
        "--tolerance",
        type=percent,
        metavar="PERCENT",
        help="Of moments: write the model of the fewest features whose cross-validated error is at "
        "most so much above that of all.",
    ),
    shared.force_option,
    examples=(
        *(f"streamkern export model.h5 --out model.{ending}" for ending in ("onnx", "c")),
        "streamkern export moments.h5 --out model.c --tolerance 1%",
    ),
)
def export(console: Console, **options: Any) -> None:
    """Write the predictions of MODEL.h5 as an ONNX graph or as C, for programs without Python.

    They take rows X and give y_pred; of a classifier the probabilities of classes as y_proba, of a
    file of principal components scores.  C is written where the name of the file ends in .c.

    With --tolerance, MODEL.h5 is a file of moments, as `streamkern moments` writes it.
    """
    from streamkern.estimators.loading import load_fitted
    from streamkern.extensions.export.c_source import to_c
    from streamkern.extensions.export.onnx import to_onnx
    from streamkern.runtime.memory import in_words

    path, out, tolerance = options["model"], options["out"], options["tolerance"]
    kind, write = ("c", to_c) if Path(out).suffix.lower() == ".c" else ("onnx", to_onnx)
    check_outputs(options, formats=["C" if kind == "c" else "ONNX"])
    facts: dict[str, Any] = {}
    if tolerance is None:
        model: Any = load_fitted(path, "is_linear", with_equations=False)
    else:
        model, facts = smallest(path, tolerance)
        console.line(
            "{n_components:,} of {of_components:,} features: cross-validated error "
            "{relative_rmse:.4f} of the deviation, and {relative_rmse_of_all:.4f} of all".format(
                **facts
            )
        )
    precision = options["precision"] or model.predictor.precision
    output = write(model, out, precision=precision, force=options["force"])
    n_bytes = Path(out).stat().st_size
    console.line(f"{output} of X in {out}, {precision} precision, {in_words(n_bytes)}")
    facts |= {kind: out, "output": output, "precision": precision, "bytes": n_bytes}
    console.result(facts)


def smallest(path: str, tolerance: float) -> "tuple[FittedRidge, dict[str, Any]]":
    """Return the smallest model of moments whose error is within a tolerance, and its facts.

    Features are those that forward selection takes first, of landmarks the leading ones: errors are
    cross-validated, as roots of mean squares over variances.
    """
    import numpy as np

    from streamkern.errors import ModelFileError, ParameterError
    from streamkern.estimators.problems import Regression
    from streamkern.features import Nystroem
    from streamkern.models.data_moments import load_moments
    from streamkern.parameters.parameters import AUTO, Parameters
    from streamkern.solvers.fold_solution import nested_sizes
    from streamkern.storage.codec import MOMENTS, kind_of

    if not 0 <= tolerance < float("inf"):
        raise ParameterError(
            f"the tolerance must be a share of the error, not {100 * tolerance:g}%; give 1%."
        )
    if kind_of(path) is not MOMENTS:
        raise ModelFileError(
            f"a smaller model is judged by the sums of folds, which {path} does not hold; write "
            f"them with `streamkern moments DATA --like {path} --out M.h5`, and give M.h5."
        )
    moments = load_moments(path)
    if moments.encoding.reads_labels:
        raise ParameterError(
            f"smaller models are of numbers, but {path} holds labels of classes; export what "
            f"`streamkern solve {path} --sparse auto` makes."
        )
    given = Parameters(**moments.options.parameters())
    some, curve = "sparse", "sparse_curve"
    sizes = nested_sizes(moments.feature_map.n_components)
    if moments.options.feature_map == Nystroem.name and len(sizes) > 1:
        # A feature of landmarks takes all of those before it.
        some, curve = "n_components", "components_curve"
    asked: dict[str, Any] = {some: AUTO}
    tried = Regression().solve(replace(given, **asked), moments).report[curve]
    errors = np.sqrt(tried["relative_mse"])
    place = int((errors <= (1.0 + tolerance) * errors[-1]).argmax())
    sizes = tried["n_components"]
    facts = {"n_components": sizes[place], "of_components": sizes[-1]}
    facts |= {"relative_rmse": errors[place], "relative_rmse_of_all": errors[-1]}
    asked[some] = sizes[place]
    return Regression().solve(replace(given, **asked), moments), facts
