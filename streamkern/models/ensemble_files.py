"""Files of boosted models: an HDF5 group a round beside one JSON text, nothing that could run.

    /                      attributes format = "streamkern-boosted-model", format_version
    /card                  JSON: options, report, classes, versions, steps and maps of rounds
    /rounds/0/map/...      what the feature map of the round drew
    /rounds/0/coef         (D, q)
    /rounds/0/intercept    (q,)

Normal equations are not kept: they are of weights that only the rounds before know.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamkern.models.model_files import predictor_arrays, restored_predictor
from streamkern.predict.ensemble import ALGORITHMS, Ensemble, Round
from streamkern.storage.codec import BOOSTED, map_card, opened_card, write_card
from streamkern.storage.recipe_files import check_recipe

if TYPE_CHECKING:
    from pathlib import Path

    import h5py


@dataclass(frozen=True)
class EnsembleFile:
    """What the file of a boosted model holds; its card has options, report and classes."""

    ensemble: Ensemble
    card: dict[str, Any]


def write_ensemble(path: str | Path, model: EnsembleFile, *, force: bool = False) -> None:
    """Write the file of a boosted model, whole or not at all."""
    ensemble = model.ensemble
    predictors = [each.predictor for each in ensemble.rounds]
    maps = [map_card(each.feature_map, each.precision) for each in predictors]
    rounds = [{"step": r.step, **each} for r, each in zip(ensemble.rounds, maps, strict=True)]
    facts = {"n_classes": ensemble.n_classes, "algorithm": ensemble.algorithm, "rounds": rounds}
    arrays = {str(i): predictor_arrays(each) for i, each in enumerate(predictors)}
    write_card(path, BOOSTED, {**model.card, "ensemble": facts}, {"rounds": arrays}, force=force)


def read_ensemble(path: str | Path) -> EnsembleFile:
    """Read the file of a boosted model.

    Raises ModelFileError if there is none, or it is of another kind, or damaged, or from a newer
    format.
    """
    with opened_card(path, BOOSTED) as (file, card):
        facts = card["ensemble"]
        K, algorithm = facts["n_classes"], facts["algorithm"]
        if algorithm not in ALGORITHMS or not isinstance(K, int) or K < 2:
            raise ValueError(f"{K} classes by {algorithm!r}")
        q = Ensemble(algorithm, K).n_targets
        rounds = tuple(
            _read_round(file[f"rounds/{i}"], described, q)
            for i, described in enumerate(facts["rounds"])
        )
        if len({each.predictor.feature_map.n_features for each in rounds}) != 1:
            raise ValueError(f"{len(rounds)} rounds that are not of the same inputs")
        check_recipe(card, rounds[0].predictor.feature_map)
        return EnsembleFile(Ensemble(algorithm, K, rounds), card)


def _read_round(group: h5py.Group, described: dict[str, Any], q: int) -> Round:
    predictor, step = restored_predictor(group, described, flat=q == 1), float(described["step"])
    if predictor.n_targets != q:
        raise ValueError(f"a round of {predictor.n_targets} scores, not {q}")
    if not (math.isfinite(step) and step > 0):
        raise ValueError(f"a step of {step}")
    return Round(predictor, step)
