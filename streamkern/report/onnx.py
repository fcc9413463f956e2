"""ONNX export: predictions as graphs that many runtimes take."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.models.component_fit import FittedComponents
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.loading import fitted_of
from streamkern.report.onnx_classes import probabilities
from streamkern.report.onnx_features import feature_parts, is_of_landmarks
from streamkern.report.onnx_graph import Graph
from streamkern.storage import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from streamkern.predict.class_rule import ClassRule
    from streamkern.predict.predictor import Predictor

_PRECISIONS: dict[str, np.dtype[Any]] = {
    "single": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}


def to_onnx(
    model: Any, path: str | Path, *, precision: str | None = None, force: bool = False
) -> None:
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

    Raises
    ------
    ParameterError
        If ONNX operators do not express the features, or the file would be larger than 2 GB.
    OutputError
        If the file exists and `force` is not given, or cannot be written, or onnx is missing.
    """
    write_onnx(path, fitted_of(model), precision=precision, force=force)


def write_onnx(
    path: str | Path, model: Any, *, precision: str | None = None, force: bool = False
) -> str:
    """Write a fitted model as an ONNX file, and return the name of what it gives."""
    outputs: dict[Any, str] = {
        FittedClassifier: "y_proba",
        FittedRidge: "y_pred",
        FittedComponents: "scores",
    }
    output = outputs.get(type(model))
    if output is None:
        raise ParameterError(
            f"an ONNX file is of a fitted RandomFeatureRidge, RandomFeatureClassifier or "
            f"RandomFeaturePCA, not of {type(model).__name__}; fit one first."
        )
    if precision not in (None, *_PRECISIONS):
        raise ParameterError(
            f"precision must be 'single' or 'double', not {precision!r}; choose one."
        )
    predictor = model.predictor
    if precision is not None:
        predictor = replace(predictor, precision=precision)
    graph = onnx_model(predictor, output, getattr(model, "rule", None))
    with replacing(path, force=force) as temporary:
        temporary.write_bytes(graph.SerializeToString())
    return output


def onnx_model(predictor: Predictor, output: str, rule: ClassRule | None = None) -> Any:
    """Return the graph constant + (phi(x) / scale - shift)^T coef, as `predict` computes it.

    With the rule of a classifier it goes on to the probabilities of classes.
    """
    form, p, q = predictor.form, predictor.feature_map.n_features, predictor.coef.shape[1]
    outside = inside = _PRECISIONS[predictor.precision]
    if is_of_landmarks(form.feature_map):
        # Coefficients of values at landmarks are large and cancel.
        form, inside = replace(predictor, precision="double").form, _PRECISIONS["double"]
    graph = Graph(inside)
    sums = [graph.constant(form.constant, np.float64)]
    rows = "X" if inside == outside else graph.cast("X", inside)
    for made, columns in feature_parts(graph, form.feature_map, rows):
        features = made
        if np.any(form.shift):
            features = graph("Sub", features, graph.constant(np.asarray(form.shift)[columns]))
        if form.coef.dtype != graph.dtype:
            features = graph.cast(features, form.coef.dtype)
        coef = graph.constant(form.coef[columns], form.coef.dtype)
        sums.append(graph.cast(graph("MatMul", features, coef), np.float64))
    total, shape, facts = graph("Sum", *sums), ["n", q], {}
    if rule is not None:
        total, shape = probabilities(graph, rule, total), ["n", len(rule.classes)]
        facts = {"classes": json.dumps(rule.classes.as_dict()["values"])}
    total = graph.cast(total, outside)
    if predictor.flat and rule is None:
        total, shape = graph("Squeeze", total, graph.constant([1], np.int64)), ["n"]
    graph.nodes.append(graph.onnx.helper.make_node("Identity", [total], [output], name=output))
    facts |= {"map": form.feature_map.name, "precision": predictor.precision}
    return graph.model(output, outside, (["n", p], shape), facts)
