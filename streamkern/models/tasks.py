"""Tasks: what targets become, and what is made of the regression on them.

rows --> task.source --> moments --> regression --> task.finished --> fitted model
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError, ParameterError
from streamkern.features.base import checked_n_components
from streamkern.models.classifier_passes import calibrated_by_folds, calibrated_by_moments
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.labelling import (
    ClassCounts,
    checked_class_weight,
    class_facts,
    classes_of_report,
    count_classes,
    labelled_source,
    weighs_alike,
    weights_of_classes,
)
from streamkern.models.moments_fit import fit_moments
from streamkern.models.ridge_solution import solve_moments
from streamkern.models.tuned_fit import Choice
from streamkern.parameters.memory_estimate import solve_bytes
from streamkern.parameters.template import check_columns
from streamkern.predict.calibration_fit import checked_method
from streamkern.predict.calibrators import PlainRule
from streamkern.predict.class_rule import ClassRule
from streamkern.runtime.memory import check_free
from streamkern.runtime.resources import current_resources
from streamkern.sources import Classes, LabelledSource, as_source, labelled_rows

if TYPE_CHECKING:
    from pathlib import Path

    from streamkern._typing import Floats
    from streamkern.models.data_moments import DataMoments
    from streamkern.models.fitted_ridge import FittedRidge
    from streamkern.parameters.parameters import Parameters
    from streamkern.parameters.template import Template
    from streamkern.sources import Source

    Rows = tuple[Any, Any, Any]


class Task(ABC):
    """What a fit is for: regression, or classification by regression on +1 and -1.

    Rows are triples of X, y and weights, or of a source and twice None.
    """

    @property
    @abstractmethod
    def keeps_folds(self) -> bool:
        """Whether the fitted model needs the moments of folds, whatever the penalty."""

    @abstractmethod
    def check(self) -> None:
        """Raise ParameterError if an option of the task has a value that it cannot have."""

    @abstractmethod
    def source(self, rows: Rows, parameters: Parameters, template: Template | None) -> Source:
        """Return rows with the targets of the regression."""

    @abstractmethod
    def facts(self, source: Source) -> dict[str, Any]:
        """Return what moments report besides, so that more rows can come to them."""

    @abstractmethod
    def finished(self, ridge: FittedRidge, source: Source, *, keep_moments: bool) -> Any:
        """Return the fitted model that a regression on the rows of a source makes."""

    @abstractmethod
    def solved(self, moments: DataMoments, parameters: Parameters, size: int | None = None) -> Any:
        """Return the fitted model of moments alone, which it keeps."""

    @abstractmethod
    def check_moments(self, moments: DataMoments) -> None:
        """Raise ParameterError if the moments are not for this task."""

    @abstractmethod
    def growing_source(
        self,
        rows: Rows,
        parameters: Parameters,
        template: Template | None,
        before: DataMoments | None,
        classes: Any = None,
    ) -> Source:
        """Return rows that come to a model: the first, or more than those of `before`."""

    def prepared(self, parameters: Parameters) -> Parameters:
        """Return the parameters with the folds that the task needs."""
        self.check()
        return replace(parameters, keeps_folds=self.keeps_folds)

    def fit(
        self,
        parameters: Parameters,
        rows: Rows,
        *,
        template: Template | None = None,
        checkpoint: str | Path | None = None,
        keep_moments: bool = False,
    ) -> Any:
        """Fit rows in two passes, and return the fitted model."""
        parameters = self.prepared(parameters)
        options, source = parameters.passes(template), self.source(rows, parameters, template)
        check_columns(template, source)
        options = parameters.for_rows(options, source, template)
        parameters.sparse_options(options.components_for(source.n_features))
        moments = fit_moments(
            source,
            options,
            like=template,
            fixed_alpha=parameters.solves_at_once,
            n_left_out=parameters.penalty.n_left_out,
            checkpoint=checkpoint,
        )
        return self._made(moments, parameters, source, keep_moments=keep_moments)

    def tune(
        self,
        parameters: Parameters,
        rows: Rows,
        *,
        keep_moments: bool = False,
        **search: Any,
    ) -> Any:
        """Choose kernel, map and length scale on a sample, and fit with them.

        `search` is `kernels`, `maps`, `budget` and `checkpoint`.
        """
        parameters = self.prepared(parameters)
        choice, source = Choice(parameters, **search), self.source(rows, parameters, None)
        return self._made(choice.moments(source), parameters, source, keep_moments=keep_moments)

    def moments(
        self,
        parameters: Parameters,
        rows: Rows,
        *,
        template: Template | None = None,
        checkpoint: str | Path | None = None,
    ) -> DataMoments:
        """Return the moments of rows, which know their rows."""
        self.check()
        source = self.source(rows, parameters, template)
        check_columns(template, source)
        options = parameters.for_rows(parameters.moments(template), source, template)
        found = fit_moments(source, options, like=template, indexed=True, checkpoint=checkpoint)
        return replace(found, report=found.report | self.facts(source))

    def solve(self, parameters: Parameters, moments: DataMoments) -> Any:
        """Return the fitted model of moments, which it keeps, without reading rows."""
        parameters = self.prepared(parameters)
        self.check_moments(moments)
        D, size, penalty = moments.feature_map.n_components, None, parameters.penalty
        if parameters.n_components != "auto" and not moments.options.is_identity:
            size = checked_n_components(parameters.n_components)
            if D < size <= moments.options.n_components:
                size = D  # rows made fewer landmarks than were asked for
            if size > D:
                raise ParameterError(
                    f"the moments are of {D:,} features, but n_components is {size:,}; ask for no "
                    f"more than there are."
                )
        n_folds = moments.n_folds if penalty.needs_folds or self.keeps_folds else 1
        resources = current_resources()
        if not resources.n_workers:
            needed = solve_bytes(size or D, moments.n_targets, n_folds, resources.n_threads)
            check_free(needed, "solving")
        return self.solved(moments, parameters, size)

    def grown(
        self,
        parameters: Parameters,
        rows: Rows,
        *,
        template: Template | None = None,
        before: DataMoments | None = None,
        classes: Any = None,
    ) -> DataMoments:
        """Return the moments of rows that come to a model: the first, or more than `before`."""
        parameters = self.prepared(parameters)
        template = template if before is None else before.template()
        options = parameters.passes(template)
        parameters.penalty.check_without_rows()
        if before is not None:  # alpha may have changed
            if options.n_folds > before.n_folds == 1:
                raise ParameterError(
                    "cross-validation and calibration need folds, but the rows that are in were "
                    "not dealt to any; take alpha 'gcv', 'evidence' or a number, and of classes "
                    "calibration None, or begin with a clone."
                )
            options = replace(options, n_folds=before.n_folds)
        source = self.growing_source(rows, parameters, template, before, classes)
        check_columns(template, source)
        found = fit_moments(
            source,
            parameters.for_rows(options, source, template),
            like=template,
            indexed=before is None or before.index is not None,
            fixed_alpha=parameters.solves_at_once,
            more_to_come=True,
        )
        return replace(found, report=found.report | self.facts(source))

    def _made(
        self, moments: DataMoments, parameters: Parameters, source: Source, *, keep_moments: bool
    ) -> Any:
        keep = keep_moments or self.keeps_folds
        ridge = solve_moments(moments, parameters, source=source, keep_moments=keep)
        return self.finished(ridge, source, keep_moments=keep_moments)


class Regression(Task):
    """Regression on the targets as they come."""

    keeps_folds = False

    def check(self) -> None:
        """There is nothing to check."""

    def source(self, rows: Rows, parameters: Parameters, template: Template | None) -> Source:  # noqa: ARG002
        """Return the rows as a source."""
        return as_source(*rows)

    def facts(self, source: Source) -> dict[str, Any]:  # noqa: ARG002
        """Return nothing: targets speak for themselves."""
        return {}

    def finished(self, ridge: FittedRidge, source: Source, *, keep_moments: bool) -> FittedRidge:  # noqa: ARG002
        """Return the regression."""
        return ridge

    def solved(
        self, moments: DataMoments, parameters: Parameters, size: int | None = None
    ) -> FittedRidge:
        """Solve the moments."""
        return solve_moments(moments, parameters, size, keep_moments=True)

    def check_moments(self, moments: DataMoments) -> None:
        """Any moments will do."""

    def growing_source(
        self,
        rows: Rows,
        parameters: Parameters,
        template: Template | None,
        before: DataMoments | None,  # noqa: ARG002
        classes: Any = None,  # noqa: ARG002
    ) -> Source:
        """Return the rows as a source."""
        return self.source(rows, parameters, template)


@dataclass(frozen=True)
class Classification(Task):
    """Classification by regression on +1 for a class and -1 for the rest.

    Parameters
    ----------
    class_weight : 'balanced', or mapping of label to float, optional
    calibration : {'sigmoid', 'isotonic'}, optional
    """

    class_weight: Any = None
    calibration: str | None = "sigmoid"

    @property
    def keeps_folds(self) -> bool:
        """Whether probabilities are calibrated by folds."""
        return self.calibration is not None

    def check(self) -> None:
        """Check the weights of classes and the calibration."""
        checked_class_weight(self.class_weight)
        checked_method(self.calibration)

    def source(self, rows: Rows, parameters: Parameters, template: Template | None) -> Source:
        """Return rows with labels, of the classes of the template or of those among them."""
        known = template and classes_of_report(template.report)
        if known:
            return LabelledSource(*labelled_rows(*rows), *known)
        skip = parameters.skips_bad_rows
        return labelled_source(*rows, class_weight=self.class_weight, skip_bad_rows=skip)

    def facts(self, source: Source) -> dict[str, Any]:
        """Return the classes and their weights."""
        assert isinstance(source, LabelledSource)  # noqa: S101  for the type checker
        return class_facts(source)

    def finished(
        self, ridge: FittedRidge, source: Source, *, keep_moments: bool
    ) -> FittedClassifier:
        """Calibrate the scores of a regression by rows that it has not seen."""
        assert isinstance(source, LabelledSource)  # noqa: S101  for the type checker
        calibrator: Any = PlainRule(source.n_targets)
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
        """Solve the moments, and calibrate by the scores of folds as they tell them."""
        self._check_without_rows()
        known = classes_of_report(moments.report)
        assert known is not None  # noqa: S101  as `check_moments` finds, or rows have come
        ridge = solve_moments(moments, parameters, size, keep_moments=True)
        calibrator: Any = PlainRule(known[0].n_targets)
        if self.calibration is not None:
            calibrator = calibrated_by_moments(ridge)
        rule = ClassRule(known[0], calibrator)
        return FittedClassifier(ridge, rule, known[1], self.class_weight, self.calibration)

    def check_moments(self, moments: DataMoments) -> None:
        """Raise ParameterError if the moments know no classes, or others than asked for."""
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
        """Return labelled rows of the classes that were named or are known."""
        self._check_without_rows()
        labelled = labelled_rows(*rows)
        known = None if template is None else classes_of_report(template.report)
        if before is not None:
            assert known is not None  # noqa: S101  moments of a classifier have classes
            if classes is not None:
                _check_same(known[0], Classes.of(classes))
            return LabelledSource(*labelled, *known)
        if self.class_weight == "balanced":
            raise ParameterError(
                "class_weight 'balanced' would weigh earlier rows anew whenever rows come; give a "
                "dictionary of weights by label, or sample_weight."
            )
        if known is None or classes is not None:
            known = self._classes_of_first(labelled, classes, skip=parameters.skips_bad_rows)
        return LabelledSource(*labelled, *known)

    def _classes_of_first(
        self, labelled: Any, classes: Any, *, skip: bool
    ) -> tuple[Classes, Floats | None]:
        """Return the classes that were named, or those among the labels of the first rows."""
        if classes is not None:
            counts = ClassCounts(Classes.of(classes), np.empty(0))
        else:
            counts = count_classes(*((part.tolerant() if skip else part) for part in labelled))
        if len(counts.classes) < 2:
            raise DataError(
                f"a classifier needs at least two classes, but there are {len(counts.classes)} in "
                f"the first call; name all labels that there will be as classes."
            )
        return counts.classes, weights_of_classes(self.class_weight, counts)

    def _check_without_rows(self) -> None:
        if self.calibration == "isotonic":
            raise ParameterError(
                "calibration 'isotonic' reads the rows again, but moments, and rows that come and "
                "go, are read once; take 'sigmoid' or None, or calibrate the model on rows held "
                "out."
            )


def _check_same(then: Classes, now: Classes) -> None:
    if now.values.tolist() != then.values.tolist():
        raise ParameterError(
            f"classes were {then} in the first call, but are {now} now; leave them out, or begin "
            f"with a clone."
        )
