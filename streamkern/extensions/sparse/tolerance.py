"""`export --tolerance`: the model of the fewest features, at an error that is hardly larger."""

from dataclasses import replace
from typing import Any

import click
import numpy as np

from streamkern.cli.console import Console
from streamkern.cli.options import percent
from streamkern.errors import ModelFileError, ParameterError
from streamkern.parameters.parameters import AUTO, Parameters

OPTIONS = {
    "export": (
        click.option(
            "--tolerance",
            type=percent,
            help="Of moments in place of a model: write the model of the fewest features whose "
            "cross-validated error is at most so much above that of all.",
        ),
    )
}


def smaller(console: Console, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the smallest model of moments whose error is within the tolerance, and its facts.

    Features are those that forward selection takes first; of landmarks, where any feature takes all
    of those before it, the leading ones.  Errors are roots of mean squares over variances.
    """
    from streamkern.estimators.problems import Regression
    from streamkern.features import Nystroem
    from streamkern.models.data_moments import load_moments
    from streamkern.solvers.fold_solution import nested_sizes
    from streamkern.storage.codec import MOMENTS, kind_of

    path, tolerance = options["model"], options["tolerance"]
    if tolerance is None:
        return None, {}
    if kind_of(path) not in (MOMENTS, None):  # of which reading says what is wrong
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
    given, some, curve = Parameters(**moments.options.parameters()), "sparse", "sparse_curve"
    has_sizes = len(nested_sizes(moments.feature_map.n_components)) > 1
    if moments.options.feature_map == Nystroem.name and has_sizes:
        some, curve = "n_components", "components_curve"
    asked: dict[str, Any] = {some: AUTO}
    tried = Regression().solve(replace(given, **asked), moments).report[curve]
    sizes, errors = tried["n_components"], np.sqrt(tried["relative_mse"])
    k = int((errors <= (1.0 + tolerance) * errors[-1]).argmax())
    asked[some] = sizes[k]
    facts = {"n_components": sizes[k], "of_components": sizes[-1]}
    facts |= {"relative_rmse": errors[k], "relative_rmse_of_all": errors[-1]}
    console.line(
        f"{sizes[k]:,} of {sizes[-1]:,} features: cross-validated error {errors[k]:.4f} of the "
        f"deviation, and {errors[-1]:.4f} of all"
    )
    return Regression().solve(replace(given, **asked), moments), facts
