"""Files of boosted models: an HDF5 group a round beside one JSON text, nothing that could run.

    /                      attributes format = "streamkern-boosted-model", format_version
    /card                  JSON: options, report, classes, versions, steps and maps of rounds
    /rounds/0/map/...      what the feature map of the round drew
    /rounds/0/coef         (D, q)
    /rounds/0/intercept    (q,)

Normal equations are not kept: they are of weights that only the rounds before know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors.formatting import json_text
from streamkern.predict.ensemble import ALGORITHMS, Ensemble, Round
from streamkern.predict.predictor import Predictor
from streamkern.storage.cards import BOOSTED, opened_card, plain, restored_map, write_map
from streamkern.storage.disk import new_hdf5
from streamkern.storage.recipe_files import check_recipe
from streamkern.storage.untrusted import finite_array, fixed

if TYPE_CHECKING:
    from pathlib import Path

    import h5py


@dataclass(frozen=True)
class EnsembleFile:
    """What the file of a boosted model holds.

    Parameters
    ----------
    ensemble : Ensemble
    card : dict
        Options, report, classes and versions, as plain JSON values.
    """

    ensemble: Ensemble
    card: dict[str, Any]


def write_ensemble(path: str | Path, model: EnsembleFile, *, force: bool = False) -> None:
    """Write the file of a boosted model, whole or not at all.

    Raises
    ------
    OutputError
        If the file exists and `force` is not given, or cannot be written.
    """
    ensemble = model.ensemble
    rounds = [
        {
            "step": each.step,
            "precision": each.predictor.precision,
            "map": each.predictor.feature_map.name,
            "map_parameters": each.predictor.feature_map.parameters(),
        }
        for each in ensemble.rounds
    ]
    facts = {"n_classes": ensemble.n_classes, "algorithm": ensemble.algorithm}
    card = {**model.card, "ensemble": facts | {"rounds": rounds}}
    with new_hdf5(path, force=force) as (file, disk):
        file.attrs["format"] = fixed(BOOSTED.format)
        file.attrs["format_version"] = BOOSTED.version
        file["card"] = fixed(json_text(card, indent=1, default=plain))
        for i, each in enumerate(ensemble.rounds):
            group = file.create_group(f"rounds/{i}")
            write_map(group, each.predictor.feature_map)
            group["coef"] = each.predictor.coef
            group["intercept"] = each.predictor.intercept
            disk.check()


def read_ensemble(path: str | Path) -> EnsembleFile:
    """Read the file of a boosted model.

    Raises
    ------
    ModelFileError
        If there is none, or it is of another kind, or damaged, or from a newer format.
    """
    with opened_card(path, BOOSTED) as (file, card):
        facts = card["ensemble"]
        K = facts["n_classes"]
        if facts["algorithm"] not in ALGORITHMS or not isinstance(K, int) or K < 2:
            raise ValueError(f"{K} classes by {facts['algorithm']!r}")
        ensemble = Ensemble(facts["algorithm"], K)
        rounds = tuple(
            _read_round(file[f"rounds/{i}"], described, ensemble.n_targets)
            for i, described in enumerate(facts["rounds"])
        )
        if len({each.predictor.feature_map.n_features for each in rounds}) != 1:
            raise ValueError(f"{len(rounds)} rounds that are not of the same inputs")
        check_recipe(card, rounds[0].predictor.feature_map)
        return EnsembleFile(Ensemble(facts["algorithm"], K, rounds), card)


def _read_round(group: h5py.Group, described: dict[str, Any], q: int) -> Round:
    feature_map = restored_map(group, described)
    D, step = feature_map.n_components, float(described["step"])
    coef = finite_array(group, "coef", (D, q))
    intercept = finite_array(group, "intercept", (q,))
    if described["precision"] not in {"single", "double"}:
        raise ValueError(f"precision {described['precision']!r}")
    if not (np.isfinite(step) and step > 0):
        raise ValueError(f"a step of {step}")
    flat, precision = q == 1, described["precision"]
    return Round(Predictor(feature_map, coef, intercept, precision=precision, flat=flat), step)
