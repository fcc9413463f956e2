"""The passes that compare a predictor with the targets of rows, and that look into it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.reduction import PassResult, accumulate
from streamkern.engine.scheduler import delayed, scatter
from streamkern.errors import DataError, ParameterError
from streamkern.errors.checks import checked_integer
from streamkern.features.abilities import compress, innermost
from streamkern.features.kernel_values import KernelColumns
from streamkern.parameters.chunking import chunk_sizes
from streamkern.parameters.template import check_targets
from streamkern.passes.column_summary import check_rows
from streamkern.predict.deviation import Deviation, LeaveOneOut
from streamkern.predict.evaluation import Evaluation, PredictionErrors
from streamkern.predict.gradients import GradientOuterProduct
from streamkern.predict.intervals import IntervalErrors, Intervals
from streamkern.predict.predictor import Predictor
from streamkern.predict.support import SupportErrors, SupportRows
from streamkern.registry import extension
from streamkern.solve import NormalEquations, rss_rounding
from streamkern.sources import Source
from streamkern.statistics import ColumnStatistics, Composite, Precision, Statistic

if TYPE_CHECKING:
    from streamkern.models.fitted_ridge import FittedRidge

# Of values of a kernel in single precision: of 20 fits the error of RSS was 0.7 to 2 times
# N e^2 |c|^2 where that was more than the rounding of sums.
_VALUE_ROUNDING = 2.2e-7
# Rows, spread over the source, whose errors are told by their support.
_SUPPORTED = 1 << 14
# Times its rounding that a sum of squares from moments may be off that of the rows.
_ROUNDINGS = 10.0
# Of intervals that are evaluated.
_LEVEL = 0.9


def evaluate(
    predictor: Predictor,
    source: Source,
    measure: PredictionErrors | None = None,
    *,
    n_targets: int | None = None,
    skip_bad_rows: bool = False,
    support: SupportRows | None = None,
    intervals: Intervals | None = None,
) -> dict[str, Any]:
    """Compare predictions, and intervals if they are known, with targets, in one pass.

    The baseline is the mean of these targets.  With support, errors are told by it, too, of up to
    32,768 rows that are spread over the source.
    """
    D, q = checked_shape(predictor, source, n_targets)
    told: dict[str, Any] = {}
    if support is not None and support.reference:  # once, and not by every task
        every = max(source.n_samples // _SUPPORTED, 1)
        told["by_support"] = SupportErrors(support, q, every, predictor.flat)
    if intervals is not None and intervals.levels[-1] >= _LEVEL:
        told["intervals"] = IntervalErrors(intervals.at(_LEVEL, predictor))
    empty = Evaluation(predictor, measure or PredictionErrors(q), *told.values())
    result, evaluation, _ = scored(source, empty, empty, 8 * D, "evaluate", skip_bad_rows)
    errors, *more = evaluation.measures
    if not np.isfinite(errors.squared).all():
        raise DataError(
            "predictions or their squared errors overflow on rows far outside of those that were "
            "fitted; look at the largest inputs with `streamkern inspect`, or rescale them."
        )
    found: dict[str, Any] = {"rows": result.n_rows, "skipped_rows": result.n_skipped}
    found |= errors.facts(flat=source.target_ndim == 1)
    for name, each in zip(told, more, strict=True):
        found[name] = each.facts()
    if "intervals" in found:
        found["intervals"] |= {"level": _LEVEL}
    return found


def checked_shape(
    predictor: Predictor, source: Source, n_targets: int | None = None
) -> tuple[int, int]:
    """Return (D, q), or raise DataError unless the source has the inputs and targets for it."""
    predictor.feature_map.check((source.n_samples, source.n_features))
    D, q = predictor.coef.shape
    check_targets(source, n_targets or q, "the model predicts")
    return D, q


def gradient_outer_product(
    model: "FittedRidge", source: Source, *, target_unit: Floats | None = None
) -> Floats:
    """Return the average gradient outer product (p, p) of a model over the rows, in one pass.

    It is of standardised rows, and 0 for inputs that are left out.
    """
    model.check_inputs(source)
    if not model.kernel.has_mean_square_gradients:
        raise ParameterError(
            f"gradients of the kernel {model.kernel.name} have no mean square, because its "
            f"frequencies have no variance; take permutation_importance, or a smoother kernel, "
            f"such as 'matern32'."
        )
    predictor, skip_bad_rows = model.predictor, model.parameters.skips_bad_rows
    predictor.feature_map.check((source.n_samples, source.n_features))
    shape = (predictor.coef.shape[1],)
    if target_unit is not None and not (target_unit.shape == shape and (target_unit > 0).all()):
        raise ParameterError(
            f"target_unit must be positive numbers of shape {shape}, one a target, not "
            f"{target_unit.tolist()}; give the deviations of the targets, or leave it out."
        )
    empty = GradientOuterProduct(predictor, target_unit)
    _, found, _ = scored(source, empty, empty, 8 * len(predictor.coef), "gradients", skip_bad_rows)
    kept = empty.standardizer.columns
    metric = np.zeros((source.n_features, source.n_features))
    metric[np.ix_(kept, kept)] = found.mean
    return metric


def scored(  # noqa: PLR0917  what is read, and how
    source: Source,
    statistic: Any,
    empty: Statistic,
    row_bytes: int,
    label: str,
    skip_bad_rows: bool = False,
) -> tuple[PassResult[Any], Any, ColumnStatistics]:
    """Run one pass for a statistic, and refuse rows that are not finite."""
    shard_rows, block_rows = chunk_sizes(source, row_bytes)
    columns = ColumnStatistics(source.n_features + source.n_targets)
    result: PassResult[Any] = accumulate(
        source,
        delayed(Composite, statistic, columns, name="zero"),
        shard_rows=shard_rows,
        block_rows=block_rows,
        skip_bad_rows=skip_bad_rows,
        label=label,
    )
    scores, columns = Composite(empty, columns).attached(result.statistic).parts
    check_rows(source, columns, result)
    return result, scores, columns


def rounding_at_landmarks(predictor: Predictor, weight: float) -> Floats:
    """Return what rounding the values of a kernel at landmarks makes of RSS, (q,); else 0.

    Moments are of rounded values, predictions of the same coefficients c of these values are not:
    with values that are off by e each, that is N e^2 |c|^2.
    """
    condensed, coef = compress(predictor.feature_map, predictor.coef)
    if predictor.precision == "double" or not isinstance(innermost(condensed), KernelColumns):
        return np.zeros(predictor.n_targets)
    return weight * _VALUE_ROUNDING**2 * np.square(coef).sum(axis=0)


def rounded_as_in_fit(model: "FittedRidge") -> tuple[Any, ...]:
    """Return what measures rows as the integers of a fit, for a model that was fitted so."""
    if model.outcome.weight_unit is None:
        return ()
    return (extension("integers", "rounded_errors").RoundedErrors.of(model),)


def check_fitted_rows(
    predictor: Predictor,
    equations: NormalEquations,
    columns: ColumnStatistics,
    squared: Floats,
    expected: Floats,
    *,
    rounded: Sequence[Any] = (),
    tolerance: float = 1e-3,
) -> None:
    """Raise DataError unless rows are those of a fit, by weight and sums of squared errors.

    Those of a fit in integers are of rounded weights and features, which is what is compared.
    """
    N, q, weight = equations.weight, len(expected), columns.weight[-1]
    spread = columns.weight[-q:] * columns.variance[-q:]
    for each in rounded:
        squared, expected, weight, tolerance = each.squared, equations.train_rss, each.weight, 1e-3
    of_targets = sum(each.target_rounding for each in rounded) * spread
    precision: Precision = "single" if equations.gram.panels[0].dtype == np.float32 else "double"
    rounding = rss_rounding(spread, equations.gram.diagonal(), predictor.coef, precision)
    rounding = rounding + rounding_at_landmarks(predictor, N) + of_targets
    same = np.abs(squared - expected) <= tolerance * expected + _ROUNDINGS * rounding
    if not (same.all() and np.isclose(weight, N, rtol=1e-9)):
        said, known = np.sqrt(squared[0] / weight), np.sqrt(expected[0] / N)
        raise DataError(
            f"these are not the rows that the model was fitted on, which had a total weight of "
            f"{N:,.10g} and an RMSE of {known:.5g}, but these have {weight:,.10g} and {said:.5g}; "
            f"give the rows and weights of the fit, or evaluate other rows."
        )


def diagnose(model: "FittedRidge", source: Source, *, n_largest: int = 10) -> dict[str, Any]:
    """Say how the model would do on every row without that row, in one pass over its own rows.

    A row is left out with all its weight: not as one of several equal rows.
    """
    sentence = "n_largest must be a whole number of at least 0, not {!r}; say how many to list."
    n_largest = checked_integer(n_largest, sentence, 0)
    model.check_rows(source)
    if model.outcome.by_gradients:
        raise ParameterError(
            "leverages need the D x D system, which conjugate gradients do without; fit with "
            "solver 'direct' (--solver direct), or take the cross-validated error."
        )
    predictor, equations = model.predictor.linear, model.normal_equations
    (D, _), skip_bad_rows = checked_shape(predictor, source), model.parameters.skips_bad_rows
    deviation = delayed(Deviation.of, predictor.feature_map, scatter(equations), name="deviation")
    more = rounded_as_in_fit(model)
    statistic = delayed(_leave_one_out, predictor, deviation, n_largest, more, name="leave-one-out")
    nowhere: Any = None  # deviations stay where the rows are
    here = _leave_one_out(predictor, nowhere, n_largest, more)
    result, evaluation, columns = scored(source, statistic, here, 16 * D, "diagnose", skip_bad_rows)
    found, *rounded = evaluation.measures
    facts = columns, found.rss, equations.train_rss
    check_fitted_rows(predictor, equations, *facts, rounded=rounded)
    rmse = [None if np.isnan(value) else value for value in found.rmse.tolist()]

    def named(largest: Any) -> list[dict[str, Any]]:
        return [
            {
                "row": int(place),
                "place": source.locate(int(place)),
                "leverage": float(facts[0]),
                "error": float(facts[1]) if predictor.flat else facts[1:].tolist(),
            }
            for place, facts in zip(largest.places, largest.facts, strict=True)
        ]

    return {
        "rows": result.n_rows,
        "skipped_rows": result.n_skipped,
        "loo_rmse": rmse[0] if predictor.flat else rmse,
        "effective_dof": float(found.leverage.mean()),
        "rows_of_leverage_one": found.n_whole,
        "largest_leverages": named(found.leverages),
        "largest_errors": named(found.errors),
    }


def _leave_one_out(
    predictor: Predictor, deviation: Deviation, n_largest: int, more: Sequence[Any]
) -> Evaluation:
    return Evaluation(predictor, LeaveOneOut(deviation, n_largest), *more)
