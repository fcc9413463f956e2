"""ONNX export of classifiers: from scores of classes to their probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.predict.class_rule import LEAST, IsotonicSteps, PlattSigmoid

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.predict.class_rule import Calibrator, ClassRule
    from streamkern.report.onnx_graph import Graph


def probabilities(graph: Graph, rule: ClassRule, scores: str) -> str:
    """Return the probabilities of classes (n, K), as `ClassRule.probabilities` computes them."""
    odds = _log_odds(graph, rule.calibrator, scores)
    if len(rule.classes) == 2:
        odds = graph("Concat", graph("Neg", odds), odds, axis=1)
    # log p = min(o, 0) - log(1 + exp(-|o|)): not every runtime has Softplus in double.
    small = graph("Exp", graph("Neg", graph("Abs", odds)))
    rest = graph("Log", graph("Add", small, _of(graph, 1.0)))
    logs = graph("Sub", graph("Min", odds, _of(graph, 0.0)), rest)
    return graph("Softmax", logs, axis=1)


def _log_odds(graph: Graph, calibrator: Calibrator, scores: str) -> str:
    """Return the log-odds (n, q) of every class against the rest."""
    if isinstance(calibrator, PlattSigmoid):
        scaled = graph("Mul", scores, _of(graph, calibrator.slope))
        return graph("Add", scaled, _of(graph, calibrator.offset))
    if isinstance(calibrator, IsotonicSteps):
        functions = zip(calibrator.scores, calibrator.probabilities, strict=True)
        columns = [_interpolated(graph, scores, j, *each) for j, each in enumerate(functions)]
        p = graph("Concat", *columns, axis=1)
    else:
        half = _of(graph, 0.5)
        p = graph("Add", graph("Mul", scores, half), half)
        p = _between(graph, p, LEAST, 1.0 - LEAST)
    rest = graph("Sub", _of(graph, 1.0), p)
    odds = graph("Sub", graph("Log", p), graph("Log", rest))
    # Runtimes differ in what the larger of NaN and a number is.
    return graph("Add", odds, graph("Sub", scores, scores))


def _interpolated(graph: Graph, scores: str, column: int, points: Floats, values: Floats) -> str:
    """Return the function (n, 1) of a score that is straight between points, and level outside."""
    score = graph("Gather", scores, graph.constant([column], np.int64), axis=1)
    if len(points) == 1:
        return graph("Add", graph("Sub", score, score), _of(graph, values[0]))
    passed = graph("Sub", _between(graph, score, points[:-1], points[1:]), _of(graph, points[:-1]))
    rises = np.diff(values) / np.diff(points)
    risen = graph("MatMul", passed, _of(graph, rises[:, None]))
    return graph("Add", risen, _of(graph, values[0]))


def _between(graph: Graph, value: str, least: Floats | float, most: Floats | float) -> str:
    return graph("Min", graph("Max", value, _of(graph, least)), _of(graph, most))


def _of(graph: Graph, values: Floats | float) -> str:
    return graph.constant(values, np.float64)
