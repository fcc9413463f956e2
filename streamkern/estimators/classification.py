"""Classification by regression on +1 for a class and -1 for the rest."""

import time
from dataclasses import dataclass, replace
from typing import Any

from streamkern.errors import ParameterError
from streamkern.estimators.problems import Problem, Rows
from streamkern.models.data_moments import DataMoments
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.labelling import (
    checked_class_weight,
    classes_of,
    labelled_source,
    weighs_alike,
)
from streamkern.models.score_calibration import calibrated_by_folds, calibrated_by_moments
from streamkern.parameters.fit_report import with_seconds
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.template import Template
from streamkern.predict.calibration_fit import checked_method
from streamkern.predict.class_rule import ClassRule, PlainRule
from streamkern.sources import LabelledSource, Source, labelled_rows
from streamkern.sources.class_labels import Classes


@dataclass(frozen=True)
class Classification(Problem):
    class_weight: Any = None
    calibration: str | None = "auto"

    @property
    def keeps_folds(self) -> bool:
        return self.calibration is not None

    def __post_init__(self) -> None:
        checked_class_weight(self.class_weight)
        checked_method(self.calibration)

    def source(self, rows: Rows, parameters: Parameters, template: Template | None) -> Source:
        known = template and template.classes
        if known:
            return LabelledSource(*labelled_rows(*rows), *known)
        skip = parameters.skips_bad_rows
        return labelled_source(*rows, class_weight=self.class_weight, skip_bad_rows=skip)

    def model(self, ridge: FittedRidge, source: Any) -> FittedClassifier:
        calibrator: Any = PlainRule()
        if source is None:
            self._check_without_rows()
            known: Any = ridge.moments and ridge.moments.classes
            if self.calibration is not None:
                calibrator = calibrated_by_moments(ridge)
        else:
            known, report, counts = classes_of(source), ridge.report, source.class_counts
            if self.calibration is not None:
                begun = time.perf_counter()
                calibrator, errors = calibrated_by_folds(ridge, source, self.calibration)
                counts = errors.confusion.sum(axis=1)  # without rows that were left out
                report = with_seconds(report, calibration=time.perf_counter() - begun)
                report = report | {"cv_accuracy": errors.accuracy}
            elif counts is not None and (source.weighted_by or counts.sum() != report["rows"]):
                counts = None  # they are of other rows, too, or not by weight
            if counts is not None:
                report = report | {"class_counts": counts.tolist()}
            ridge = replace(ridge, report=report)
        rule = ClassRule(known[0], calibrator)
        return FittedClassifier(ridge, rule, known[1], self.class_weight, self.calibration)

    def check_moments(self, moments: DataMoments) -> None:
        self._check_without_rows()
        known = moments.classes
        if known is None:
            raise ParameterError(
                "a classifier is made of moments that know classes; make them with "
                "RandomFeatureClassifier.moments (`streamkern moments --classify`)."
            )
        if self.class_weight is not None and not weighs_alike(self.class_weight, *known):
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
        self,
        rows: Rows,
        parameters: Parameters,
        template: Template | None,
        classes: Any = None,
        *,
        first: bool,
    ) -> Source:
        self._check_without_rows()
        known = None if template is None else template.classes
        if not first:
            assert known is not None  # noqa: S101  moments of a classifier have classes
            then, now = known[0], known[0] if classes is None else Classes.of(classes)
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
        elif known is None or classes is not None:
            how = {"skip_bad_rows": parameters.skips_bad_rows, "class_weight": self.class_weight}
            remedy = "name all labels that there will be as classes"
            source = labelled_source(*rows, classes=classes, remedy=remedy, **how)
            source.class_counts = None  # they are of the first rows alone
            return source
        return self.source(rows, parameters, template)

    def _check_without_rows(self) -> None:
        if self.calibration in {"spline", "isotonic"}:
            raise ParameterError(
                f"calibration {self.calibration!r} reads the rows again, but moments, and rows "
                f"that come and go, are read once; take 'sigmoid' or None, or calibrate the model "
                f"on rows held out."
            )
