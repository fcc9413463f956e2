"""Validation: predictions of held-out rows, in one more light reading of them.

Where the moments of folds are kept, every row is predicted by the model without its fold, and
counted in bins; standard deviations cost D^2 a row, so they are found for a spread sample.  Without
folds, rows of that sample are predicted by the model without each of them, in closed form.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import compute, compute_all, delayed, scatter
from streamkern.errors import DataError
from streamkern.extensions.report.pair_counts import PairCounts, pair_counts
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.held_out_predictors import folds_of, unseen_by
from streamkern.models.scoring import check_fitted_rows, checked_shape, rounded_as_in_fit, scored
from streamkern.passes.column_summary import block_of
from streamkern.predict.deviation import Deviation, without_rows
from streamkern.predict.evaluation import (
    Evaluation,
    FoldPredictors,
    Measure,
    PredictionErrors,
    r2_of,
)
from streamkern.predict.predictor import Predictor
from streamkern.solve import NormalEquations
from streamkern.solvers.held_out_models import LeftOut
from streamkern.sources import Block, Source
from streamkern.statistics import Composite, FoldStatistics, ListedFolds, RowSample

# Rows whose standard deviations are found.
_SAMPLE_ROWS = 4096
# Folds of single precision are known to so much of their squared errors, small penalties included.
_ROUGHLY = 0.05
# Weights of the same rows, but for the rounding of sums; and their losses, whose predictions are
# rounded by blocks.
_ALIKE = np.array([1e-9, 1e-5])


class HeldOutSample(NamedTuple):
    """Means or quantiles (m, f) of rows without their fold, with targets and weights (m,)."""

    predicted: Floats
    actual: Floats
    weights: Floats


class Validation(NamedTuple):
    """Predictions of held-out rows, each by the model without its fold, or without the row.

    `measure` tells of targets in bins, or of classes; `standardized` (m, q) are residuals of a
    sample over their standard deviations, of targets alone.
    """

    by_fold: bool
    n_rows: int
    rmse: Floats
    r2: Floats
    measure: Any
    standardized: Floats
    sample: RowSample
    predictor: Predictor | FoldPredictors  # of rows without their fold, or of all that were fitted
    of_sample: Any = None  # `HeldOutSample` of another loss


def validated(model: Any, source: Source) -> Validation | None:
    """Predict rows by models fitted without them, None if none can be; DataError for other rows."""
    if model.ridge.unseen is not None:
        return _as_kept(model, source)
    checked_shape(model.ridge.predictor, source)
    if isinstance(model, FittedRidge):  # errors are compared with those that the moments tell
        model = replace(model, predictor=model.predictor.linear)
    folds = folds_of(model.ridge)
    if folds is not None:
        is_placed = compute(delayed(_has_places, folds, source.n_samples, name="places"))
        folds = folds if is_placed else None
    if folds is None and model.ridge.outcome.by_gradients:
        return None  # leverages need the D x D system
    return _row_by_row(model, source) if folds is None else _by_fold(model, source, folds)


def _measure(model: Any, rmse: Floats) -> Measure:
    """Return an empty measure of predictions with such errors."""
    if isinstance(model, FittedRidge):
        return pair_counts(model, rmse)
    measure: Measure = model.measure(as_fitted=True)
    return measure


def _has_places(folds: FoldStatistics, n_rows: int) -> bool:
    """Say whether the fold of every row is known, as after one pass over them."""
    return not isinstance(folds.rule, ListedFolds) or len(folds.rule.folds) == n_rows


def _as_kept(model: Any, source: Source) -> Validation:
    """Predict rows by the models without their fold that the fit of another loss has kept."""
    ridge, measure = model.ridge, model.measure(as_fitted=True)
    unseen = ridge.unseen.with_link(ridge.predictor.link)
    are_classes = not isinstance(measure, PredictionErrors)
    measures = [*([PredictionErrors(ridge.predictor.n_targets)] * are_classes), measure]
    sampled = RowSample(_SAMPLE_ROWS, ridge.parameters.random_state)
    skip, row_bytes = ridge.parameters.skips_bad_rows, 8 * len(ridge.predictor.coef)
    both = Composite(Evaluation(unseen, *measures), sampled)
    _, found, _ = scored(source, both, both, row_bytes, "report", skip)
    evaluation, sample = found.parts
    errors, measure = evaluation.measures[0], evaluation.measures[-1]
    _check_losses(model.report, measure)
    facts = errors.n_rows, errors.rmse, errors.r2, measure, np.empty((0, 1)), sample, unseen
    if are_classes:
        return Validation(True, *facts)
    rows, predictions = zip(*unseen.predictions(block_of(sample)), strict=True)
    actual, weights = ([each.y[:, 0] for each in rows], [each.each_weight() for each in rows])
    return Validation(
        True, *facts, HeldOutSample(*map(np.concatenate, (predictions, actual, weights)))
    )


def _check_losses(report: Any, measure: Any) -> None:
    """Raise DataError unless rows weigh and lose what those of the fit did without their fold."""
    found = measure.figures() | {"weight": measure.weight}
    names = "weight", next(each for each in found if f"cv_{each}" in report)
    known = report["weight"], np.ravel(report[f"cv_{names[1]}"])[0]
    said = [np.ravel(found[name])[0] for name in names]
    if not np.allclose(said, known, rtol=_ALIKE, atol=1e-12):
        words = names[1].replace("_", " ")
        raise DataError(
            f"these are not the rows that the model was fitted on, which had a total weight of "
            f"{known[0]:,.10g} and without their fold a {words} of {known[1]:.5g}, but these have "
            f"{said[0]:,.10g} and {said[1]:.5g}; give the rows and weights of the fit, or evaluate "
            f"other rows."
        )


def _by_fold(model: Any, source: Source, folds: Any) -> Validation:
    unseen = unseen_by(model.ridge, folds)
    measure = _measure(model, np.sqrt(unseen.errors / model.ridge.normal_equations.weight))
    held_out = Evaluation(unseen.held_out, PredictionErrors(len(unseen.errors)), measure)
    # Their squared errors are those that the moments tell.
    found = _read(model.ridge, source, held_out, unseen.errors, tolerance=_ROUGHLY)
    (errors, measure, *_), sample, _ = found
    standardized = np.empty((0, len(errors.squared)))
    if isinstance(measure, PairCounts):
        tasks = []
        numbers = unseen.held_out.rule.of(block_of(sample))
        equations = model.ridge.normal_equations
        whole = None if equations.leading is None else scatter(equations)
        for k in np.unique(numbers[numbers >= 0]).tolist():
            rows = numbers == k
            mine = sample.X[rows], sample.y[rows], sample.weights[rows]
            of_fold = (
                unseen.left_out[k] if whole is None else whole,
                unseen.held_out.predictors[k],
            )
            tasks.append(delayed(_without_fold, *of_fold, *mine, name=f"std-{k}"))
        standardized = np.concatenate(compute_all(tasks))
    facts = measure, standardized, sample, unseen.held_out
    return Validation(True, errors.n_rows, errors.rmse, errors.r2, *facts)


def _row_by_row(model: Any, source: Source) -> Validation | None:
    """Read the rows once, and leave out every row of a sample in turn, in closed form."""
    predictor, equations = model.ridge.predictor, model.ridge.normal_equations
    fitted = Evaluation(predictor, PredictionErrors(predictor.n_targets))
    _, sample, columns = _read(model.ridge, source, fitted, equations.train_rss)
    rows = sample.X, sample.y, sample.weights
    left_out = delayed(_without_each, predictor, scatter(equations), *rows, name="leave-one-out")
    residuals, standardized = compute(left_out)
    known = np.isfinite(residuals).all(axis=1)
    if not known.any():
        return None
    y, residuals, weights = sample.y[known], residuals[known], sample.weights[known]
    rmse = np.sqrt(np.average(residuals**2, axis=0, weights=weights))
    measure = _measure(model, rmse)
    measure.add(Block(y[:, :0], y, 0, weights, sample.places[known]), y - residuals)
    r2 = r2_of(rmse**2 * columns.weight[-len(rmse) :], columns)
    facts = measure, standardized[known], sample, predictor
    return Validation(False, len(y), rmse, r2, *facts)


def _read(
    model: FittedRidge, source: Source, evaluation: Evaluation, expected: Floats, **tolerance: float
) -> Any:
    """Read the rows once, and return measures, a spread sample, and what columns hold."""
    rounded = rounded_as_in_fit(model)
    evaluation = Evaluation(evaluation.predictor, *evaluation.measures, *rounded)
    both = Composite(evaluation, RowSample(_SAMPLE_ROWS, model.parameters.random_state))
    skip, row_bytes = model.parameters.skips_bad_rows, 8 * model.predictor.coef.shape[0]
    _, found, columns = scored(source, both, both, row_bytes, "report", skip)
    measured, sample = found.parts
    squared, equations = measured.measures[0].squared, model.normal_equations
    rounded = measured.measures[len(measured.measures) - len(rounded) :]
    how: Any = {"rounded": rounded, **tolerance}
    check_fitted_rows(model.predictor, equations, columns, squared, expected, **how)
    return measured.measures, sample, columns


def _without_fold(
    left: LeftOut | NormalEquations, predictor: Predictor, X: Array, y: Floats, weights: Floats
) -> Floats:
    """Return the residuals of rows (n, p) over their standard deviations, (n, q).

    By the equations of all rows, where they are of leading features, without each row alone.
    """
    residuals = y - predictor.predict(X).reshape(y.shape)
    if isinstance(left, NormalEquations):
        return _over(residuals, without_rows(predictor.feature_map, left, X, weights)[1])
    deviation = Deviation.of(predictor.feature_map, left.equations)
    return _over(residuals, deviation.standard_deviations(X))


def _without_each(
    predictor: Predictor, equations: NormalEquations, X: Array, y: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """Return the residuals of rows without each of them, (n, q), and over standard deviations."""
    spare, deviations = without_rows(predictor.feature_map, equations, X, weights)
    residuals = (y - predictor.predict(X).reshape(y.shape)) / spare
    return residuals, _over(residuals, deviations)


def _over(residuals: Floats, deviations: Floats) -> Floats:
    """Return residuals over standard deviations, NaN where these are 0: targets without noise."""
    return residuals / np.where(deviations > 0.0, deviations, np.nan)
