"""The scale of errors of a regression, learnt from errors on rows that a model has not seen."""

from typing import NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.features import FeatureMap
from streamkern.predict.intervals import TENTHS, Intervals, rank_powers
from streamkern.predict.predictor import Predictor

# Penalties of log sigma over the weight of the rows, from the largest, and how it is solved for.
_PENALTIES = 10.0 ** np.arange(1.0, -7.0, -1.0)
_STEPS, _STEP_ENOUGH = 12, 1e-3
# Times the error expected of a row that its own counts for at the most.
_LARGEST = 6.0
# What rows leave to a row without itself at the least, in the scale of errors.
_LEAST_SPARE = 0.1
# Even ranks of predictions that are kept, and rows of a group at the least.
_RANKS, _ROWS_OF_GROUP = 33, 200
# Shares of rows that quantiles are kept of: half per cents, and tenths beyond 99.5.
LEVELS = np.concatenate([np.arange(5, 996, 5), np.arange(996, 1000)]) / 1000


class _Scale(NamedTuple):
    """log sigma of rows without each of them, (m,), and what it follows from."""

    logs: Floats
    slopes: Floats  # (k,), of columns less their means
    means: Floats  # (k,)
    level: float  # of all rows


def fitted_intervals(
    leading: FeatureMap, X: Array, y: Floats, weights: Floats, predicted: Floats, *, precision: str
) -> Intervals:
    """Return intervals from predictions (m, q) of rows by models that have not seen them."""
    features = leading.transform(X)
    size = np.sqrt(np.mean(np.square(features).sum(axis=1))) or 1.0
    features /= size
    d, errors = features.shape[1], np.abs(y - predicted)
    n_groups = int(np.clip(len(X) // _ROWS_OF_GROUP, 1, TENTHS))
    coef, found = np.empty((d, errors.shape[1])), []
    for j, of_target in enumerate(errors.T):
        ranks = np.quantile(predicted[:, j], np.linspace(0.0, 1.0, _RANKS))
        columns = np.concatenate([features, rank_powers(predicted[:, j], ranks)], axis=1)
        scale = _fitted_scale(columns, of_target, weights)
        coef[:, j] = scale.slopes[:d] / size
        ends = np.array([scale.logs.min(), scale.logs.max()])
        edges = np.quantile(scale.logs, np.arange(1, TENTHS) / TENTHS)
        groups = np.searchsorted(edges, scale.logs) * n_groups // TENTHS
        scores = of_target / np.exp(scale.logs)
        quantiles = [_quantiles(scores[groups == g], weights[groups == g]) for g in range(n_groups)]
        level = scale.level - scale.means @ scale.slopes
        found.append((level, scale.slopes[d:], ranks, ends, edges, np.array(quantiles)))
    parts = [np.stack(each, axis=-1) for each in zip(*found, strict=True)]
    intercept, slopes, ranks, ends, edges, scores = parts
    known = np.isfinite(scores).all(axis=(0, 2))
    linear = Predictor(leading, coef, intercept, precision=precision)
    return Intervals(linear, slopes, ranks, ends, edges, LEVELS[known], scores[:, known])


def _fitted_scale(columns: Floats, errors: Floats, weights: Floats) -> _Scale:
    """Minimise the sum of log sigma + |e| / sigma over rows, with a penalty on its slopes.

    That is the likelihood of Laplace's distribution, by Fisher's scoring: weighted least squares of
    log sigma + |e| / sigma - 1.  The penalty has the least sum over rows without each, in closed
    form.
    """
    weight = weights.sum()
    means, roots = weights @ columns / weight, np.sqrt(weights)
    centred = roots[:, None] * (columns - means)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    kept = values > 1e-12 * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    basis = centred @ (vectors / np.sqrt(values))
    least = np.finfo(float).tiny
    logs = np.full(len(errors), np.log(max(weights @ errors / weight, least)))
    best, found = np.inf, None
    for penalty in _PENALTIES * weight:
        shrunk = values / (values + penalty)
        for _ in range(_STEPS):
            before = logs
            wanted = logs + np.minimum(errors * np.exp(-logs), _LARGEST) - 1.0
            level = weights @ wanted / weight
            along = shrunk * (basis.T @ (roots * (wanted - level)))
            logs = level + basis @ along / roots
            if np.abs(logs - before).max() < _STEP_ENOUGH:
                break
        leverages = weights / weight + np.square(basis) @ shrunk
        without = wanted - (wanted - logs) / np.maximum(1.0 - leverages, _LEAST_SPARE)
        ratios = np.minimum(errors * np.exp(-without), _LARGEST)
        loss = weights @ (without + ratios)
        if found is None or loss < best:
            slopes = vectors @ (along / np.sqrt(values))
            best, found = loss, _Scale(without, slopes, means, level)
    assert found is not None  # noqa: S101  for the type checker
    return found


def _quantiles(scores: Floats, weights: Floats) -> Floats:
    """Return the least scores that hold shares of rows, one more counted; infinite beyond all.

    Lei, G'Sell, Rinaldo, Tibshirani and Wasserman (2018), "Distribution-free predictive inference
    for regression".
    """
    order = np.argsort(scores)
    shares = np.cumsum(weights[order]) / (weights.sum() + weights.mean())
    return np.append(scores[order], np.inf)[np.searchsorted(shares, LEVELS - 1e-12)]
