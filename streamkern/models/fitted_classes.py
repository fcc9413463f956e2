"""Fitted classifiers: classes and probabilities from scores, their errors, and their files."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from streamkern._typing import Floats, Group
from streamkern.models.fitted_model import FittedModel, through
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.labelling import described_class_weight, factors_of, restored_class_weight
from streamkern.models.prediction import by_rows, predicted_rows
from streamkern.models.prediction_files import predict_classes_to_hdf5
from streamkern.models.score_calibration import calibrated_by_rows
from streamkern.models.scoring import scored
from streamkern.parameters.fit_report import FitReport
from streamkern.predict.calibration_fit import checked_method
from streamkern.predict.class_errors import ClassErrors
from streamkern.predict.class_rule import ClassRule, PlainRule
from streamkern.predict.evaluation import Evaluation
from streamkern.sources import LabelledSource, Source, labelled_rows
from streamkern.storage.codec import MODEL


class FittedClasses(FittedModel):
    """A fitted model whose predictor gives scores, which a rule turns into classes."""

    rule: ClassRule
    class_factors: Floats | None  # (K,), what weights of rows were multiplied by

    classes = through("rule.classes.values", "The classes, in ascending order, (K,).")

    def scores(self, X: Any) -> Any:
        """Return the scores (n,) or (n, q) of an array, a source, or lazily a Dask array."""
        self.check_inputs(X)
        return predicted_rows(self.predictor, X)

    def predict(self, X: Any) -> Any:
        """Return the classes of rows, (n,)."""
        return self._by_score(X, ClassRule.labels, None, self.classes.dtype)

    def decision_function(self, X: Any) -> Any:
        """Return what classes are chosen by, (n,) for two classes, else (n, K)."""
        K = len(self.classes)
        return self._by_score(X, ClassRule.plain_decisions, None if K == 2 else K)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, (n, K)."""
        return self._by_score(X, ClassRule.probabilities, len(self.classes))

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities, (n, K)."""
        return self._by_score(X, ClassRule.log_probabilities, len(self.classes))

    def _by_score(
        self, X: Any, method: Callable[..., Any], n_columns: int | None, dtype: Any = float
    ) -> Any:
        function = partial(_of_scores, method)
        return by_rows(function, self.scores(X), n_columns, dtype, rule=self.rule)

    def labelled(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, weighted: bool = False
    ) -> LabelledSource:
        """Return labelled rows of these classes, with their weights in the fit or without."""
        self.check_inputs(X)
        rows, labels = labelled_rows(X, y, sample_weight)
        factors = self.class_factors if weighted else None
        return LabelledSource(rows, labels, self.rule.classes, factors)

    def evaluate(self, source: LabelledSource, *, skip_bad_rows: bool) -> dict[str, Any]:
        """Compare predicted classes with labels; the baseline is always to say the commonest."""
        self.predictor.check((source.n_samples, source.n_features))
        empty = Evaluation(self.predictor, ClassErrors(self.rule))
        row_bytes = 8 * self.predictor.n_components
        result, found, _ = scored(source, empty, empty, row_bytes, "evaluate", skip_bad_rows)
        (errors,) = found.measures
        confusion = errors.confusion
        shown = confusion if source.is_weighted else confusion.round().astype(int)
        return {
            "rows": result.n_rows,
            "skipped_rows": result.n_skipped,
            **errors.figures(),
            "baseline": {"accuracy": float(confusion.sum(axis=1).max()) / errors.weight},
            "classes": self.rule.classes.as_dict()["values"],
            "confusion_matrix": shown.tolist(),
        }

    def predict_to_hdf5(self, source: Source, path: str | Path, **options: Any) -> int:
        """Predict the rows of a source into a new HDF5 file, and return how many have no class."""
        self.check_inputs(source)
        return predict_classes_to_hdf5(self.predictor, self.rule, source, path, **options)


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

    predictor = through("ridge.predictor")
    columns = through("ridge.columns")
    n_features = through("ridge.n_features")

    def __post_init__(self) -> None:
        report = FitReport(**self.ridge.report)
        report["calibration"] = self.rule.calibrator.name
        object.__setattr__(self, "report", report)

    def estimator_parameters(self) -> dict[str, Any]:
        given = self.ridge.parameters.values()
        del given["target_range"]  # labels have none
        return given | {"class_weight": self.class_weight, "calibration": self.calibration}

    def calibrated(self, source: LabelledSource, method: str | None) -> Self:
        """Return the model calibrated by rows that it was not fitted on, in one pass."""
        if checked_method(method) is None:
            calibrator: Any = PlainRule()
        else:
            calibrator = calibrated_by_rows(self.ridge, source, str(method))
        return replace(self, rule=ClassRule(self.rule.classes, calibrator))

    def with_bad_rows(self, on_bad_rows: str) -> Self:
        return replace(self, ridge=self.ridge.with_bad_rows(on_bad_rows))

    def without_moments(self) -> Self:
        return replace(self, ridge=self.ridge.without_moments())

    def stored(self, *, compact: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        card, arrays = self.ridge.stored(compact=compact)
        factors = self.class_factors
        described = {
            **self.rule.as_dict(),
            "class_factors": None if factors is None else factors.tolist(),
            "option_class_weight": described_class_weight(self.class_weight),
            "option_calibration": self.calibration,
        }
        return card | {"classifier": described}, arrays

    @classmethod
    def restored(cls, file: Group, card: dict[str, Any], *, with_equations: bool) -> Self:
        ridge = FittedRidge.restored(file, card, with_equations=with_equations)
        described = card["classifier"]
        rule = ClassRule.from_dict(described)
        if rule.classes.n_targets != ridge.predictor.coef.shape[1]:
            raise ValueError(f"{len(rule.classes)} classes")
        factors = factors_of(described["class_factors"], rule.classes)
        weight = restored_class_weight(described["option_class_weight"])
        return cls(ridge, rule, factors, weight, checked_method(described["option_calibration"]))


def _of_scores(method: Callable[[ClassRule, Floats], Any], scores: Floats, rule: ClassRule) -> Any:
    return method(rule, scores[:, None] if scores.ndim == 1 else scores)
