"""Classification by regression on +1 for a class and -1 for the rest."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streamkern.errors import ParameterError
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.labelling import (
    checked_class_weight,
    class_facts,
    classes_of_first_rows,
    classes_of_report,
    labelled_source,
    weighs_alike,
)
from streamkern.models.ridge_solution import solve_moments
from streamkern.models.score_calibration import calibrated_by_folds, calibrated_by_moments
from streamkern.models.tasks import Task
from streamkern.predict.calibration_fit import checked_method
from streamkern.predict.class_rule import ClassRule, PlainRule
from streamkern.sources import LabelledSource, Source, labelled_rows
from streamkern.sources.class_labels import Classes

if TYPE_CHECKING:
    from streamkern.models.data_moments import DataMoments
    from streamkern.models.fitted_ridge import FittedRidge
    from streamkern.models.tasks import Rows
    from streamkern.parameters.parameters import Parameters
    from streamkern.parameters.template import Template


@dataclass(frozen=True)
class Classification(Task):
    class_weight: Any = None
    calibration: str | None = "sigmoid"

    @property
    def keeps_folds(self) -> bool:
        return self.calibration is not None

    def __post_init__(self) -> None:
        checked_class_weight(self.class_weight)
        checked_method(self.calibration)

    def source(self, rows: Rows, parameters: Parameters, template: Template | None) -> Source:
        known = template and classes_of_report(template.report)
        if known:
            return LabelledSource(*labelled_rows(*rows), *known)
        skip = parameters.skips_bad_rows
        return labelled_source(*rows, class_weight=self.class_weight, skip_bad_rows=skip)

    def facts(self, source: Source) -> dict[str, Any]:
        assert isinstance(source, LabelledSource)  # noqa: S101  for the type checker
        return class_facts(source)

    def finished(
        self, ridge: FittedRidge, source: Source, *, keep_moments: bool
    ) -> FittedClassifier:
        assert isinstance(source, LabelledSource)  # noqa: S101  for the type checker
        calibrator: Any = PlainRule()
        report, facts = dict(ridge.report), self.facts(source)
        if self.calibration is not None:
            begun = time.perf_counter()
            calibrator = calibrated_by_folds(ridge, source, self.calibration)
            seconds = time.perf_counter() - begun
            total = report["seconds"]["total"] + seconds
            report["seconds"] = report["seconds"] | {"calibration": seconds, "total": total}
        kept = ridge.moments if keep_moments else None
        if kept is not None:
            kept = replace(kept, report=kept.report | facts)
        counts = source.class_counts
        report |= facts | ({} if counts is None else {"class_counts": counts.tolist()})
        ridge = replace(ridge, report=report, moments=kept)
        rule = ClassRule(source.classes, calibrator)
        return FittedClassifier(
            ridge, rule, source.class_weight, self.class_weight, self.calibration
        )

    def solved(
        self, moments: DataMoments, parameters: Parameters, size: int | None = None
    ) -> FittedClassifier:
        self._check_without_rows()
        known = classes_of_report(moments.report)
        assert known is not None  # noqa: S101  as `check_moments` finds, or rows have come
        ridge = solve_moments(moments, parameters, size, keep_moments=True)
        calibrator: Any = PlainRule()
        if self.calibration is not None:
            calibrator = calibrated_by_moments(ridge)
        rule = ClassRule(known[0], calibrator)
        return FittedClassifier(ridge, rule, known[1], self.class_weight, self.calibration)

    def check_moments(self, moments: DataMoments) -> None:
        self._check_without_rows()
        known = classes_of_report(moments.report)
        if known is None:
            raise ParameterError(
                "a classifier is made of moments that know classes; make them with --classify, or "
                "with RandomFeatureClassifier.moments."
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
        before: DataMoments | None,
        classes: Any = None,
    ) -> Source:
        self._check_without_rows()
        labelled = labelled_rows(*rows)
        known = None if template is None else classes_of_report(template.report)
        if before is not None:
            assert known is not None  # noqa: S101  moments of a classifier have classes
            if classes is not None:
                then, now = known[0], Classes.of(classes)
                if now.values.tolist() != then.values.tolist():
                    raise ParameterError(
                        f"classes were {then} in the first call, but are {now} now; leave them "
                        f"out, or begin with a clone."
                    )
            return LabelledSource(*labelled, *known)
        if self.class_weight == "balanced":
            raise ParameterError(
                "class_weight 'balanced' would weigh earlier rows anew whenever rows come; give a "
                "dictionary of weights by label, or sample_weight."
            )
        if known is None or classes is not None:
            skip = parameters.skips_bad_rows
            known = classes_of_first_rows(labelled, classes, self.class_weight, skip=skip)
        return LabelledSource(*labelled, *known)

    def _check_without_rows(self) -> None:
        if self.calibration == "isotonic":
            raise ParameterError(
                "calibration 'isotonic' reads the rows again, but moments, and rows that come and "
                "go, are read once; take 'sigmoid' or None, or calibrate the model on rows held "
                "out."
            )
