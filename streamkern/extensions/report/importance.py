"""Permutation importance: what a score loses where a column is shuffled among rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import compute_all, delayed, scatter
from streamkern.errors.checks import checked_integer
from streamkern.estimators.loading import fitted_model, rows_of
from streamkern.models.scoring import checked_shape, scored
from streamkern.predict.evaluation import Evaluation, FoldPredictors
from streamkern.predict.predictor import Predictor
from streamkern.sources import Block
from streamkern.statistics import RowSample

# Rows that columns are shuffled among: as many as products allow, of features with inputs.
_FEWEST, _MOST, _PRODUCTS = 64, 2048, 1 << 36
# Beside its products, a feature takes the time of so many.
_WAVE = 32
# How often columns are shuffled for a report.
_REPEATS = 2


def permutation_importance(
    estimator: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    n_repeats: int = 5,
    max_samples: int | None = None,
    random_state: int = 0,
) -> Any:
    """Say how much worse a model predicts where one column of the table is shuffled among rows.

    The score is that of `estimator.score`: R^2, averaged over targets, or the accuracy.  All inputs
    that one column of a table became are shuffled together.  The rows are read once; give rows that
    the model was not fitted on.  Of two columns that tell the same, each may seem to matter little.

    Parameters
    ----------
    estimator : RandomFeatureRidge or RandomFeatureClassifier
        Fitted, or loaded from a file.
    X, y, sample_weight
        Rows (n, p), as `evaluate` takes them.  A row of weight s counts as s equal rows.
    n_repeats : int
        How often each column is shuffled.
    max_samples : int, optional
        The score is taken on at most so many rows, a random sample; by default 2,048, and fewer of
        many columns.
    random_state : int
        The seed of the sample and of the shuffles.

    Returns
    -------
    sklearn.utils.Bunch
        `importances` (c, n_repeats), by how much the score falls; `importances_mean` and
        `importances_std` (c,) of these; `feature_names` (c,), the columns of the table, or the
        inputs where there is no table; `n_samples`, the rows that the score was taken on.

    Raises
    ------
    ParameterError
        If the model is no fitted regression or classifier, or a number is not one of at least 1.
    DataError
        If rows have not the inputs and targets of the model.

    References
    ----------
    Breiman (2001), "Random forests".

    Examples
    --------
    >>> import numpy as np, streamkern
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> model = streamkern.RandomFeatureRidge(n_components=64).fit(X[:800], X[:800, 1])
    >>> found = streamkern.permutation_importance(model, X[800:], X[800:, 1])
    >>> int(found.importances_mean.argmax())
    1
    """
    from sklearn.utils import Bunch

    model = fitted_model(estimator, "importances are")
    size = 1 if max_samples is None else max_samples
    given = {
        "n_repeats": (n_repeats, 1),
        "max_samples": (size, 1),
        "random_state": (random_state, 0),
    }
    for name, (value, least) in given.items():
        sentence = f"{name} must be a whole number of at least {least}, not {{!r}}; give one."
        checked_integer(value, sentence, least)
    ridge, source = model.ridge, model.source(*rows_of(estimator, X, y, sample_weight))
    ridge.check_rows(source)
    D, _ = checked_shape(ridge.predictor, source)
    n_rows = max_samples or _affordable(model, n_repeats)
    empty, skip = RowSample(n_rows, random_state), ridge.parameters.skips_bad_rows
    _, sample, _ = scored(source, empty, empty, 8 * D, "importance", skip)
    evaluation = Evaluation(ridge.predictor, model.measure())
    falls = _score_falls(model, evaluation, sample, n_repeats, random_state)
    return Bunch(
        importances_mean=falls.mean(axis=1),
        importances_std=falls.std(axis=1),
        importances=falls,
        feature_names=[name for name, _ in model.columns.table],
        n_samples=len(sample.X),
    )


def held_out_importance(
    model: Any, predictor: Predictor | FoldPredictors, sample: RowSample
) -> tuple[RowSample, Floats]:
    """Return rows, which weigh as in the fit, and the mean falls of the score on them, (c,)."""
    sample = sample.first(_affordable(model, _REPEATS))
    evaluation = Evaluation(predictor, model.measure(as_fitted=True))
    seed = model.ridge.parameters.random_state
    return sample, _score_falls(model, evaluation, sample, _REPEATS, seed).mean(axis=1)


def _affordable(model: Any, n_repeats: int) -> int:
    """Return how many rows may be predicted, as they are and with every column shuffled."""
    predictor, columns = model.ridge.predictor, len(model.columns.table)
    of_row = columns * (1 + n_repeats) * predictor.n_components * (model.n_features + _WAVE)
    return min(max(_PRODUCTS // of_row, _FEWEST), _MOST)


def _score_falls(
    model: Any, evaluation: Evaluation, sample: RowSample, n_repeats: int, random_state: int
) -> Floats:
    """Return by how much the score falls where the inputs of a column are shuffled, (c, repeats).

    Each column has a generator of its own, so any number of workers finds the same.
    """
    rows = scatter(Block(sample.X, sample.y, 0, sample.counts, sample.places))
    empty, tasks = scatter(evaluation), []
    for j, (_, inputs) in enumerate(model.columns.table):
        seed = [random_state, j]
        tasks.append(delayed(_falls, empty, rows, inputs, n_repeats, seed, name=f"importance-{j}"))
    return np.array(compute_all(tasks))


def _falls(
    empty: Evaluation, rows: Block, inputs: Sequence[int], n_repeats: int, seed: Sequence[int]
) -> list[float]:
    n, rng, falls = len(rows), np.random.default_rng(seed), []
    odds = None if rows.weights is None else rows.weights / rows.weights.sum()
    whole = _score(empty, rows, rows.X)
    for _ in range(n_repeats):
        # A row of weight s is as s rows to take values from.
        others = rng.permutation(n) if odds is None else rng.choice(n, n, p=odds)
        X = rows.X.copy()
        X[:, inputs] = rows.X[others][:, inputs]
        falls.append(whole - _score(empty, rows, X))
    return falls


def _score(empty: Evaluation, rows: Block, X: Floats) -> float:
    evaluation = empty.zero()
    evaluation.update([Block(X, rows.y, 0, rows.weights, rows.rows)])
    measure: Any = evaluation.measures[0]
    return float(measure.score)
