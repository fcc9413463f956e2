"""AdaBoost on arrays, Dask arrays and files: its fit, its predictions and its file."""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime
from inspect import signature
from typing import TYPE_CHECKING, Any, Self, TypeVar

from streamkern.errors import ModelFileError, ParameterError
from streamkern.features.metric import described_metric, with_metric
from streamkern.kernels import kernel_from
from streamkern.models.boosting_fit import boosting_options, fit_rounds
from streamkern.models.boosting_options import BoostingOptions
from streamkern.models.ensemble_files import EnsembleFile, write_ensemble
from streamkern.models.fitted_ridge import versions
from streamkern.models.labelling import (
    checked_class_weight,
    described_class_weight,
    factors_of,
    labelled_source,
    restored_class_weight,
)
from streamkern.models.prediction import predicted_rows
from streamkern.models.ridge_model import RidgeModel
from streamkern.models.scored_classes import ScoredClasses
from streamkern.models.scoring import scored
from streamkern.predict.boosting_rounds import StagedErrors
from streamkern.predict.calibrators import AdditiveVotes
from streamkern.predict.class_rule import ClassRule
from streamkern.runtime.events import job
from streamkern.storage.untrusted import WRONG_VALUES

if TYPE_CHECKING:
    from pathlib import Path

    from streamkern._typing import Floats
    from streamkern.predict.ensemble import Ensemble
    from streamkern.predict.predictor import RowFunction

_Model = TypeVar("_Model", bound="BoostedModel")

# Of a round, where none is given: several small maps do what one large map does.
_COMPONENTS = 512


class BoostedModel(ScoredClasses):
    """AdaBoost with random-feature ridge, without what scikit-learn adds to it.

    Commands take this one.  Parameters and attributes are those of `RandomFeatureAdaBoost`.
    """

    report_: dict[str, Any]
    ensemble_: Ensemble

    def __init__(
        self,
        estimator: RidgeModel | None = None,
        *,
        n_estimators: int = 10,
        algorithm: str = "gentle",
        learning_rate: float = 1.0,
        class_weight: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.algorithm = algorithm
        self.learning_rate = learning_rate
        self.class_weight = class_weight

    @property
    def on_bad_rows(self) -> str:  # type: ignore[override]
        """What to do about rows that are not finite, or have no label, as `estimator` says."""
        return getattr(self.estimator, "on_bad_rows", "error")

    @property
    def predictor_(self) -> RowFunction:
        """What gives the scores of rows."""
        return self.ensemble_

    def _ridge(self) -> RidgeModel:
        """Return what every round is, not fitted.

        Raises
        ------
        ParameterError
            If the estimator is no random-feature ridge regression.
        """
        if self.estimator is None:
            return RidgeModel(n_components=_COMPONENTS)
        if not isinstance(self.estimator, RidgeModel):
            raise ParameterError(
                f"estimator must be a RandomFeatureRidge, not {self.estimator!r}; give one, or "
                f"None."
            )
        return copy(self.estimator)

    def _boosting(self) -> BoostingOptions:
        """Return the checked options of the rounds.

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have.
        """
        checked_class_weight(self.class_weight)
        boosting_options(self._ridge())
        return BoostingOptions(self.n_estimators, self.algorithm, self.learning_rate)

    @job("fit")
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Fit the model: the labels are read for their classes, then the rows.

        A light pass comes first, and another last; every round is a pass of sums and a light one.

        Parameters
        ----------
        X : Source, array_like or dask.array.Array, of shape (n, p)
            A source, such as `open_hdf5` returns, brings its own labels.
        y : array_like or dask.array.Array of shape (n,)
            Labels: text, bytes, booleans or whole numbers.  NaN, None and empty texts are missing.
        sample_weight : array_like of shape (n,), optional
        checkpoint : path, optional
            As in `RandomFeatureRidge.fit`: it goes on in the round where it was stopped.

        Raises
        ------
        DataError
            If the rows or their labels cannot be used, or the first round does no better than
            chance.
        ParameterError, CheckpointError, InsufficientMemoryError, SingularSystemError
            As `RandomFeatureRidge.fit` does.
        """
        boosting, ridge = self._boosting(), self._ridge()
        X, y, sample_weight = self._tables(X, y, sample_weight, first=True, fewest=2)
        source, counts = labelled_source(
            *(X, y, sample_weight),
            class_weight=self.class_weight,
            skip_bad_rows=ridge.on_bad_rows == "skip",
        )
        ensemble, report = fit_rounds(source, ridge, boosting, checkpoint)
        factors = source.class_weight
        self.report_ = report | {
            "classes": source.classes.as_dict(),
            "class_factors": None if factors is None else factors.tolist(),
            "class_counts": counts.weights.tolist(),
        }
        rule = ClassRule(source.classes, AdditiveVotes(source.classes.n_targets))
        self._take(ensemble, rule, factors)
        return self

    def _take(self, ensemble: Ensemble, rule: ClassRule, class_factors: Floats | None) -> None:
        """Set the fitted attributes besides the report."""
        self.ensemble_, self.rule_, self.class_factors_ = ensemble, rule, class_factors
        self._note_inputs(ensemble.n_features)

    def staged_evaluate(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, Any]:
        """Say how the first rounds do, for every number of them, in one pass.

        Parameters are those of `fit`.

        Returns
        -------
        dict
            `rows`, `errors`, the share of rows that is wrong after every round, and
            `error_bounds`, what that is at most, or None of more than two classes.
        """
        self._check_fitted()
        source, ensemble = self._labelled(X, y, sample_weight), self.ensemble_
        ensemble.check((source.n_samples, source.n_features))
        empty, row_bytes = StagedErrors(ensemble), 8 * ensemble.n_components
        skip = self.on_bad_rows == "skip"
        result, found, _ = scored(source, empty, empty, row_bytes, "rounds", skip)
        bounds = found.error_bounds
        return {
            "rows": result.n_rows,
            "errors": found.errors.tolist(),
            "error_bounds": None if bounds is None else bounds.tolist(),
        }

    def _scores(self, X: Any) -> Any:
        return predicted_rows(self.ensemble_, X)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the fitted model to an HDF5 file, which `streamkern.load` reads.

        Raises
        ------
        OutputError
            If the file exists and `force` is not given, or cannot be written.
        """
        self._check_fitted()
        ridge, weight = self._ridge(), described_class_weight(self.class_weight)
        base = {name: getattr(ridge, name) for name in signature(RidgeModel).parameters}
        kernel = base.pop("kernel")
        base["metric"] = described_metric(base["metric"])
        card = {
            "kind": "RandomFeatureAdaBoost",
            "options": self._boosting().as_dict() | {"class_weight": weight},
            "base": base,
            "base_kernel": {"name": kernel.name, "parameters": kernel.parameters()},
            "classifier": self.rule_.as_dict(),
            "report": self.report_,
            "versions": versions(),
            "feature_names": self._feature_names(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_ensemble(path, EnsembleFile(self.ensemble_, card), force=force)


def restored_ensemble(
    model_class: type[_Model], base_class: type[RidgeModel], file: EnsembleFile, path: str | Path
) -> _Model:
    """Return the model of a file, or raise ModelFileError if that is damaged."""
    card = file.card
    try:
        kernel, rounds = card["base_kernel"], file.ensemble.rounds
        base = with_metric(card["base"], rounds[0].predictor.feature_map)
        estimator = base_class(kernel_from(kernel["name"], kernel["parameters"]), **base)
        rule = ClassRule.from_dict(card["classifier"])
        options = dict(card["options"])
        weight = restored_class_weight(options.pop("class_weight"))
        model = model_class(estimator, class_weight=weight, **options)
        if len(rule.classes) != file.ensemble.n_classes or model.algorithm != (
            file.ensemble.algorithm
        ):
            raise ValueError(f"{len(rule.classes)} classes")
        model._boosting()
        factors = factors_of(card["report"]["class_factors"], rule.classes)
        model.report_ = card["report"]
        model._take(file.ensemble, rule, factors)
        model._note_inputs(file.ensemble.n_features, card.get("feature_names"))
    except WRONG_VALUES as error:
        raise ModelFileError(f"{path} is a damaged model ({error}); copy it again.") from error
    return model
