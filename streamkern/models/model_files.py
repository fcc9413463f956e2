"""Model files: HDF5 arrays and one JSON text, nothing that could run.

    /             attributes format = "streamkern-model", format_version
    /card         JSON: kind, options, fit report, data, versions of libraries, map and parameters
    /map/...      what the feature map drew
    /coef         (D, q)
    /intercept    (q,)
    /equations/.. the normal equations, unless left out: gram, one packed triangle, and vectors

Frequencies are stored, not drawn again from the seed: neither NumPy's random streams nor LAPACK's
orthogonal matrices are promised to stay the same over the years, and a model must.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.predict.predictor import Predictor
from streamkern.statistics.triangle import Triangle
from streamkern.storage.codec import MODEL, map_card, opened_card, restored_map, write_card
from streamkern.storage.recipe_files import check_recipe
from streamkern.storage.untrusted import finite_array, finite_arrays

if TYPE_CHECKING:
    from pathlib import Path

    import h5py

    from streamkern.solve import NormalEquations


@dataclass(frozen=True)
class ModelFile:
    """What a model file holds; its card has options, report, data and versions."""

    predictor: Predictor
    card: dict[str, Any]
    equations: NormalEquations | None = None


def write_model(path: str | Path, model: ModelFile, *, force: bool = False) -> None:
    """Write a model file, whole or not at all."""
    predictor = model.predictor
    card = {**model.card, "flat": predictor.flat}
    card |= map_card(predictor.feature_map, predictor.precision)
    arrays = predictor_arrays(predictor)
    if model.equations is not None:
        equations = vars(model.equations)
        arrays["equations"] = equations | {"intercept": int(model.equations.intercept)}
    write_card(path, MODEL, card, arrays, force=force)


def read_model(path: str | Path, *, with_equations: bool = True) -> ModelFile:
    """Read a model file, without its normal equations if they are not wanted.

    Raises ModelFileError if there is none, or it is not a model, or damaged, or from a newer
    format.
    """
    with opened_card(path, MODEL) as (file, card):
        predictor = restored_predictor(file, card, flat=card["flat"])
        check_recipe(card, predictor.feature_map)
        equations = None
        if with_equations and "equations" in file:
            equations = _read_equations(file["equations"], *predictor.coef.shape)
        return ModelFile(predictor, card, equations)


def predictor_arrays(predictor: Predictor) -> dict[str, Any]:
    """Return the arrays of a predictor, whose map and precision are on a card."""
    arrays = {"map": predictor.feature_map.arrays()}
    return {**arrays, "coef": predictor.coef, "intercept": predictor.intercept}


def restored_predictor(group: h5py.Group, card: dict[str, Any], *, flat: bool) -> Predictor:
    """Return the predictor that a card and its arrays describe."""
    feature_map = restored_map(group, card)
    coef, intercept = finite_array(group, "coef"), finite_array(group, "intercept")
    D = feature_map.n_components
    if coef.ndim != 2 or len(coef) != D or intercept.shape != coef.shape[1:]:
        raise ValueError(f"coefficients of shape {coef.shape} for {D} features")
    return Predictor(feature_map, coef, intercept, precision=card["precision"], flat=flat)


def _read_equations(group: h5py.Group, D: int, q: int) -> NormalEquations:
    from streamkern.solve import NormalEquations  # noqa: PLC0415  slow, with SciPy

    gram = Triangle.unpacked(finite_array(group, "gram", (D * (D + 1) // 2,)))
    mean = finite_array(group, "feature_mean", (D,))
    vectors = dict.fromkeys(("alphas", "effective_dof", "train_rss"), (q,))
    found = finite_arrays(group, vectors | dict.fromkeys(("weight", "intercept", "floor"), ()))
    row_weight = finite_array(group, "row_weight", ()) if "row_weight" in group else np.ones(())
    weight, intercept = float(found.pop("weight")), bool(found.pop("intercept"))
    floor = float(found.pop("floor"))
    if not (weight > 0 and 0 < row_weight <= 1):
        raise ValueError(f"equations of weight {weight:g}, of which rows have {row_weight:g}")
    for name, values in found.items():
        if (values < 0).any():
            raise ValueError(f"{name} holds numbers below zero")
    return NormalEquations(
        gram, mean, weight=weight, intercept=intercept, floor=floor,
        row_weight=float(row_weight), **found,
    )  # fmt: skip
