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
from streamkern.storage.cards import MODEL, opened_card, restored_map, write_card
from streamkern.storage.disk import new_hdf5
from streamkern.storage.recipe_files import check_recipe
from streamkern.storage.untrusted import finite_array

if TYPE_CHECKING:
    from pathlib import Path

    import h5py

    from streamkern.solve import NormalEquations

_VECTORS = ("feature_mean", "alphas", "effective_dof", "train_rss")


@dataclass(frozen=True)
class ModelFile:
    """What a model file holds.

    Parameters
    ----------
    predictor : Predictor
    card : dict
        Options, report, data and versions, as plain JSON values.
    equations : NormalEquations, optional
    """

    predictor: Predictor
    card: dict[str, Any]
    equations: NormalEquations | None = None


def write_model(path: str | Path, model: ModelFile, *, force: bool = False) -> None:
    """Write a model file, whole or not at all.

    Raises
    ------
    OutputError
        If the file exists and `force` is not given, or cannot be written.
    """
    predictor = model.predictor
    card = {**model.card, "precision": predictor.precision, "flat": predictor.flat}
    with new_hdf5(path, force=force) as (file, _):
        write_card(file, MODEL, card, predictor.feature_map)
        file["coef"] = predictor.coef
        file["intercept"] = predictor.intercept
        if model.equations is not None:
            _write_equations(file.create_group("equations"), model.equations)


def _write_equations(group: h5py.Group, equations: NormalEquations) -> None:
    group["gram"] = equations.gram.packed()
    for name in _VECTORS:
        group[name] = getattr(equations, name)
    group["weight"] = equations.weight
    group["intercept"] = int(equations.intercept)
    group["floor"] = equations.floor
    group["row_weight"] = equations.row_weight


def _read_equations(group: h5py.Group, D: int, q: int) -> NormalEquations:
    from streamkern.solve import NormalEquations  # noqa: PLC0415  slow, with SciPy

    vectors = {
        name: finite_array(group, name, (D,) if name == "feature_mean" else (q,))
        for name in _VECTORS
    }
    gram = Triangle.unpacked(finite_array(group, "gram", (D * (D + 1) // 2,)))
    weight, intercept = finite_array(group, "weight", ()), finite_array(group, "intercept", ())
    each = finite_array(group, "row_weight", ()) if "row_weight" in group else np.ones(())
    if not (weight > 0 and 0 < each <= 1):
        raise ValueError(f"equations of weight {weight:g}, of which rows have {each:g}")
    for name, values in vectors.items():
        if name != "feature_mean" and (values < 0).any():
            raise ValueError(f"{name} holds numbers below zero")
    return NormalEquations(
        gram=gram,
        weight=float(weight),
        intercept=bool(intercept),
        floor=float(finite_array(group, "floor", ())),
        row_weight=float(each),
        **vectors,
    )


def read_model(path: str | Path, *, with_equations: bool = True) -> ModelFile:
    """Read a model file, without its normal equations if they are not wanted.

    Raises
    ------
    ModelFileError
        If there is none, or it is not a model, or damaged, or from a newer format.
    """
    with opened_card(path, MODEL) as (file, card):
        feature_map = restored_map(file, card)
        coef, intercept = finite_array(file, "coef"), finite_array(file, "intercept")
        D = feature_map.n_components
        if coef.ndim != 2 or len(coef) != D or intercept.shape != coef.shape[1:]:
            raise ValueError(f"coefficients of shape {coef.shape} for {D} features")
        if card["precision"] not in {"single", "double"}:
            raise ValueError(f"precision {card['precision']!r}")
        check_recipe(card, feature_map)
        predictor = Predictor(
            feature_map, coef, intercept, precision=card["precision"], flat=card["flat"]
        )
        equations = None
        if with_equations and "equations" in file:
            equations = _read_equations(file["equations"], *coef.shape)
        return ModelFile(predictor, card, equations)
