"""Intervals of a fitted regression, by errors on sampled rows that its models have not seen."""

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features import FeatureMap
from streamkern.predict.deviation import without_rows
from streamkern.predict.evaluation import FoldPredictors
from streamkern.predict.interval_fit import fitted_intervals
from streamkern.predict.intervals import Intervals, leading_features
from streamkern.predict.predictor import Predictor
from streamkern.runtime.threads import blas_threads
from streamkern.solve import NormalEquations
from streamkern.sources import Block
from streamkern.statistics import RowSample

# Rows of the sample that are predicted, by models of folds, and in closed form without each: this
# takes D^2 a row, and an inverse, which is not for more features than so many.
_ROWS, _ROWS_IN_TURN, _MOST_IN_TURN = 4096, 2048, 4096
# With fewer rows there is no scale to learn.
_FEWEST = 10


def calibrated_intervals(
    predictor: Predictor,
    equations: NormalEquations,
    sample: RowSample,
    held_out: FoldPredictors | None,
) -> Intervals | None:
    """Return intervals from a sample of the rows of the fit, None where it does not tell them.

    Rows are predicted by the model without their fold; without folds, by that without each row.
    """
    leading = _leading(predictor.feature_map)
    in_turn = held_out is None
    if leading is None or (in_turn and len(predictor.coef) > _MOST_IN_TURN):
        return None
    few = sample.first(_ROWS_IN_TURN if in_turn else _ROWS)
    rows = Block(few.X, few.y, 0, few.weights, few.places)
    with blas_threads(1):
        if held_out is None:
            spare, _ = without_rows(predictor.feature_map, equations, rows.X, few.weights)
            fitted = predictor.unclipped.predict(rows.X).reshape(rows.y.shape)
            predicted = rows.y - (rows.y - fitted) / spare
            parts = [(rows, np.clip(predicted, *(predictor.limits or (-np.inf, np.inf))))]
        else:
            parts = list(held_out.predictions(rows))
        blocks, made = zip(*parts, strict=True)
        X, y, weights, predicted = (
            np.concatenate(each)
            for each in (
                [block.X for block in blocks],
                [block.y for block in blocks],
                [block.each_weight() for block in blocks],
                made,
            )
        )
        known = np.isfinite(predicted).all(axis=1) & (weights > 0)
        if known.sum() < _FEWEST:
            return None
        how = {"precision": predictor.precision}
        return fitted_intervals(
            leading, X[known], y[known].astype(float), weights[known], predicted[known], **how
        )


def _leading(feature_map: FeatureMap) -> FeatureMap | None:
    """Return the map of the features that errors are learnt on, None where it has no parts."""
    try:
        return leading_features(feature_map)
    except ParameterError:  # of fields with a trend
        return None
