"""AdaBoost with random-feature ridge regression: its options, its fit, and what is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.errors import ModelFileError, ParameterError
from streamkern.errors.formatting import unknown
from streamkern.features.metric import described_metric, with_metric
from streamkern.kernels import as_kernel, kernel_from
from streamkern.models.boosting_fit import fit_rounds, round_options
from streamkern.models.ensemble_files import EnsembleFile, write_ensemble
from streamkern.models.fitted_classes import FittedClasses
from streamkern.models.fitted_model import columns_of, versions
from streamkern.models.labelling import (
    checked_class_weight,
    class_facts,
    described_class_weight,
    factors_of,
    labelled_source,
    restored_class_weight,
)
from streamkern.models.scoring import scored
from streamkern.parameters.parameters import Parameters
from streamkern.predict.class_rule import AdditiveVotes, ClassRule
from streamkern.predict.ensemble import ALGORITHMS, StagedErrors
from streamkern.storage.untrusted import WRONG_VALUES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from streamkern._typing import Floats
    from streamkern.predict.ensemble import Ensemble
    from streamkern.sources import LabelledSource

# Of a round, where none is given: several small maps do what one large map does.
_COMPONENTS = 512


@dataclass(frozen=True)
class Boosting:
    """How rounds follow each other; the fields are documented in `RandomFeatureAdaBoost`."""

    n_estimators: int = 10
    algorithm: str = "gentle"
    learning_rate: float = 1.0
    class_weight: Any = None

    def __post_init__(self) -> None:
        T: Any = self.n_estimators
        rate: Any = self.learning_rate
        if isinstance(T, bool) or not isinstance(T, (int, np.integer)) or T < 1:
            raise ParameterError(
                f"n_estimators must be a whole number of at least 1, not {T!r}; give how many "
                f"rounds there may be."
            )
        if self.algorithm not in ALGORITHMS:
            raise ParameterError(
                f"algorithm must be one of {', '.join(ALGORITHMS)}, not "
                f"{unknown(self.algorithm, ALGORITHMS)}; choose one of them."
            )
        if (
            isinstance(rate, bool)
            or not isinstance(rate, (int, float, np.number))
            or not 0 < rate <= 1
        ):
            raise ParameterError(
                f"learning_rate must be above 0 and at most 1, not {rate!r}; take 1 for full steps."
            )

        checked_class_weight(self.class_weight)

    @staticmethod
    def parameters_of_a_round() -> Parameters:
        """Return the parameters of a round where none are given."""
        return Parameters(n_components=_COMPONENTS)

    def check(self, parameters: Parameters) -> None:
        """Raise ParameterError unless rounds can have these parameters."""
        round_options(parameters)

    def as_dict(self) -> dict[str, Any]:
        """Return all but the weights of classes as plain JSON values."""
        names = ("n_estimators", "algorithm", "learning_rate")
        return {name: getattr(self, name) for name in names}

    def fit(
        self, parameters: Parameters, rows: Any, *, checkpoint: str | Path | None = None
    ) -> FittedEnsemble:
        """Fit round after round to rows, a triple of X, labels and weights."""
        skip = parameters.skips_bad_rows
        source = labelled_source(*rows, class_weight=self.class_weight, skip_bad_rows=skip)
        ensemble, report = fit_rounds(source, parameters, self, checkpoint)
        counts: Any = source.class_counts
        report |= class_facts(source) | {"class_counts": counts.tolist()}
        rule = ClassRule(source.classes, AdditiveVotes(source.classes.n_targets))
        return FittedEnsemble(parameters, self, ensemble, report, rule, source.class_weight)


@dataclass(frozen=True)
class FittedEnsemble(FittedClasses):
    """A boosted classifier.

    Parameters
    ----------
    parameters : Parameters
        Of a round.
    boosting : Boosting
    predictor : Ensemble
    report : dict
    rule : ClassRule
    class_factors : ndarray of shape (K,), optional
        What weights of rows were multiplied by.
    names : sequence of str, optional
        Of the inputs, where the report has none.
    """

    parameters: Parameters
    boosting: Boosting
    predictor: Ensemble
    report: dict[str, Any]
    rule: ClassRule
    class_factors: Floats | None = None
    names: Sequence[str] | None = None

    @property
    def n_features(self) -> int:
        """The number of inputs, p."""
        return self.predictor.n_features

    def staged_evaluate(self, source: LabelledSource, *, skip_bad_rows: bool) -> dict[str, Any]:
        """Say how the first rounds do, for every number of them, in one pass."""
        ensemble = self.predictor
        ensemble.check((source.n_samples, source.n_features))
        empty, row_bytes = StagedErrors(ensemble), 8 * ensemble.n_components
        result, found, _ = scored(source, empty, empty, row_bytes, "rounds", skip_bad_rows)
        bounds = found.error_bounds
        return {
            "rows": result.n_rows,
            "errors": found.errors.tolist(),
            "error_bounds": None if bounds is None else bounds.tolist(),
        }

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the model to a file."""
        base, weight = self.parameters.values(), self.boosting.class_weight
        kernel = as_kernel(base.pop("kernel"))
        base["metric"] = described_metric(base["metric"])
        card = {
            "kind": "RandomFeatureAdaBoost",
            "options": self.boosting.as_dict() | {"class_weight": described_class_weight(weight)},
            "base": base,
            "base_kernel": {"name": kernel.name, "parameters": kernel.parameters()},
            "classifier": self.rule.as_dict(),
            "report": self.report,
            "versions": versions(),
            "feature_names": self.feature_names,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_ensemble(path, EnsembleFile(self.predictor, card), force=force)

    @classmethod
    def of_file(cls, file: EnsembleFile, path: str | Path) -> Self:
        """Return the model of a file, or raise ModelFileError if that is damaged."""
        card, ensemble = file.card, file.ensemble
        try:
            kernel = card["base_kernel"]
            base = with_metric(card["base"], ensemble.rounds[0].predictor.feature_map)
            parameters = Parameters(kernel_from(kernel["name"], kernel["parameters"]), **base)
            rule, options = ClassRule.from_dict(card["classifier"]), dict(card["options"])
            weight = restored_class_weight(options.pop("class_weight"))
            boosting = Boosting(**options, class_weight=weight)
            boosting.check(parameters)
            if len(rule.classes) != ensemble.n_classes or boosting.algorithm != ensemble.algorithm:
                raise ValueError(f"{len(rule.classes)} classes")
            factors = factors_of(card["report"]["class_factors"], rule.classes)
            names = card.get("feature_names")
            columns_of(card["report"], ensemble.n_features, names)
            return cls(parameters, boosting, ensemble, card["report"], rule, factors, names)
        except WRONG_VALUES as error:
            raise ModelFileError(f"{path} is a damaged model ({error}); copy it again.") from error
