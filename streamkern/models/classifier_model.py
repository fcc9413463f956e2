"""Classification by random-feature ridge regression on +1 and -1, one class against the rest."""

from __future__ import annotations

import time
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from streamkern.errors import ModelFileError, ParameterError
from streamkern.kernels import Gaussian, Kernel
from streamkern.models.classifier_passes import calibrated_by_folds
from streamkern.models.data_moments import DataMoments, moments_header
from streamkern.models.growing_classifier import GrowingClassifier
from streamkern.models.labelling import (
    checked_class_weight,
    class_facts,
    classes_of_report,
    factors_of,
    labelled_source,
    restored_class_weight,
    weighs_alike,
)
from streamkern.models.model_files import read_model
from streamkern.models.ridge_model import RidgeModel, pattern_of, restored
from streamkern.models.ridge_options import RidgeOptions
from streamkern.predict.calibration_fit import checked_method
from streamkern.predict.calibrators import PlainRule
from streamkern.predict.class_rule import ClassRule
from streamkern.runtime.events import job
from streamkern.sources import Classes, LabelledSource, labelled_rows
from streamkern.storage import holds_moments
from streamkern.storage.untrusted import WRONG_VALUES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array, Floats
    from streamkern.models.model_files import ModelFile


_Model = TypeVar("_Model", bound="ClassifierModel")


class ClassifierModel(GrowingClassifier):
    """Kernel classification by random features, without what scikit-learn adds to it.

    Commands take this one.  Parameters and attributes are those of `RandomFeatureClassifier`.
    """

    def __init__(
        self,
        kernel: Kernel | str = Gaussian("median"),  # noqa: B008  immutable
        *,
        n_components: int | str = 2048,
        alpha: float | str | Sequence[float] = "cv",
        alphas: Sequence[float] | None = None,
        n_folds: int = 5,
        fold_by: str = "auto",
        per_target: bool = False,
        one_standard_error: bool = False,
        sparse: int | str | None = None,
        sparse_method: str = "forward",
        feature_map: str = "orthogonal",
        paired: bool = True,
        metric: str | Array | None = None,
        standardize: bool = True,
        fit_intercept: bool = True,
        precision: str = "single",
        on_bad_rows: str = "error",
        random_state: int = 0,
        class_weight: Any = None,
        calibration: str | None = "sigmoid",
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.alpha = alpha
        self.alphas = alphas
        self.n_folds = n_folds
        self.fold_by = fold_by
        self.per_target = per_target
        self.one_standard_error = one_standard_error
        self.sparse = sparse
        self.sparse_method = sparse_method
        self.feature_map = feature_map
        self.paired = paired
        self.metric = metric
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.precision = precision
        self.on_bad_rows = on_bad_rows
        self.random_state = random_state
        self.class_weight = class_weight
        self.calibration = calibration

    def _ridge(self) -> RidgeModel:
        """Return the ridge regression on +1 and -1 that these parameters are of, not fitted.

        Raises
        ------
        ParameterError
            If weights of classes or a calibration are none.
        """
        checked_class_weight(self.class_weight)
        checked_method(self.calibration)
        names = signature(RidgeModel).parameters
        ridge = RidgeModel(**{name: getattr(self, name) for name in names})
        ridge._keeps_folds = self.calibration is not None
        return ridge

    @job("fit")
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        like: Any = None,
        checkpoint: str | Path | None = None,
        keep_moments: bool = False,
    ) -> Self:
        """Fit the model: the labels are read for their classes, then the rows twice.

        Calibration reads the rows once more, lightly.

        Parameters
        ----------
        X : Source, array_like or dask.array.Array, of shape (n, p)
            A source, such as `open_hdf5` returns, brings its own labels.
        y : array_like or dask.array.Array of shape (n,)
            Labels: text, bytes, booleans or whole numbers.  NaN, None and empty texts are missing.
        sample_weight : array_like of shape (n,), optional
        like : DataMoments, RandomFeatureClassifier, or path of either, optional
            Whose map, standardisation, precision, classes and their weights are taken.
        checkpoint, keep_moments
            As in `RandomFeatureRidge.fit`.

        Raises
        ------
        DataError
            If the rows or their labels cannot be used.
        ParameterError, CheckpointError, InsufficientMemoryError, SingularSystemError
            As `RandomFeatureRidge.fit` does.
        """
        ridge, pattern = self._ridge(), pattern_of(_ridge_of(like))
        RidgeOptions(ridge).passes(pattern)
        rows = self._tables(X, y, sample_weight, first=True, fewest=2, like=pattern)
        source, facts = self._source(*rows, like=like)
        keep = keep_moments or self.calibration is not None
        ridge.fit(source, like=pattern, checkpoint=checkpoint, keep_moments=keep)
        return self._finish(ridge, source, facts, keep_moments=keep_moments)

    @job("tune")
    def tune(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        keep_moments: bool = False,
        **search: Any,
    ) -> Self:
        """Choose the length scale, and among kernels and maps, and fit the model with them.

        The choice is by the squared error of the scores, and all rows of the sample count the same.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        keep_moments : bool
            As in `fit`.
        **search
            `kernels`, `maps`, `budget` and `checkpoint` of `RandomFeatureRidge.tune`.
        """
        ridge = self._ridge()
        X, y, sample_weight = self._tables(X, y, sample_weight, first=True, fewest=2)
        source, facts = self._source(X, y, sample_weight)
        keep = keep_moments or self.calibration is not None
        ridge.tune(source, keep_moments=keep, **search)
        return self._finish(ridge, source, facts, keep_moments=keep_moments)

    @job("moments")
    def moments(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        like: Any = None,
        checkpoint: str | Path | None = None,
    ) -> DataMoments:
        """Read the rows as `fit` does, and return their moments, which know the classes.

        Parameters are those of `fit`.
        """
        pattern = pattern_of(_ridge_of(like))
        tables = self._tables_of_moments(X, y, sample_weight, like=pattern)
        source, facts = self._source(*tables, like=like)
        facts.pop("class_counts", None)  # which would not add up when moments are merged
        found = self._ridge().moments(source, like=pattern, checkpoint=checkpoint)
        return replace(found, report=found.report | facts)

    @job("solve")
    def solve(self, moments: DataMoments, *, keep_moments: bool = False) -> Self:
        """Fit the model to moments, without reading rows.

        The sigmoid of `calibration` 'sigmoid' is that of `partial_fit`: of the scores of every fold
        by the model without it, as the moments tell them.  Weights of classes are those that the
        moments were made with.

        Parameters
        ----------
        moments : DataMoments
            Of `RandomFeatureClassifier.moments`.
        keep_moments : bool
            As in `fit`.

        Raises
        ------
        ParameterError
            If the moments are not of classes, or were made without the weights of classes that are
            asked for; if calibration is 'isotonic', which reads rows, or there are no folds to
            calibrate by; or as `RandomFeatureRidge.solve` does.
        DataError
            If fewer than 2 folds have rows to calibrate by.
        """
        ridge, found = self._growing_ridge(), _classes_of(moments)
        if found is None:
            raise ParameterError(
                "a classifier is made of moments that know classes; make them with --classify, or "
                "with RandomFeatureClassifier.moments."
            )
        classes, factors = found
        if self.class_weight is not None and not weighs_alike(self.class_weight, classes, factors):
            raise ParameterError(
                f"class_weight is {self.class_weight!r}, but the moments were made with other "
                f"weights of classes, or none; leave it out, or compute the moments with it."
            )
        if self.calibration is not None and moments.n_folds < 2:
            raise ParameterError(
                f"calibration {self.calibration!r} needs 2 folds or more, and the moments are of "
                f"one; compute them with more folds, or take calibration None."
            )
        ridge.solve(moments, keep_moments=True)
        rule = self._rule_by_moments(ridge, classes)
        if not keep_moments:
            ridge.moments_ = None
        self._note_parameters()
        self._take(ridge, rule, factors)
        return self

    def _source(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, like: Any = None
    ) -> tuple[LabelledSource, dict[str, Any]]:
        """Return rows with their labels as targets, and what is to be reported of the classes.

        Parameters are those of `fit`.
        """
        found = _classes_of(like)
        if found is not None:
            source = LabelledSource(*labelled_rows(X, y, sample_weight), *found)
            return source, class_facts(source)
        skip = self.on_bad_rows == "skip"
        source, counts = labelled_source(
            X, y, sample_weight, class_weight=self.class_weight, skip_bad_rows=skip
        )
        return source, class_facts(source) | {"class_counts": counts.weights.tolist()}

    def _finish(
        self,
        ridge: RidgeModel,
        source: LabelledSource,
        facts: dict[str, Any],
        *,
        keep_moments: bool,
    ) -> Self:
        """Calibrate what was fitted, and take it over."""
        calibrator: Any = PlainRule(source.n_targets)
        if self.calibration is not None:
            begun = time.perf_counter()
            calibrator = calibrated_by_folds(ridge, source, self.calibration)
            seconds = ridge.report_["seconds"]
            seconds["calibration"] = time.perf_counter() - begun
            seconds["total"] += seconds["calibration"]
        kept, ridge.moments_ = ridge.moments_, None
        if kept is not None and keep_moments:
            ridge.moments_ = replace(kept, report=kept.report | class_facts(source))
        ridge.report_ |= facts
        self._note_parameters()
        return self._take(ridge, ClassRule(source.classes, calibrator), source.class_weight)

    def _ridge_of(self, like: Any) -> Any:
        return _ridge_of(like)

    def _classes_of(self, like: Any) -> tuple[Classes, Floats | None] | None:
        return _classes_of(like)


def restored_classifier(model_class: type[_Model], file: ModelFile, path: str | Path) -> _Model:
    """Return the classifier of a file, or raise ModelFileError if that is damaged or has none."""
    ridge = restored(RidgeModel, file, path)
    if "classifier" not in file.card:
        raise ModelFileError(
            f"{path} is a regression, not a classifier; give a file that `streamkern fit "
            f"--classify` wrote."
        )
    names = signature(RidgeModel).parameters
    try:
        described = file.card["classifier"]
        rule = ClassRule.from_dict(described)
        if rule.classes.n_targets != ridge.predictor_.coef.shape[1]:
            raise ValueError(f"{len(rule.classes)} classes")
        factors = factors_of(described["class_factors"], rule.classes)
        model = model_class(
            **{name: getattr(ridge, name) for name in names},
            class_weight=restored_class_weight(described["option_class_weight"]),
            calibration=checked_method(described["option_calibration"]),
        )
        model._take(ridge, rule, factors)
    except WRONG_VALUES as error:
        raise ModelFileError(f"{path} is a damaged model ({error}); copy it again.") from error
    return model


def _ridge_of(like: Any) -> Any:
    return like.ridge_ if isinstance(like, ClassifierModel) and hasattr(like, "ridge_") else like


def _classes_of(like: Any) -> tuple[Classes, Floats | None] | None:
    """Return the classes and their weights that moments, a classifier, or a file have, or None."""
    if isinstance(like, (str, Path)):
        if holds_moments(like):
            like = moments_header(like)
        else:
            file = read_model(like, with_equations=False)
            if "classifier" not in file.card:
                return None
            like = restored_classifier(ClassifierModel, file, like)
    if isinstance(like, ClassifierModel) and hasattr(like, "ridge_"):
        return like.rule_.classes, like.class_factors_
    if isinstance(like, DataMoments):
        return classes_of_report(like.report)
    return None
