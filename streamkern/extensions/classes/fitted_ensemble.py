"""AdaBoost with random-feature ridge regression: its options, its fit, and what is fitted."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from streamkern._typing import Floats, Group
from streamkern.errors import ParameterError
from streamkern.errors.checks import check_choice, checked_integer, is_integer
from streamkern.extensions.classes.boosted_rows import boosted_rows
from streamkern.extensions.classes.class_rule import AdditiveVotes, ClassRule
from streamkern.extensions.classes.ensemble import ALGORITHMS, Ensemble, Round, StagedErrors
from streamkern.extensions.classes.fitted_classes import FittedClasses
from streamkern.extensions.classes.labelled_source import KnownClasses, LabelledSource
from streamkern.extensions.classes.labelling import (
    checked_class_weight,
    described_class_weight,
    labelled_source,
    restored_class_weight,
)
from streamkern.extensions.classes.rounds import fit_rounds, round_options
from streamkern.models.fitted_model import (
    described_parameters,
    predictor_arrays,
    restored_parameters,
    through,
)
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.planning import Job
from streamkern.predict.stored_predictor import restored_predictor
from streamkern.sources.columns import Columns, columns_of
from streamkern.storage.codec import Kind, map_card

# Of a round, where none is given: several small maps do what one large map does.
OF_A_ROUND = Parameters(n_components=512)


@dataclass(frozen=True)
class Boosting:
    """How rounds follow each other; the fields are documented in `RandomFeatureAdaBoost`."""

    n_estimators: int = 10
    algorithm: str = "gentle"
    learning_rate: float = 1.0
    class_weight: Any = None

    def __post_init__(self) -> None:
        rate: Any = self.learning_rate
        sentence = (
            "n_estimators must be a whole number of at least 1, not {!r}; give how many rounds "
            "there may be."
        )
        checked_integer(self.n_estimators, sentence, 1)
        check_choice("algorithm", self.algorithm, ALGORITHMS)
        is_number = isinstance(rate, (int, float, np.number)) and not isinstance(rate, bool)
        if not is_number or not 0 < rate <= 1:
            raise ParameterError(
                f"learning_rate must be above 0 and at most 1, not {rate!r}; take 1 for full steps."
            )
        checked_class_weight(self.class_weight)

    def check(self, parameters: Parameters) -> None:
        parameters.check_direct()
        round_options(parameters)

    def as_dict(self) -> FitReport:
        """Return all but the weights of classes as plain JSON values."""
        told: Any = {name: v for name, v in vars(self).items() if name != "class_weight"}
        return told

    def job(self, parameters: Parameters) -> Job:
        """Return what is known of all rounds before the rows, as `Problem.job` does of a fit."""
        solution = {"fixed_alpha": parameters.solves_at_once, "n_maps": 1 + self.n_estimators}
        return Job(round_options(parameters), solution)

    def fit(
        self, parameters: Parameters, rows: Any, *, checkpoint: str | Path | None = None
    ) -> "FittedEnsemble":
        """Fit round after round to rows, a triple of X, labels and weights."""
        skip = parameters.skips_bad_rows
        source = labelled_source(*rows, class_weight=self.class_weight, skip_bad_rows=skip)
        ensemble, report = fit_rounds(source, parameters, self, checkpoint)
        known: Any = source.encoding
        report |= known.facts()
        counts: Any = source.class_counts
        if counts.sum() == report["rows"]:  # without others
            report["class_counts"] = counts.tolist()
        rule = ClassRule(known.classes, AdditiveVotes())
        given = report, columns_of(source), rule, known.factors
        return FittedEnsemble(parameters, self, ensemble, *given)


@dataclass(frozen=True, repr=False)
class FittedEnsemble(FittedClasses):
    """A boosted classifier; its parameters are those of a round."""

    file_kind = Kind("boosted classifier", "streamkern-boosted-model", 1, "streamkern fit --boost")
    options_in, is_linear = "base", False
    estimator = "RandomFeatureAdaBoost"
    rows_of = staticmethod(boosted_rows)

    parameters: Parameters
    boosting: Boosting
    predictor: Ensemble
    report: FitReport
    columns: Columns
    rule: ClassRule
    class_factors: Floats | None = None

    n_features = through("predictor.n_features")

    def estimator_parameters(self) -> dict[str, Any]:
        from streamkern.estimators.random_feature_ridge import RandomFeatureRidge

        return {"estimator": RandomFeatureRidge(**self.parameters.values()), **vars(self.boosting)}

    def staged_evaluate(self, source: LabelledSource) -> dict[str, Any]:
        """Say how the first rounds do, for every number of them, in one pass."""
        result, found = self.scored(source, StagedErrors(self.predictor), "rounds")
        bounds = found.error_bounds
        return {
            "rows": result.n_rows,
            "errors": found.errors.tolist(),
            "error_bounds": None if bounds is None else bounds.tolist(),
        }

    def stored(self, *, compact: bool) -> tuple[dict[str, Any], dict[str, Any]]:  # noqa: ARG002
        """Return parameters and rounds; their normal equations are of weights that are gone."""
        ensemble, weight = self.predictor, self.boosting.class_weight
        base, kernel = described_parameters(self.parameters)
        rounds = [
            {"step": each.step, **map_card(each.predictor.feature_map, each.predictor.precision)}
            for each in ensemble.rounds
        ]
        facts = {"n_classes": ensemble.n_classes, "algorithm": ensemble.algorithm, "rounds": rounds}
        card = {
            "options": self.boosting.as_dict() | {"class_weight": described_class_weight(weight)},
            "base": base,
            "base_kernel": kernel,
            "classifier": self.rule.as_dict(),
            "ensemble": facts,
        }
        arrays = [predictor_arrays(each.predictor) for each in ensemble.rounds]
        return card, {"rounds": {str(i): each for i, each in enumerate(arrays)}}

    @classmethod
    def restored(cls, file: Group, card: dict[str, Any], *, with_equations: bool) -> Self:  # noqa: ARG003
        ensemble = _restored_ensemble(file, card["ensemble"])
        feature_map = ensemble.rounds[0].predictor.feature_map
        parameters = restored_parameters(card["base"], card["base_kernel"], feature_map)
        rule, options = ClassRule.from_dict(card["classifier"]), dict(card["options"])
        weight = restored_class_weight(options.pop("class_weight"))
        boosting, report = Boosting(**options, class_weight=weight), card["report"]
        boosting.check(parameters)
        if len(rule.classes) != ensemble.n_classes or boosting.algorithm != ensemble.algorithm:
            raise ValueError(f"{len(rule.classes)} classes")
        factors = KnownClasses.restored(report).factors
        columns = Columns.restored(card, feature_map.n_features)
        return cls(parameters, boosting, ensemble, report, columns, rule, factors)


def _restored_ensemble(file: Group, facts: dict[str, Any]) -> Ensemble:
    K, algorithm, rounds = facts["n_classes"], facts["algorithm"], []
    if algorithm not in ALGORITHMS or not is_integer(K, 2):
        raise ValueError(f"{K} classes by {algorithm!r}")
    q = Ensemble(algorithm, K).n_targets
    for i, described in enumerate(facts["rounds"]):
        predictor = restored_predictor(file[f"rounds/{i}"], described, flat=q == 1)
        step = float(described["step"])
        if predictor.n_targets != q:
            raise ValueError(f"a round of {predictor.n_targets} scores, not {q}")
        if not (math.isfinite(step) and step > 0):
            raise ValueError(f"a step of {step}")
        rounds.append(Round(predictor, step))
    if len({each.predictor.feature_map.n_features for each in rounds}) != 1:
        raise ValueError(f"{len(rounds)} rounds that are not of the same inputs")
    return Ensemble(algorithm, K, tuple(rounds))
