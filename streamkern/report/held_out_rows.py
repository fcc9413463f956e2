"""The rows that are predicted worst, and what the simplest models do on the same rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.predict.class_errors import ClassErrors, is_known
from streamkern.predict.class_rule import ClassRule, PlainRule, codes_of
from streamkern.predict.deviation import Largest
from streamkern.predict.evaluation import Measure
from streamkern.sources import Block
from streamkern.statistics import RowSample, part

_WORST = 10
# Penalties of linear ridge, for a row.
_PENALTIES = np.geomspace(1e-6, 1e2, 9)


class WorstRows(Measure):
    """Rows of the largest residual in units of the targets (q,), or of the least likely class.

    Facts of rows are targets and predictions, (k, 2 q); or of classes the place of the class, that
    of the one predicted, and the probability that the right one got, (k, 3).
    """

    unit: Floats
    rule: ClassRule | None = None
    rows: Largest = part(lambda measure: Largest(_WORST))  # noqa: ARG005  as all parts are made

    def add(self, rows: Block, predicted: Floats) -> None:
        known = is_known(predicted, rows.y)
        y, predicted = rows.y[known], predicted[known]
        if self.rule is None:
            sizes, facts = np.abs((y - predicted) / self.unit), np.hstack([y, predicted])
            self.rows.add(sizes.max(axis=1), rows.places()[known], facts)
            return
        of_class = codes_of(y)
        logs = self.rule.log_probabilities(predicted)[np.arange(len(y)), of_class]
        facts = np.column_stack([of_class, self.rule.codes(predicted), np.exp(logs)])
        self.rows.add(-logs, rows.places()[known], facts)


def linear_rmse(sample: RowSample) -> Floats:
    """Return the leave-one-out RMSE (q,) of linear ridge on a sample, at its best penalty."""
    residuals = _linear_residuals(sample)
    return np.sqrt(np.average(residuals**2, axis=0, weights=sample.weights))


def linear_accuracy(sample: RowSample, errors: ClassErrors) -> float:
    """Return the accuracy of linear ridge on +1 and -1, each row of the sample left out in turn."""
    linear = ClassErrors(replace(errors.rule, calibrator=PlainRule()), errors.factors)
    rows = Block(sample.y[:, :0], sample.y, 0, sample.weights)
    linear.add(rows, sample.y - _linear_residuals(sample))
    return linear.accuracy


def _linear_residuals(sample: RowSample) -> Floats:
    """Return y_i less what a linear model predicts without row i, (n, q), in closed form."""
    s = sample.weights / sample.weights.sum()
    X, y = (each.astype(float) - s @ each for each in (sample.X, sample.y))
    deviation = np.sqrt(s @ X**2)
    kept = deviation > 1e-9 * np.abs(sample.X).max(axis=0)
    root = np.sqrt(s)[:, None]
    U, d, _ = np.linalg.svd(root * X[:, kept] / deviation[kept], full_matrices=False)
    along, best = U.T @ (root * y), np.inf
    found: Floats = y
    for penalty in _PENALTIES / len(X):
        shrunk = d**2 / (d**2 + penalty)
        leverage = np.minimum(s + U**2 @ shrunk, 1.0 - 1e-9)[:, None]
        residuals = (y - U @ (shrunk[:, None] * along) / root) / (1.0 - leverage)
        error = float(((s @ residuals**2) / np.maximum(s @ y**2, 1e-300)).sum())
        if error < best:
            best, found = error, residuals
    return found


def place_of(data: Mapping[str, Any], place: int) -> str:
    """Say which row it is of the `data` of a report: its number, and its file if there are more."""
    files = data.get("files", [])
    for file in files:
        if place < file["n_rows"]:
            of = " of those with a label" if file.get("unlabelled") else ""
            return f"{file['path']}, row {place:,}{of}" if len(files) > 1 else f"{place:,}{of}"
        place -= file["n_rows"]
    return f"{place:,}"
