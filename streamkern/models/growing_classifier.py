"""Rows with labels that come to a fitted classifier, and rows that leave it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.errors import DataError, ParameterError
from streamkern.models.classifier_passes import calibrated_by_moments
from streamkern.models.fitted_classifier import FittedClassifier
from streamkern.models.growing_ridge import check_unchanged, deciding, locks_of
from streamkern.models.labelling import (
    ClassCounts,
    class_facts,
    classes_of_report,
    count_classes,
    weights_of_classes,
)
from streamkern.predict.calibrators import PlainRule
from streamkern.predict.class_rule import ClassRule
from streamkern.runtime.events import job
from streamkern.sources import Classes, LabelledSource, labelled_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamkern._typing import Floats
    from streamkern.models.data_moments import DataMoments
    from streamkern.models.ridge_model import RidgeModel

    Known = tuple[Classes, Floats | None]


class GrowingClassifier(FittedClassifier, ABC):
    """Labelled rows added to the moments of a classifier, and taken out again.

    A class that fits says which regression it is of, and what classes another model has.
    """

    _made_by: Mapping[str, Any] = {}

    @job("partial_fit")
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        like: Any = None,
    ) -> Self:
        """Add rows to those that the model was made of, which are not read again.

        The regression on +1 and -1 grows as `RandomFeatureRidge.partial_fit` says: all calls
        together, in any order after the first, are `fit` on all rows, like the first ones, up to
        rounding.  A call may have rows of one class alone.

        Rows are not read again to calibrate by, so the sigmoid of `calibration` 'sigmoid' is
        another one than that of `fit`: it follows from sums over the scores of every fold by the
        model without it, which the moments tell, whatever rows came and went.  On those scores its
        log loss is not above that of the shares of the classes alone, and its mean probability is
        near the share, but it can be coarser than that of `fit`; `calibrate` on rows held out takes
        another one, until rows come or go again.  A penalty that is set after a call counts when
        rows next come or go.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array_like of shape (K,), optional
            All labels that there will be; by default those of `like`, or of the rows of the first
            call.  Later calls need not repeat them.
        sample_weight : array_like of shape (n,), optional
        like : DataMoments, RandomFeatureClassifier, or path of either, optional
            In the first call, whose map and standardisation are taken, and whose classes and their
            weights if `classes` names none.

        Raises
        ------
        ParameterError
            If `classes` are not those of the first call, `class_weight` is 'balanced' or
            `calibration` 'isotonic', or as `RandomFeatureRidge.partial_fit` does.
        DataError
            If the rows cannot be used, or a label is none of the classes.
        InsufficientMemoryError
            If the job cannot fit, before the first read.
        """
        with locks_of(self).rows:
            if hasattr(self, "ridge_"):
                if like is not None:
                    raise ParameterError(
                        "the model has its map already, from the first rows; leave like out, or "
                        "begin with a clone."
                    )
                return self._add(X, y, sample_weight, classes, repeated_rows=True)
            ridge = self._new_ridge()
            rows = labelled_rows(*self._tables(X, y, sample_weight, first=True))
            source = LabelledSource(*rows, *self._known_classes(rows, classes, like=like))
            return self._begin(ridge, labelled_moments(ridge, source, like=self._ridge_of(like)))

    @job("update")
    def update(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, repeated_rows: bool = False
    ) -> Self:
        """Add rows that are not in yet to a model that keeps its moments, as `partial_fit` does.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        repeated_rows : bool
            Rows with the values of others that are in are other observations, and count too.

        Raises
        ------
        ParameterError, DataError, InsufficientMemoryError
            As `RandomFeatureRidge.update`, and if a label is none of the classes.
        """
        with locks_of(self).rows:
            return self._add(X, y, sample_weight, repeated_rows=repeated_rows)

    @job("forget")
    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take rows out of a model that keeps its moments, as if they had never been in.

        The map and the classes stay as they were chosen when they were in.

        Parameters
        ----------
        X, y, sample_weight
            The rows, with the labels and weights that they have in the model.

        Raises
        ------
        ParameterError, DataError
            As `RandomFeatureRidge.forget`.
        """
        with locks_of(self).rows:
            ridge, before = self._growing_ridge(), self._kept_moments(known_rows=True)
            check_unchanged(self, self._made_by)
            return self._keep(ridge, before.forget(*self._tables(X, y, sample_weight)))

    def _add(
        self, X: Any, y: Any, sample_weight: Any, classes: Any = None, *, repeated_rows: bool
    ) -> Self:
        ridge = self._growing_ridge()
        before = self._kept_moments(known_rows=not repeated_rows)
        check_unchanged(self, self._made_by)
        known = _known(before)
        if classes is not None and Classes.of(classes).values.tolist() != known[0].values.tolist():
            raise ParameterError(
                f"classes were {known[0]} in the first call, but are {Classes.of(classes)} now; "
                f"leave them out, or begin with a clone."
            )
        source = LabelledSource(*labelled_rows(*self._tables(X, y, sample_weight)), *known)
        ridge.moments_ = before
        more = labelled_moments(ridge, source, like=before)
        return self._keep(ridge, before.merge(more, repeated_rows=repeated_rows))

    def _new_ridge(self) -> RidgeModel:
        """Return the regression that the first rows are for, or raise ParameterError."""
        if self.class_weight == "balanced":
            raise ParameterError(
                "class_weight 'balanced' would weigh earlier rows anew whenever rows come; give a "
                "dictionary of weights by label, or sample_weight."
            )
        return self._growing_ridge()

    def _growing_ridge(self) -> RidgeModel:
        """Return the regression of these parameters, or raise ParameterError if it cannot grow."""
        ridge = self._ridge()
        if self.calibration == "isotonic":
            raise ParameterError(
                "calibration 'isotonic' reads the rows again, but moments, and rows that come and "
                "go, are read once; take 'sigmoid' or None, or calibrate the model on rows held "
                "out."
            )
        return ridge

    def _note_parameters(self) -> None:
        """Note what the moments are made by, which more rows do not change."""
        self._made_by = deciding(self, "class_weight")

    def _kept_moments(self, *, known_rows: bool) -> DataMoments:
        self._check_fitted()
        return self.ridge_._kept_moments(known_rows=known_rows)

    def _known_classes(self, rows: Any, classes: Any = None, *, like: Any = None) -> Known:
        """Return the classes that were named, those of `like`, or those among labels of rows."""
        known = self._classes_of(like) if classes is None else None
        if known is not None:
            return known
        if classes is not None:
            counts = ClassCounts(Classes.of(classes), np.empty(0))
        elif self.on_bad_rows == "skip":
            counts = count_classes(*(part.tolerant() for part in rows))
        else:
            counts = count_classes(*rows)
        if len(counts.classes) < 2:
            raise DataError(
                f"a classifier needs at least two classes, but there are {len(counts.classes)} in "
                f"the first call; name all labels that there will be as classes."
            )
        return counts.classes, weights_of_classes(self.class_weight, counts)

    def _begin(self, ridge: RidgeModel, moments: DataMoments) -> Self:
        """Take moments for those of the first rows."""
        self._note_parameters()
        return self._keep(ridge, moments)

    def _keep(self, ridge: RidgeModel, moments: DataMoments) -> Self:
        """Take moments for those of all rows, and what was solved before for out of date."""
        if "ridge_" in vars(self):
            ridge._n_leading = self.ridge_._n_leading
        ridge._keep(moments)
        self._take_ridge(ridge, _known(moments)[1])
        vars(self).pop("rule_", None)
        return self

    def _grown_rule(self) -> ClassRule:
        """Solve, and return the rule that follows from the moments."""
        self._growing_ridge()  # the calibration may have been changed
        return self._rule_by_moments(self.ridge_, _known(self.ridge_._kept_moments())[0])

    def _rule_by_moments(self, ridge: RidgeModel, classes: Classes) -> ClassRule:
        """Return the rule that follows from the moments that a regression keeps."""
        calibrator: Any = PlainRule(classes.n_targets)
        if self.calibration is not None:
            calibrator = calibrated_by_moments(ridge)
        return ClassRule(classes, calibrator)

    @abstractmethod
    def _ridge(self) -> RidgeModel:
        """Return the regression on +1 and -1 that the parameters are of, not fitted."""

    @abstractmethod
    def _ridge_of(self, like: Any) -> Any:
        """Return the regression of a classifier, or what else the map is taken from."""

    @abstractmethod
    def _classes_of(self, like: Any) -> Known | None:
        """Return the classes and their weights that moments or a classifier have, or None."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Calibrate when it is asked for after rows have come or gone."""
            if name == "rule_" and "ridge_" in vars(self):
                ridge, rule = self.ridge_, self._grown_rule()
                if self.ridge_ is ridge:  # no rows came meanwhile
                    self.rule_ = rule
                return rule
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )


def _known(moments: DataMoments) -> Known:
    """Return the classes of moments, which have some."""
    found: Any = classes_of_report(moments.report)
    return found  # type: ignore[no-any-return]


def labelled_moments(ridge: RidgeModel, source: LabelledSource, *, like: Any) -> DataMoments:
    """Return moments of rows that know them and their classes."""
    found = ridge._moments_like(source, None, None, like=like)
    return replace(found, report=found.report | class_facts(source))
