"""ONNX export: predictions as graphs that many runtimes take."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.errors.checks import check_choice
from streamkern.estimators.loading import fitted_of
from streamkern.extensions.export import map_graphs as maps
from streamkern.extensions.export.onnx_graph import Graph, Value
from streamkern.extensions.export.table_graphs import table_rows
from streamkern.features import KernelColumns, innermost
from streamkern.features.kernel_values import LandmarkFeatures
from streamkern.kernels import ShiftInvariantKernel
from streamkern.predict.deviation import Deviation
from streamkern.predict.intervals import POWERS, RANKS, TENTHS, Interval
from streamkern.predict.predictor import MEANS, Predictor
from streamkern.runtime.memory import in_words
from streamkern.storage.outputs import replacing

# What protocol buffers hold, with room for the nodes.
_MOST_BYTES = 2_000_000_000
_DOUBLE: Any = np.dtype(np.float64)
_PRECISIONS = {"single": np.dtype(np.float32), "double": _DOUBLE}
_OUTPUTS = {
    "RandomFeatureClassifier": "y_proba",
    "RandomFeatureRegressor": "y_pred",
    "RandomFeatureRidge": "y_pred",
    "RandomFeaturePCA": "scores",
}


def to_onnx(
    model: Any,
    path: str | Path,
    *,
    precision: str | None = None,
    return_std: bool = False,
    interval: float | None = None,
    table: bool = False,
    force: bool = False,
) -> str:
    """Write the predictions of a fitted model, or the scores of principal components, as ONNX.

    The graph takes rows `X` (n, p) and gives `y_pred`, as `predict` does; of a classifier `y_proba`
    (n, K), as `predict_proba` does, with the labels of its columns as JSON in the file's metadata
    `classes`; of components `scores` (n, K).  The name of that is returned.  It is of Fourier
    features of any kind, of landmarks with a kernel of the Euclidean distance or of products, or of
    the identity map.

    Parameters
    ----------
    model : RandomFeatureRidge, RandomFeatureRegressor, RandomFeatureClassifier or RandomFeaturePCA
        Fitted.
    path : path
    precision : {'single', 'double'}, optional
        Of rows, features and what is returned; by default the model's.  Rows are standardised,
        products are added up, and kernels are evaluated at landmarks in double.  ONNX Runtime has
        cosines in double from 1.29 on.
    return_std, interval
        As in `predict` of a regression: `y_std` is given too, which takes D^2 numbers; `y_lower`
        and `y_upper`.
    table : bool
        Take the columns of the table that the model is of, (n, 1) each by its name, in place of
        `X`: numbers, NaN where missing; texts as they were, empty where missing; times as seconds
        since 1970, which are double as numbers that are categories.
    force : bool
        Replace an existing file.

    Returns
    -------
    str

    Raises
    ------
    ParameterError
        If ONNX operators do not express the features, the file would be larger than 2 GB, or
        there can be no such intervals.
    ModelFileError
        If the model was saved without what deviations need, or has no intervals.
    OutputError
        If it exists and `force` is not given, or cannot be written, or onnx is missing.
    """
    how: Any = {"return_std": return_std, "interval": interval, "table": table}
    made = (graph := exported(model, ("an ONNX file", _MOST_BYTES), precision, **how)).model()
    with replacing(path, force=force) as temporary:
        temporary.write_bytes(made.SerializeToString())
    return next(iter(graph.outputs))


def exported(
    model: Any,
    file: tuple[str, int],
    precision: str | None,
    rows_in: str | None = None,
    *,
    return_std: bool = False,
    interval: float | None = None,
    table: bool = False,
) -> Graph:
    """Return the graph of a model for a kind of file, which holds so many bytes.

    Rows and results are in the precision `rows_in`, by default that of the features.
    """
    fitted: Any = fitted_of(model)
    output = _OUTPUTS.get(getattr(fitted, "estimator", ""))
    if output is None:
        raise ParameterError(
            f"{file[0]} is of a fitted RandomFeatureRidge, RandomFeatureRegressor, "
            f"RandomFeatureClassifier or RandomFeaturePCA, not of {type(fitted).__name__}; fit one "
            f"first."
        )
    if output != "y_pred" and (return_std or interval is not None):
        raise ParameterError("deviations and intervals are of regressions; leave both out.")
    precision = precision or fitted.predictor.precision
    check_choice("precision", precision, _PRECISIONS)
    predictor = replace(fitted.predictor, precision=precision)
    graph, rule, q = Graph(), getattr(fitted, "rule", None), predictor.n_targets
    outside = _PRECISIONS[rows_in or predictor.precision]
    if table:
        X = table_rows(graph, fitted.columns.recipe, outside)
    else:
        X = graph.taken("X", outside, predictor.feature_map.n_features)
    total = _linear(X, predictor)
    width = None if predictor.flat and rule is None else q
    if rule is not None:
        total, width = _probabilities(rule, total), len(rule.classes)
        graph.facts["classes"] = json.dumps(rule.classes.as_dict()["values"])
    elif predictor.link != "identity":
        mean_of = partial(_in_order, q) if predictor.link == "sorted" else MEANS[predictor.link]
        total = _or_nan(mean_of(total), total)
    given = {output: _clipped(total, predictor)}
    if return_std:
        given["y_std"] = _deviations(X, given[output], fitted, _PRECISIONS[predictor.precision])
    if interval is not None:
        half = _half_widths(X, given[output], fitted.interval(interval))
        given["y_lower"] = _clipped(given[output] - half, predictor)
        given["y_upper"] = _clipped(given[output] + half, predictor)
    if taken := [*given.keys() & graph.inputs.keys()]:
        raise ParameterError(
            f"the graph gives {taken[0]}, as a column of the table is called; rename that, and fit "
            f"again."
        )
    for name, value in given.items():
        graph.give(name, value.astype(outside), width)
    graph.facts |= {"map": predictor.form.feature_map.name, "precision": predictor.precision}
    name, most = file
    if sum(array.nbytes for array in graph.constants.values()) > most:
        raise ParameterError(
            f"the model takes more than the {in_words(most)} that {name} holds; fit one of fewer "
            f"components."
        )
    return graph


def _linear(X: Value, predictor: Predictor) -> Any:
    """Return constant + (phi(x) / scale - shift)^T coef, in double."""
    form, dtype = predictor.form, _PRECISIONS[predictor.precision]
    if isinstance(innermost(form.feature_map), KernelColumns):
        # Coefficients of values at landmarks are large and cancel.
        form, dtype = replace(predictor, precision="double").form, _DOUBLE
    form = maps.with_merged_waves(form)
    sums = [X.graph.constant(form.constant, _DOUBLE)]
    for features, columns in maps.feature_parts(X, form.feature_map, dtype):
        values = features - np.asarray(form.shift)[columns] if np.any(form.shift) else features
        if form.coef.dtype != values.dtype:
            values = values.astype(form.coef.dtype)
        sums.append((values @ form.coef[columns]).astype(_DOUBLE))
    return X.graph("Sum", *sums)


def _clipped(values: Any, predictor: Predictor) -> Any:
    if predictor.limits is None:
        return values
    return _or_nan(np.clip(values, *predictor.limits), values)


def _or_nan(made: Any, values: Any) -> Any:
    """Return what was made of values, NaN where these are: runtimes differ in extremes of NaN."""
    return made + (values - values)


def _in_order(n_columns: int, values: Any) -> Any:
    """Return the columns of every row in ascending order, by exchanges of neighbours."""
    columns = [values.columns([j]) for j in range(n_columns)]
    for end in range(n_columns - 1, 0, -1):
        for j in range(end):
            pair = columns[j : j + 2]
            columns[j : j + 2] = np.minimum(*pair), np.maximum(*pair)
    return values.graph("Concat", *columns, axis=1)


def _deviations(X: Value, means: Any, fitted: Any, dtype: Any) -> Any:
    """Return the standard deviations (n, q) of new targets, as the model's `predict` has them."""
    deviation = Deviation.of(fitted.feature_map, fitted.normal_equations)
    inner = innermost(deviation.feature_map)
    if landmarks := isinstance(inner, LandmarkFeatures):
        kernel = inner.similarities.kernel
        if not isinstance(kernel, ShiftInvariantKernel):
            what = f"the standard deviation at landmarks of the kernel {kernel.name!r}"
            raise maps.no_graph(what, "or a kernel of a distance")
    parts = list(maps.feature_parts(X, deviation.feature_map, _DOUBLE if landmarks else dtype))
    along = ((each - deviation.centre[c]) @ deviation.basis[c] for each, c in parts)
    leverages = X.graph("Sum", *along).astype(_DOUBLE) ** 2 @ deviation.weights + deviation.base
    if hasattr(fitted, "losses"):
        spread = fitted.losses[0].spread(means, leverages)
        return np.sqrt(spread * fitted.report["dispersion"])
    # Of what landmarks leave out of a kernel with k(x, x) = 1.
    beside = (1.0, (parts[0][0] ** 2).sums()) if landmarks else ()
    return np.sqrt((deviation.variances(leverages, *beside) + 1.0) * deviation.noise_variance)


def _half_widths(X: Value, predicted: Any, interval: Interval) -> Any:
    """Return half the widths (n, q) of intervals, as `Interval` has them."""
    known, found = interval.intervals, []
    logs, ends = _linear(X, known.features), np.linspace(-1.0, 1.0, RANKS)
    ranks = maps.straight(predicted, known.ranks.T, [ends] * len(known.ranks.T))
    for j, scores in enumerate(interval.scores.T):
        powers = ranks.columns([j]) ** np.arange(1.0, POWERS + 1)
        log = np.clip(logs.columns([j]) + powers @ known.slopes[:, [j]], *known.ends[:, j])
        each = scores[np.arange(TENTHS) * len(scores) // TENTHS]
        harder = (log > known.edges[:, j]).astype(_DOUBLE)
        found.append(np.exp(log) * (harder @ np.diff(each)[:, None] + each[0]))
    return X.graph("Concat", *found, axis=1)


def _probabilities(rule: Any, scores: Any) -> Any:
    """Return the probabilities of classes (n, K), as `ClassRule.probabilities` computes them."""
    if rule.calibrator.name == "votes" and len(rule.classes) > 2:
        return scores.graph("Softmax", scores, axis=1)
    odds = _log_odds(rule.calibrator, scores)
    if len(rule.classes) == 2:
        odds = scores.graph("Concat", -odds, odds, axis=1)
    # log p = min(o, 0) - log(1 + exp(-|o|)): not every runtime has Softplus in double.
    rest = np.log(np.exp(-abs(odds)) + 1.0)
    return scores.graph("Softmax", np.minimum(odds, 0.0) - rest, axis=1)


def _log_odds(calibrator: Any, scores: Any) -> Any:
    """Return the odds of classes by their scores, as the calibrator of that name has them."""
    if calibrator.name == "votes":
        return scores
    if calibrator.name == "sigmoid":
        return calibrator.log_odds(scores)
    if calibrator.name == "none":
        odds = calibrator.log_odds(scores)
    elif calibrator.name == "spline":
        odds = maps.straight(scores, calibrator.scores, calibrator.odds, goes_on=True)
    else:
        shares = maps.straight(scores, calibrator.scores, calibrator.probabilities)
        odds = np.log(shares) - np.log(1.0 - shares)
    return _or_nan(odds, scores)
