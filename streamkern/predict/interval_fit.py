"""The scale of errors of a regression, learnt from errors on rows that a model has not seen."""

from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.predict.intervals import (
    POWERS,
    RANKS,
    TENTHS,
    Intervals,
    leading_features,
    rank_powers,
)
from streamkern.predict.predictor import Predictor
from streamkern.sources import Block

# Penalties of log sigma over the weight of the rows, from the largest, and how it is solved for.
_PENALTIES = 10.0 ** np.arange(1.0, -7.0, -1.0)
_STEPS, _STEP_ENOUGH = 12, 1e-3
# Times the error expected of a row that its own counts for at the most.
_LARGEST = 6.0
# No error is less, of a constant target for one: its logarithm, and its inverse, are numbers.
_LEAST = 1e-280
# What rows leave to a row without itself at the least, in the scale of errors.
_LEAST_SPARE = 0.1
# Rows of a group at the least, and of all.
_ROWS_OF_GROUP, _FEWEST = 200, 10
# Shares of rows that quantiles are kept of: half per cents, and tenths beyond 99.5.
LEVELS = np.concatenate([np.arange(5, 996, 5), np.arange(996, 1000)]) / 1000


class _Scale(NamedTuple):
    """log sigma of rows without each of them, (m,), and what it follows from."""

    logs: Floats
    slopes: Floats  # (k,)
    level: float  # where all columns are 0


def fitted_intervals(
    predictor: Predictor, rows: Block, predicted: Floats, *, of_gaps: bool
) -> Intervals | None:
    """Return intervals by predictions (m, q) of models that have not seen rows, NaN if unknown.

    If all rows of a place were left out together, in `of_gaps`, their errors are much alike, and
    features would know them again.  They say nothing of a gap to come but how large errors are.
    """
    known: Any = np.isfinite(predicted).all(axis=1)
    if known.sum() < _FEWEST:
        return None
    rows, predicted = rows.where(known), predicted[known]
    leading, weights = leading_features(predictor.feature_map), rows.each_weight()
    features, found = leading.transform(rows.X), []
    size = np.sqrt(np.mean(np.square(features).sum(axis=1))) or 1.0
    n_groups = int(np.clip(len(rows) // _ROWS_OF_GROUP, 1, TENTHS))
    for y, of_target in zip(rows.y.T, predicted.T, strict=True):
        errors = np.maximum(np.abs(y - of_target), _LEAST)
        ranks = np.quantile(of_target, np.linspace(0, 1, RANKS))
        columns = np.hstack([features / size, rank_powers(of_target, ranks)])
        logs, slopes, level = _fitted_scale(columns, errors, weights)
        if of_gaps:
            level = float(np.log(np.average(errors, weights=weights)))
            logs, slopes = np.full_like(logs, level), np.zeros_like(slopes)
        edges = np.quantile(logs, np.arange(1, TENTHS) / TENTHS)
        groups = (logs > edges[:, None]).sum(axis=0) * n_groups // TENTHS
        members = [groups == g for g in range(n_groups)]
        # Where all are alike, groups have no rows of their own.
        members = [some if some.any() else ~some for some in members]
        scores = [_quantiles(errors[g] / np.exp(logs[g]), weights[g]) for g in members]
        ends, coef, slopes = (logs.min(), logs.max()), slopes[:-POWERS] / size, slopes[-POWERS:]
        found.append((coef, level, slopes, ranks, ends, edges, scores))
    stacked: Any = [np.stack(each, axis=-1) for each in zip(*found, strict=True)]
    coef, level, slopes, ranks, ends, edges, scores = stacked
    attained = np.isfinite(scores).all(axis=(0, 2))
    linear, known = Predictor(leading, coef, level, predictor.precision), scores[:, attained]
    return Intervals(linear, slopes, ranks, ends, edges, LEVELS[attained], known)


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
    logs = np.full(len(errors), np.log(weights @ errors / weight))
    best, found = np.inf, None
    for penalty in _PENALTIES * weight:
        shrunk = values / (values + penalty)
        for _ in range(_STEPS):
            before = logs
            wanted = logs + _ratios(errors, logs) - 1.0
            level = weights @ wanted / weight
            along = shrunk * (basis.T @ (roots * (wanted - level)))
            logs = level + basis @ along / roots
            if np.abs(logs - before).max() < _STEP_ENOUGH:
                break
        leverages = weights / weight + np.square(basis) @ shrunk
        without = wanted - (wanted - logs) / np.maximum(1.0 - leverages, _LEAST_SPARE)
        ratios = _ratios(errors, without)
        loss = weights @ (without + ratios)
        if found is None or loss < best:
            slopes = vectors @ (along / np.sqrt(values))
            best, found = loss, _Scale(without, slopes, level - means @ slopes)
    assert found is not None  # noqa: S101  for the type checker
    return found


def _ratios(errors: Floats, logs: Floats) -> Floats:
    return np.exp(np.minimum(np.log(errors) - logs, np.log(_LARGEST)))


def _quantiles(scores: Floats, weights: Floats) -> Floats:
    """Return the least scores that hold shares of rows, one more counted; infinite beyond all.

    Lei, G'Sell, Rinaldo, Tibshirani and Wasserman (2018), "Distribution-free predictive inference
    for regression".
    """
    order = np.argsort(scores)
    shares = np.cumsum(weights[order]) / (weights.sum() + weights.mean())
    return np.append(scores[order], np.inf)[np.searchsorted(shares, LEVELS - 1e-12)]
