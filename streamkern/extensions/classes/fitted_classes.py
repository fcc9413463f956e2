"""Fitted classifiers: classes and probabilities from scores, their errors, and their files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from streamkern._typing import Floats, Group
from streamkern.errors import ParameterError
from streamkern.extensions.classes.calibration_fit import checked_method
from streamkern.extensions.classes.class_errors import ClassErrors
from streamkern.extensions.classes.class_rows import error_rows, set_rows
from streamkern.extensions.classes.class_rule import ClassRule, PlainRule
from streamkern.extensions.classes.labelled_source import KnownClasses, LabelledSource
from streamkern.extensions.classes.labelling import described_class_weight, restored_class_weight
from streamkern.extensions.classes.prediction_sets import (
    LEVEL,
    PredictionSets,
    SetErrors,
    known_sets,
)
from streamkern.extensions.classes.score_calibration import calibrated_by_rows
from streamkern.models.fitted_model import FittedModel, through
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.prediction import by_rows, predicted_rows, predicted_shards
from streamkern.models.prediction_files import NONE, Written, write_predictions
from streamkern.models.scoring import scored
from streamkern.parameters.parameters import Parameters
from streamkern.predict.evaluation import Evaluation
from streamkern.sources import Source
from streamkern.statistics import Statistic
from streamkern.storage.codec import MODEL
from streamkern.storage.hdf5_files import texts_of

# Classes whose confusions are printed.
_MOST_CLASSES = 12


class FittedClasses(FittedModel):
    """A fitted model whose predictor gives scores, which a rule turns into classes."""

    parameters: Parameters
    rule: ClassRule
    class_factors: Floats | None  # (K,), what weights of rows were multiplied by

    classes = through("rule.classes.values", "The classes, in ascending order, (K,).")

    @property
    def encoding(self) -> KnownClasses:
        """The classes of the labels, with what their rows weigh in the fit."""
        return KnownClasses(self.rule.classes, self.class_factors)

    def scores(self, X: Any) -> Any:
        """Return the scores (n,) or (n, q) of an array, a source, or lazily a Dask array."""
        self.check_inputs(X)
        return predicted_rows(self.predictor, X)

    def by_score(self, X: Any, method: Callable[[ClassRule, Floats], Any]) -> Any:
        """Return what a method of the rule makes of the scores of rows, lazily of a Dask array."""
        scores, none = self.scores(X), method(self.rule, np.empty((0, self.predictor.n_targets)))
        n_columns = none.shape[1] if none.ndim > 1 else None
        return by_rows(partial(_of_scores, method), scores, n_columns, none.dtype, rule=self.rule)

    def source(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, as_fitted: bool = False
    ) -> LabelledSource:
        """Return labelled rows of these classes, with their weights in the fit or without."""
        self.check_inputs(X)
        known = self.encoding if as_fitted else KnownClasses(self.rule.classes)
        return known.source(X, y, sample_weight)

    def measure(self, *, as_fitted: bool = False) -> ClassErrors:
        """Return the errors of no predictions yet, of rows that weigh as in the fit or not."""
        return ClassErrors(self.rule, self.class_factors if as_fitted else None)

    def scored(self, source: LabelledSource, empty: Statistic, label: str) -> tuple[Any, Any]:
        """Return what a pass over the rows says of itself, and the statistic of them."""
        self.predictor.check((source.n_samples, source.n_features))
        row_bytes, skip = 8 * self.predictor.n_components, self.parameters.skips_bad_rows
        return scored(source, empty, empty, row_bytes, label, skip)[:2]

    def evaluate(self, source: LabelledSource) -> dict[str, Any]:
        """Compare predicted classes with labels; the baseline is always to say the commonest."""
        several: list[Any] = [self.measure()]
        if sets := getattr(self, "sets", None):
            several.append(SetErrors(self.rule, sets.at(LEVEL)))
        result, found = self.scored(source, Evaluation(self.predictor, *several), "evaluate")
        errors, *more = found.measures
        confusion = errors.confusion
        shown = confusion if source.is_weighted else confusion.round().astype(int)
        return {
            "rows": result.n_rows,
            "skipped_rows": result.n_skipped,
            **errors.figures(),
            "baseline": {"accuracy": float(confusion.sum(axis=1).max()) / errors.weight},
            "classes": self.rule.classes.as_dict()["values"],
            "confusion_matrix": shown.tolist(),
        } | ({"sets": more[0].facts()} if more else {})

    @staticmethod
    def error_tables(found: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Return tables of what an evaluation found: title, rows and header."""
        commonest = f"{found['baseline']['accuracy']:.6g}, by always saying the commonest class"
        rows = [*error_rows(found, "{:.6g}".format), ("baseline accuracy", commonest)]
        rows += set_rows(found.get("sets"))
        names = [str(value) for value in found["classes"][:_MOST_CLASSES]]
        cells = [
            (name, *map("{:,.10g}".format, row[:_MOST_CLASSES]))
            for name, row in zip(names, found["confusion_matrix"], strict=False)
        ]
        title = "Rows of each class, by the class predicted"
        return [("Errors", rows), (title, cells, ("class", *names))]

    def predict_to_hdf5(
        self,
        source: Source,
        path: str | Path,
        *,
        probabilities: bool = False,
        interval: float | None = None,
        skip_bad_rows: bool = False,
        force: bool = False,
    ) -> int:
        """Predict the classes of rows into the dataset `y_pred` of a new HDF5 file.

        A dataset `classes` holds all K classes in their order.  Texts are of fixed length, in
        UTF-8.  Returned is how many rows have no class.
        """
        self.check_inputs(source)
        rule, known = self.rule, self.classes
        sets = None if interval is None else known_sets(getattr(self, "sets", None)).at(interval)
        names = known  # with what stands for none at the end, if there may be
        if names.dtype.kind in "US":
            names = texts_of([*names.tolist(), ""])
            known = names[:-1]
        elif skip_bad_rows:
            names = np.append(names.astype(float), np.nan)
            if known.dtype.kind in "iu" and list(map(int, names[:-1])) != known.tolist():
                raise ParameterError(
                    "beside rows without a class, classes are written as floating-point numbers, "
                    "which these are too large for; give on_bad_rows 'error' (--on-bad-rows error)."
                )

        def written(source: Source) -> Written:
            for shard, made in predicted_shards(self.predictor, source):
                scores = made["y_pred"].reshape(shard.n_rows, -1)
                are_finite = np.isfinite(scores).all(axis=1)
                codes, datasets = np.full(len(scores), len(rule.classes)), {}
                codes[are_finite] = rule.codes(scores[are_finite])
                if skip_bad_rows or are_finite.all():
                    datasets["y_pred"] = names[codes]
                    if probabilities:
                        datasets["y_proba"] = rule.probabilities(scores)
                    if sets is not None:
                        datasets["y_set"] = sets.members(rule, scores)
                yield shard.start + np.flatnonzero(~are_finite), datasets
            yield NONE, {"classes": known}

        without = "no finite score, and so no class", "leave their class empty"
        how = {"skip_bad_rows": skip_bad_rows, "force": force}
        return write_predictions(written, source, path, without, **how)

    def prediction_writer(
        self, options: Mapping[str, Any]
    ) -> tuple[Callable[..., int], list[str], str]:
        """Return what writes what is asked for beside y_pred, as what, and what bad rows become."""
        proba, level = options["proba"], options["interval"]
        write = partial(self.predict_to_hdf5, probabilities=proba, interval=level)
        datasets = ["y_proba"] * proba + ["y_set"] * (level is not None)
        return write, datasets, "without a class"


@dataclass(frozen=True, repr=False)
class FittedClassifier(FittedClasses):
    """A ridge regression that gives scores, and what turns them into classes."""

    file_kind = MODEL
    estimator = "RandomFeatureClassifier"

    ridge: FittedRidge
    rule: ClassRule
    class_factors: Floats | None = None
    class_weight: Any = None
    calibration: str | None = None
    loss: str = "squared"
    sets: PredictionSets | None = None  # of a fit that held rows out

    predictor = through("ridge.predictor")
    columns = through("ridge.columns")
    n_features = through("ridge.n_features")
    parameters = through("ridge.parameters")

    def __post_init__(self) -> None:
        report = self.ridge.report.copy()
        report["calibration"] = self.rule.calibrator.name
        object.__setattr__(self, "report", report)

    @property
    def deciding(self) -> dict[str, Any]:
        """Options that decide what rows become, beside those of the regression."""
        return {"class_weight": self.class_weight}

    def estimator_parameters(self) -> dict[str, Any]:
        given = self.parameters.values()
        del given["target_range"]  # labels have none
        own = {"calibration": self.calibration, "loss": self.loss}
        return given | {"class_weight": self.class_weight} | own

    def calibrated(self, source: LabelledSource, method: str | None) -> Self:
        """Return the model calibrated by rows that it was not fitted on, in one pass."""
        calibrator: Any = PlainRule()
        sets = None
        if checked_method(method) is not None:
            calibrator, sets = calibrated_by_rows(self.ridge, source, str(method))
        return replace(self, rule=ClassRule(self.rule.classes, calibrator), sets=sets)

    def with_bad_rows(self, on_bad_rows: str) -> Self:
        return replace(self, ridge=self.ridge.with_bad_rows(on_bad_rows))

    def without_moments(self) -> Self:
        return replace(self, ridge=self.ridge.without_moments())

    def stored(self, *, compact: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        card, arrays = self.ridge.stored(compact=compact)
        described = {
            **self.rule.as_dict(),
            "class_factors": self.encoding.facts()["class_factors"],
            "option_class_weight": described_class_weight(self.class_weight),
            "option_calibration": self.calibration,
            "option_loss": self.loss,
        }
        if self.sets is not None:
            arrays["sets"] = vars(self.sets)
        return card | {"classifier": described}, arrays

    @classmethod
    def restored(cls, file: Group, card: dict[str, Any], *, with_equations: bool) -> Self:
        ridge = FittedRidge.restored(file, card, with_equations=with_equations)
        described = card["classifier"]
        rule, known = ClassRule.from_dict(described), KnownClasses.restored(described)
        if rule.classes.n_targets != ridge.predictor.n_targets:
            raise ValueError(f"{len(rule.classes)} classes")
        weight = restored_class_weight(described["option_class_weight"])
        calibration = checked_method(described["option_calibration"])
        loss = described.get("option_loss", "squared")
        sets = None
        if group := file.get("sets"):
            sets = PredictionSets.restored(group, len(rule.classes))
        return cls(ridge, rule, known.factors, weight, calibration, loss, sets)


def _of_scores(method: Callable[[ClassRule, Floats], Any], scores: Floats, rule: ClassRule) -> Any:
    return method(rule, scores[:, None] if scores.ndim == 1 else scores)
