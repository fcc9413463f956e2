"""Predictions as ONNX files, which many runtimes take."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.exchange.features import feature_parts, is_of_landmarks
from streamkern.exchange.graph import Graph
from streamkern.model import RidgeModel
from streamkern.storage import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from streamkern.predictor import Predictor

_PRECISIONS: dict[str, np.dtype[Any]] = {
    "single": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}


def to_onnx(
    model: Any, path: str | Path, *, precision: str | None = None, force: bool = False
) -> None:
    """Write the predictions of a fitted model, or the scores of principal components, as ONNX.

    The graph takes rows `X` (n, p) and gives `y_pred`, as `predict` does, or `scores` (n, K).  It
    is of Fourier features of any kind, of landmarks with a kernel of the Euclidean distance or of
    products, or of the identity map.

    Parameters
    ----------
    model : RandomFeatureRidge or RandomFeaturePCA
        Fitted.
    path : path
    precision : {'single', 'double'}, optional
        Of rows, features and what is returned; by default the model's.  Rows are standardised,
        products are added up, and kernels are evaluated at landmarks in double.
    force : bool
        Replace an existing file.

    Raises
    ------
    ParameterError
        If ONNX operators do not express the features, or the file would be larger than 2 GB.
    OutputError
        If the file exists and `force` is not given, or cannot be written, or onnx is missing.
    """
    if isinstance(model, RidgeModel) and hasattr(model, "predictor_"):
        predictor, output = model.predictor_, "y_pred"
    elif hasattr(model, "principal_"):
        predictor, output = model.principal_.projection, "scores"
    else:
        raise ParameterError(
            f"an ONNX file is of a fitted RandomFeatureRidge or RandomFeaturePCA, not of "
            f"{type(model).__name__}; fit one first."
        )
    write_onnx(path, predictor, output, precision=precision, force=force)


def write_onnx(
    path: str | Path,
    predictor: Predictor,
    output: str,
    *,
    precision: str | None = None,
    force: bool = False,
) -> None:
    """Write a predictor as an ONNX file; the rest is as in `to_onnx`.

    Parameters
    ----------
    path : path
    predictor : Predictor
    output : str
        What the predictions are called.
    precision : {'single', 'double'}, optional
    force : bool
    """
    if precision not in (None, *_PRECISIONS):
        raise ParameterError(
            f"precision must be 'single' or 'double', not {precision!r}; choose one."
        )
    if precision is not None:
        predictor = replace(predictor, precision=precision)
    model = onnx_model(predictor, output)
    with replacing(path, force=force) as temporary:
        temporary.write_bytes(model.SerializeToString())


def onnx_model(predictor: Predictor, output: str) -> Any:
    """Return the graph constant + (phi(x) / scale - shift)^T coef, as `predict` computes it."""
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
    total = graph.cast(graph("Sum", *sums), outside)
    shape: list[Any] = ["n", q]
    if predictor.flat:
        total, shape = graph("Squeeze", total, graph.constant([1], np.int64)), ["n"]
    graph.nodes.append(graph.onnx.helper.make_node("Identity", [total], [output], name=output))
    facts = {"map": form.feature_map.name, "precision": predictor.precision}
    return graph.model(output, outside, (["n", p], shape), facts)
