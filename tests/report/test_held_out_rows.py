"""The rows predicted worst, and linear ridge beside them, against naive loops."""

import numpy as np
import pytest

from streamkern.predict.class_errors import ClassErrors
from streamkern.predict.class_rule import ClassRule, PlainRule
from streamkern.report import held_out_rows
from streamkern.report.held_out_rows import WorstRows, linear_accuracy, linear_rmse, place_of
from streamkern.sources import Block
from streamkern.sources.class_labels import Classes
from streamkern.statistics import RowSample

N = 60
RNG = np.random.default_rng(0)
X, y = RNG.standard_normal((N, 3)), RNG.standard_normal((N, 2))


def added(worst, targets, predicted):
    parts = []
    for block in (Block(X[i : i + 25], targets[i : i + 25], i) for i in range(0, N, 25)):
        part = worst.zero()
        part.add(block, predicted[block.places()])
        parts.append(part)
    return parts[2].merge(parts[0]).merge(parts[1]).rows


def test_the_worst_rows_are_those_of_largest_residuals_in_their_units():
    predicted, unit = RNG.standard_normal((N, 2)), np.array([1.0, 10.0])
    found = added(WorstRows(unit), y, predicted)
    sizes = np.abs((y - predicted) / unit).max(axis=1)
    assert found.places.tolist() == np.argsort(-sizes)[:10].tolist()
    assert np.array_equal(found.facts, np.hstack([y, predicted])[found.places])


def test_of_classes_they_are_those_whose_own_class_got_the_least_probability():
    scores, signs = 0.9 * np.tanh(y[:, :1]), np.sign(X[:, :1])
    rule = ClassRule(Classes(np.array(["a", "b"])), PlainRule())
    found = added(WorstRows(np.ones(1), rule), signs, scores)
    own = (1 + signs * scores)[:, 0] / 2
    assert found.places.tolist() == np.argsort(own)[:10].tolist()
    assert found.facts[:, 2] == pytest.approx(own[found.places])
    assert np.array_equal(found.facts[:, 0], (signs[found.places, 0] > 0) * 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_linear_ridge_leaves_out_each_row_in_turn(weighted, monkeypatch):
    monkeypatch.setattr(held_out_rows, "_PENALTIES", np.array([0.3]))
    s = RNG.random(N) + 0.5 if weighted else np.ones(N)
    targets, sample = X @ [[1.0], [2.0], [0.0]] + y[:, :1], RowSample(N)
    sample.update([Block(X, targets, 0, s)])
    w = s / s.sum()
    deviation = np.sqrt(w @ (X - w @ X) ** 2)
    A, penalty = np.column_stack([np.ones(N), X / deviation]), 0.3 / N * np.diag([0, 1, 1, 1])
    predicted = np.empty((N, 1))
    for i in range(N):
        own = np.where(np.arange(N) == i, 0.0, w)[:, None] * A
        predicted[i] = A[i] @ np.linalg.solve(A.T @ own + penalty, own.T @ targets)
    rmse = np.sqrt(np.average((targets - predicted) ** 2, axis=0, weights=s))
    assert linear_rmse(sample) == pytest.approx(rmse)
    signs = np.sign(targets)
    sample = RowSample(N)
    sample.update([Block(X, signs, 0)])
    rule = ClassRule(Classes(np.array(["a", "b"])), PlainRule())
    assert 0.8 < linear_accuracy(sample, ClassErrors(rule)) <= 1.0


def test_a_row_is_named_by_its_file_where_there_are_several():
    files = [{"path": "a.h5", "n_rows": 1000}, {"path": "b.h5", "n_rows": 5000}]
    assert place_of({"files": files}, 2234) == "b.h5, row 1,234"
    assert place_of({"files": files[1:]}, 2234) == place_of({}, 2234) == "2,234"
