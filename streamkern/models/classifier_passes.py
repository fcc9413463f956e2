"""Passes of a classifier over rows: calibration, errors, and predicted classes in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.engine.scheduler import run_all, task
from streamkern.errors import DataError
from streamkern.models.held_out_predictors import folds_of, unseen_by
from streamkern.models.prediction import bad_inputs, predicted_shards
from streamkern.models.scoring import scored
from streamkern.predict.calibration_fit import ScoreSums, fitted_calibrator, sigmoid_of_sums
from streamkern.predict.class_errors import ClassErrors, ScoreTable
from streamkern.predict.evaluation import Evaluation, FoldPredictors
from streamkern.storage import RowWriter, check_output, texts_of
from streamkern.tune.fold_solution import part_of

if TYPE_CHECKING:
    from pathlib import Path

    from streamkern._typing import Array, Floats
    from streamkern.models.fitted_ridge import FittedRidge
    from streamkern.predict.class_rule import Calibrator, ClassRule
    from streamkern.predict.predictor import RowFunction
    from streamkern.sources import LabelledSource, Source
    from streamkern.statistics import ByFold
    from streamkern.tune.held_out_models import LeftOut

# The least that scores are taken to spread by, as a part of the targets' variance.
_LEAST_SPREAD = 1e-6


def calibrated_by_folds(ridge: FittedRidge, source: LabelledSource, method: str) -> Calibrator:
    """Return the calibrator of scores of every row by the model without its fold, in one pass."""
    unseen = unseen_by(ridge, _folds(ridge))
    held_out = FoldPredictors(unseen.rule, unseen.predictors)
    del unseen  # and with it the normal equations of every fold
    return calibrated_by_rows(ridge, source, method, held_out)


def calibrated_by_moments(ridge: FittedRidge) -> Calibrator:
    """Return the sigmoid of scores of every fold by the model without it, and read no rows."""
    folds = _folds(ridge)
    left_out = unseen_by(ridge, folds).left_out
    size = ridge.report["sparse_of"] or len(ridge.predictor.coef)
    sums = [task(_sums, folds, k, size, left, name=f"sums-{k}") for k, left in left_out.items()]
    return sigmoid_of_sums(run_all(sums))


def _sums(folds: ByFold, fold: int, size: int, left: LeftOut) -> ScoreSums:
    """Return the sums of the scores of a fold by the model without it, as its moments tell them."""
    part, coef = part_of(folds, fold, size), left.solution.coef
    held = part.centred()
    if left.support is not None:
        held = held.subset(left.support)
    means = left.solution.intercept + held.feature_mean @ coef
    squares = np.einsum("dq,dq->q", coef, held.gram @ coef)
    products = np.einsum("dq,dq->q", coef, held.cross)
    return ScoreSums(
        n_rows=part.n_rows,
        weight=held.weight,
        targets=held.weight * held.target_mean,
        scores=held.weight * means,
        squares=squares + held.weight * means**2,
        products=products + held.weight * means * held.target_mean,
    )


def _folds(ridge: FittedRidge) -> Any:
    """Return the kept moments of folds, or raise DataError where there are no 2 with rows."""
    folds = folds_of(ridge)
    if folds is None:
        raise DataError(
            "calibration needs 2 folds with rows, which there are not; give more rows, or take "
            "calibration None."
        )
    return folds


def calibrated_by_rows(
    ridge: FittedRidge,
    source: LabelledSource,
    method: str,
    held_out: FoldPredictors | RowFunction | None = None,
) -> Calibrator:
    """Return the calibrator of scores of rows that were not fitted on, by the model by default."""
    held_out = held_out or ridge.predictor
    skip, row_bytes = ridge.parameters.skips_bad_rows, 8 * len(ridge.predictor.coef)
    scores = Evaluation(held_out, ScoreTable(*_reach(ridge)))
    _, found, _ = scored(source, scores, scores, row_bytes, "calibration", skip)
    return fitted_calibrator(method, found.measures[0])


def _reach(ridge: FittedRidge) -> tuple[Floats, Floats]:
    """Return where scores lie (q,), and how far they spread (q,), as the fit tells it."""
    predictor, equations = ridge.predictor, ridge.equations
    if equations is None:
        q = predictor.coef.shape[1]
        return np.zeros(q), np.ones(q)
    mean = np.zeros_like(predictor.intercept)
    if equations.intercept:
        mean = predictor.intercept + equations.feature_mean @ predictor.coef
    variance = 1.0 - np.minimum(mean**2, 1.0)  # of targets that are +1 and -1
    explained = variance - equations.train_rss / equations.weight
    least = np.where(variance > 0, _LEAST_SPREAD * variance, 1.0)
    return mean, np.sqrt(np.maximum(explained, least))


def evaluate_classes(
    predictor: RowFunction, rule: ClassRule, source: LabelledSource, *, skip_bad_rows: bool = False
) -> dict[str, Any]:
    """Compare predicted classes and probabilities with the labels of rows, in one pass."""
    predictor.check((source.n_samples, source.n_features))
    empty, row_bytes = Evaluation(predictor, ClassErrors(rule)), 8 * predictor.n_components
    result, found, _ = scored(source, empty, empty, row_bytes, "evaluate", skip_bad_rows)
    (errors,) = found.measures
    confusion = errors.confusion
    return {
        "rows": result.n_rows,
        "skipped_rows": result.n_skipped,
        "accuracy": errors.accuracy,
        "balanced_accuracy": errors.balanced_accuracy,
        "log_loss": errors.log_loss,
        "brier_score": errors.brier_score,
        "auc": errors.auc,
        "auc_error": errors.auc_error,
        "expected_calibration_error": errors.calibration_error,
        "classes": rule.classes.as_dict()["values"],
        "confusion_matrix": (
            confusion if source.is_weighted else confusion.round().astype(int)
        ).tolist(),
    }


def predict_classes_to_hdf5(
    predictor: RowFunction,
    rule: ClassRule,
    source: Source,
    path: str | Path,
    *,
    probabilities: bool = False,
    skip_bad_rows: bool = False,
    force: bool = False,
) -> int:
    """Predict the classes of rows into the dataset `y_pred` of a new HDF5 file.

    A dataset `classes` holds all K classes in their order.  Texts are of fixed length, in UTF-8.
    """
    check_output(path, force=force, inputs=source.paths)
    source = source.tolerant() if skip_bad_rows else source
    names = _stored(rule.classes.values, with_missing=skip_bad_rows)
    bad = first = 0
    with RowWriter.create(path, force=force, release=True) as writer:
        for shard, made in predicted_shards(predictor, source):
            scores = made["y_pred"].reshape(shard.n_rows, -1)
            known = np.isfinite(scores).all(axis=1)
            codes = np.full(len(scores), len(rule.classes))
            codes[known] = rule.codes(scores[known])
            if not known.all():
                first = first if bad else shard.start + int(np.flatnonzero(~known)[0])
                bad += int((~known).sum())
                if not skip_bad_rows:
                    continue
            writer.append("y_pred", names[codes])
            if probabilities:
                writer.append("y_proba", rule.probabilities(scores))
        if bad and not skip_bad_rows:
            raise DataError(
                f"{bad:,} of {source.n_samples:,} rows have no finite score, and so no class, the "
                f"first at {source.locate(first)}, because their inputs are NaN, infinite or "
                f"overflow{bad_inputs(source)}; give on_bad_rows 'skip' (--on-bad-rows skip) to "
                f"leave their class empty, or fit to a table converted with --impute, which fills "
                f"missing cells."
            )
        writer.append("classes", names[: len(rule.classes)])
    return bad


def _stored(classes: Array, *, with_missing: bool) -> Array:
    """Return classes as they are stored, with what stands for none at the end if there may be."""
    if classes.dtype.kind in "US":
        return texts_of([*classes.tolist(), ""])
    return np.append(classes.astype(float), np.nan) if with_missing else classes
