"""Classification by regression on +1 for a class and -1 for the rest."""

import time
from dataclasses import dataclass, replace
from typing import Any

from streamkern.errors import ParameterError
from streamkern.errors.checks import check_choice
from streamkern.estimators.problems import Problem, Rows
from streamkern.extensions.classes.calibration_fit import checked_method
from streamkern.extensions.classes.class_labels import Classes
from streamkern.extensions.classes.class_rule import AdditiveVotes, ClassRule, PlainRule
from streamkern.extensions.classes.fitted_classes import FittedClassifier
from streamkern.extensions.classes.labelled_source import KnownClasses, LabelledSource
from streamkern.extensions.classes.labelling import (
    checked_class_weight,
    labelled_source,
    weighs_alike,
)
from streamkern.extensions.classes.score_calibration import (
    calibrated_by_folds,
    calibrated_by_moments,
)
from streamkern.models.data_moments import DataMoments
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.parameters.fit_report import with_seconds
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.template import Template
from streamkern.passes.fit_context import FitContext
from streamkern.registry import extension
from streamkern.sources import Source, labelled_rows

LOSSES = ("squared", "logistic", "multinomial")  # the last two are one


@dataclass(frozen=True)
class Classification(Problem):
    class_weight: Any = None
    calibration: str | None = "auto"
    classes: Any = None  # all labels that there will be, where rows come one part after another
    loss: str = "squared"

    reads_labels = True

    @property
    def keeps_folds(self) -> bool:
        return self.calibration is not None

    def __post_init__(self) -> None:
        checked_class_weight(self.class_weight)
        checked_method(self.calibration)
        check_choice("loss", self.loss, LOSSES)
        if self.is_logistic and self.calibration not in ("auto", None):
            raise ParameterError(
                f"scores of the log loss are log-odds, and calibration {self.calibration!r} is of "
                f"squared errors; leave it out."
            )

    @property
    def is_logistic(self) -> bool:
        return self.loss != "squared"

    @property
    def is_squared(self) -> bool:  # type: ignore[override]
        return not self.is_logistic

    def moments(self, *given: Any, **how: Any) -> DataMoments:
        if self.is_logistic:
            self._of_losses().check_moments(None)
        return super().moments(*given, **how)

    def prepared(self, parameters: Parameters) -> Parameters:
        parameters = super().prepared(parameters)
        return self._of_losses().checked(parameters) if self.is_logistic else parameters

    def job(self, parameters: Parameters, template: Template | None = None) -> Any:
        job = super().job(parameters, template)
        return self._of_losses().planned(job) if self.is_logistic else job

    def _of_losses(self) -> Any:
        """Return the problem of the log loss."""
        return extension("losses", "fitted_loss").loss_regression("logistic", are_signs=True)

    def regression(self, context: FitContext, parameters: Parameters) -> FittedRidge:
        if not self.is_logistic:
            return super().regression(context, parameters)
        ridge: FittedRidge = self._of_losses().regression(context, parameters)
        return ridge

    @property
    def deciding(self) -> dict[str, Any]:
        return {"class_weight": self.class_weight}

    def source(self, rows: Rows, parameters: Parameters, template: Template | None) -> Source:
        if template is not None and isinstance(template.encoding, KnownClasses):
            return LabelledSource(*labelled_rows(*rows), template.encoding)
        skip = parameters.skips_bad_rows
        return labelled_source(*rows, class_weight=self.class_weight, skip_bad_rows=skip)

    def model(self, ridge: FittedRidge, source: Any) -> FittedClassifier:
        calibrator: Any = AdditiveVotes() if self.is_logistic else PlainRule()
        sets = None
        if source is None:
            self._check_without_rows()
            known: Any = ridge.moments and ridge.moments.encoding
            if self.calibration is not None:
                calibrator = calibrated_by_moments(ridge)
        else:
            known, report, counts = source.encoding, ridge.report, source.class_counts
            if self.calibration is not None and not self.is_logistic:
                begun = time.perf_counter()
                calibrator, sets, errors = calibrated_by_folds(ridge, source, self.calibration)
                counts = errors.confusion.sum(axis=1)  # without rows that were left out
                report = with_seconds(report, calibration=time.perf_counter() - begun)
                report = report | {"cv_accuracy": errors.accuracy}
            elif counts is not None and (source.weighted_by or counts.sum() != report["rows"]):
                counts = None  # they are of other rows, too, or not by weight
            if counts is not None:
                report = report | {"class_counts": counts.tolist()}
            ridge = replace(ridge, report=report)
        rule = ClassRule(known.classes, calibrator)
        own = self.class_weight, self.calibration, self.loss
        return FittedClassifier(ridge, rule, known.factors, *own, sets)

    def check_moments(self, moments: DataMoments) -> None:
        self._check_without_rows()
        known: Any = moments.encoding
        if not known.reads_labels:
            raise ParameterError(
                "a classifier is made of moments that know classes; make them with "
                "RandomFeatureClassifier.moments (`streamkern moments --classify`)."
            )
        if self.class_weight is not None and not weighs_alike(self.class_weight, known):
            raise ParameterError(
                f"class_weight is {self.class_weight!r}, but the moments were made with other "
                f"weights of classes, or none; leave it out, or compute the moments with it."
            )
        if self.calibration is not None and moments.n_folds < 2:
            raise ParameterError(
                f"calibration {self.calibration!r} needs 2 folds or more, and the moments are of "
                f"one; compute them with more folds, or take calibration None."
            )

    def growing_source(
        self, rows: Rows, parameters: Parameters, template: Template | None, *, first: bool
    ) -> Source:
        self._check_without_rows()
        classes, known = self.classes, None if template is None else template.encoding
        if not first:
            assert isinstance(known, KnownClasses)  # noqa: S101  as moments of a classifier have
            then = known.classes
            now = then if classes is None else Classes.of(classes)
            if now.values.tolist() != then.values.tolist():
                raise ParameterError(
                    f"classes were {then} in the first call, but are {now} now; leave them out, or "
                    f"begin with a clone."
                )
        elif self.class_weight == "balanced":
            raise ParameterError(
                "class_weight 'balanced' would weigh earlier rows anew whenever rows come; give a "
                "dictionary of weights by label, or sample_weight."
            )
        elif not isinstance(known, KnownClasses) or classes is not None:
            how = {"skip_bad_rows": parameters.skips_bad_rows, "class_weight": self.class_weight}
            remedy = "name all labels that there will be as classes"
            source = labelled_source(*rows, classes=classes, remedy=remedy, **how)
            source.class_counts = None  # they are of the first rows alone
            return source
        return self.source(rows, parameters, template)

    def _check_without_rows(self) -> None:
        if self.is_logistic:
            self._of_losses().check_moments(None)
        if self.calibration in {"spline", "isotonic"}:
            raise ParameterError(
                f"calibration {self.calibration!r} reads the rows again, but moments, and rows "
                f"that come and go, are read once; take 'sigmoid' or None, or calibrate the model "
                f"on rows held out."
            )
