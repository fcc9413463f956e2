"""ONNX export: predictions as graphs that many runtimes take."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import ParameterError
from streamkern.estimators.loading import fitted_of
from streamkern.extensions.export.onnx_graph import Graph, feature_parts
from streamkern.features import KernelColumns, Standardized
from streamkern.storage.outputs import replacing

_PRECISIONS: dict[str, Any] = {"single": np.dtype(np.float32), "double": np.dtype(np.float64)}
_OUTPUTS = {
    "RandomFeatureClassifier": "y_proba",
    "RandomFeatureRidge": "y_pred",
    "RandomFeaturePCA": "scores",
}


def to_onnx(
    model: Any, path: str | Path, *, precision: str | None = None, force: bool = False
) -> str:
    """Write the predictions of a fitted model, or the scores of principal components, as ONNX.

    The graph takes rows `X` (n, p) and gives `y_pred`, as `predict` does; of a classifier `y_proba`
    (n, K), as `predict_proba` does, with the labels of its columns as JSON in the file's metadata
    `classes`; of components `scores` (n, K).  It is of Fourier features of any kind, of landmarks
    with a kernel of the Euclidean distance or of products, or of the identity map.

    Parameters
    ----------
    model : RandomFeatureRidge, RandomFeatureClassifier or RandomFeaturePCA
        Fitted.
    path : path
    precision : {'single', 'double'}, optional
        Of rows, features and what is returned; by default the model's.  Rows are standardised,
        products are added up, and kernels are evaluated at landmarks in double.  ONNX Runtime has
        cosines in double from 1.29 on.
    force : bool
        Replace an existing file.

    Returns
    -------
    str
        The name of what the graph gives.

    Raises
    ------
    ParameterError
        If ONNX operators do not express the features, or the file would be larger than 2 GB.
    OutputError
        If the file exists and `force` is not given, or cannot be written, or onnx is missing.
    """
    graph, whole = exported(model, "an ONNX file", precision)
    made = graph.model(*whole)
    with replacing(path, force=force) as temporary:
        temporary.write_bytes(made.SerializeToString())
    return str(whole[1])


def exported(
    model: Any, file: str, precision: str | None, rows_in: str | None = None
) -> tuple[Graph, Any]:
    """Return a graph, and what `Graph.model` takes, of constant + (phi(x) / scale - shift)^T coef.

    The rule of a classifier makes probabilities of it.  Rows and results are in the precision
    `rows_in`, by default that of the features.
    """
    fitted: Any = fitted_of(model)
    output = _OUTPUTS.get(getattr(fitted, "estimator", ""))
    if output is None:
        raise ParameterError(
            f"{file} is of a fitted RandomFeatureRidge, RandomFeatureClassifier or "
            f"RandomFeaturePCA, not of {type(fitted).__name__}; fit one first."
        )
    if precision not in (None, *_PRECISIONS):
        raise ParameterError(
            f"precision must be 'single' or 'double', not {precision!r}; choose one."
        )
    predictor = replace(fitted.predictor, precision=precision or fitted.predictor.precision)
    form, rule, q = predictor.form, getattr(fitted, "rule", None), predictor.n_targets
    inside = _PRECISIONS[predictor.precision]
    outside = _PRECISIONS[rows_in or predictor.precision]
    if isinstance(getattr(form.feature_map, "inner", form.feature_map), KernelColumns):
        # Coefficients of values at landmarks are large and cancel.
        form, inside = replace(predictor, precision="double").form, _PRECISIONS["double"]
    graph = Graph(inside)
    sums = [graph.constant(form.constant, np.float64)]
    as_given = inside == outside or isinstance(form.feature_map, Standardized)  # in double
    rows = "X" if as_given else graph.cast("X", inside)
    for features, columns in feature_parts(graph, form.feature_map, rows):
        values = features
        if np.any(form.shift):
            values = graph("Sub", values, np.asarray(form.shift)[columns])
        if form.coef.dtype != graph.dtype:
            values = graph.cast(values, form.coef.dtype)
        coef = graph.constant(form.coef[columns], form.coef.dtype)
        sums.append(graph.cast(graph("MatMul", values, coef), np.float64))
    total, shape, facts = graph("Sum", *sums), ["n", q], {}
    if rule is not None:
        graph.dtype = _PRECISIONS["double"]
        total, shape = _probabilities(graph, rule, total), ["n", len(rule.classes)]
        facts = {"classes": json.dumps(rule.classes.as_dict()["values"])}
    if predictor.limits is not None:
        ends = (graph.constant(end, np.float64) for end in predictor.limits)
        # Runtimes differ in what is the larger of NaN and a number.
        total = graph("Add", graph("Clip", total, *ends), graph("Sub", total, total))
    total = graph.cast(total, outside)
    if predictor.flat and rule is None:
        total, shape = graph("Squeeze", total, graph.constant([1], np.int64)), ["n"]
    facts |= {"map": form.feature_map.name, "precision": predictor.precision}
    shapes = ["n", predictor.feature_map.n_features], shape
    return graph, (total, output, outside, shapes, facts)


def _probabilities(graph: Graph, rule: Any, scores: str) -> str:
    """Return the probabilities of classes (n, K), as `ClassRule.probabilities` computes them."""
    odds = _log_odds(graph, rule.calibrator, scores)
    if len(rule.classes) == 2:
        odds = graph("Concat", graph("Neg", odds), odds, axis=1)
    # log p = min(o, 0) - log(1 + exp(-|o|)): not every runtime has Softplus in double.
    small = graph("Exp", graph("Neg", graph("Abs", odds)))
    rest = graph("Log", graph("Add", small, 1.0))
    return graph("Softmax", graph("Sub", graph("Min", odds, 0.0), rest), axis=1)


def _log_odds(graph: Graph, calibrator: Any, scores: str) -> str:
    """Return the odds of classes by their scores, as the calibrator of that name has them."""
    if calibrator.name == "sigmoid":
        return graph("Add", graph("Mul", scores, calibrator.slope), calibrator.offset)
    if calibrator.name == "spline":
        odds = _by_score(graph, scores, _extended, calibrator.scores, calibrator.odds)
    elif calibrator.name == "isotonic":
        values = calibrator.probabilities
        odds = _logit(graph, _by_score(graph, scores, _interpolated, calibrator.scores, values))
    else:
        half = graph.constant(0.5)
        p = graph("Add", graph("Mul", scores, half), half)
        least = float(np.finfo(np.float64).eps)  # as of `predict_proba`
        odds = _logit(graph, graph("Min", graph("Max", p, least), 1.0 - least))
    # Runtimes differ in what the larger of NaN and a number is.
    return graph("Add", odds, graph("Sub", scores, scores))


def _logit(graph: Graph, p: str) -> str:
    return graph("Sub", graph("Log", p), graph("Log", graph("Sub", 1.0, p)))


def _by_score(graph: Graph, scores: str, function: Any, points: Any, values: Any) -> str:
    """Return a function (n, q) of every score, by its points and the values there."""
    each = enumerate(zip(points, values, strict=True))
    return graph("Concat", *(function(graph, scores, j, *both) for j, both in each), axis=1)


def _interpolated(graph: Graph, scores: str, column: int, points: Floats, values: Floats) -> str:
    """Return the function (n, 1) of a score that is straight between points, and level outside."""
    score = graph.columns(scores, [column])
    if len(points) == 1:
        return graph("Add", graph("Sub", score, score), values[0])
    within = graph("Min", graph("Max", score, points[:-1]), points[1:])
    passed = graph("Sub", within, points[:-1])
    rises = np.diff(values) / np.diff(points)
    return graph("Add", graph("MatMul", passed, rises[:, None]), values[0])


def _extended(graph: Graph, scores: str, column: int, points: Floats, values: Floats) -> str:
    """Return the function (n, 1) of a score that goes on outside of its points as at the ends."""
    within = _interpolated(graph, scores, column, points, values)
    score = graph.columns(scores, [column])
    rises = np.diff(values) / np.diff(points) if len(points) > 1 else np.zeros(1)
    below = graph("Mul", graph("Min", graph("Sub", score, points[0]), 0.0), rises[0])
    above = graph("Mul", graph("Max", graph("Sub", score, points[-1]), 0.0), rises[-1])
    return graph("Sum", within, below, above)
