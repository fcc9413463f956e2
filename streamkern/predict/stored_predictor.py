"""Predictors from the files of models, with nothing that only a fit or an estimator needs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from streamkern._typing import Group
from streamkern.errors import ModelFileError
from streamkern.errors.checks import checked_range
from streamkern.predict.predictor import Predictor
from streamkern.storage.codec import MODEL, opened_card, restored_map
from streamkern.storage.untrusted import finite_array


def load_predictor(path: str | Path) -> Predictor:
    """Read what a regression predicts by from its file, without scikit-learn and Dask.

    Its `predict` takes an array of inputs (n, p) and does what `load(path).predict` does, in the
    thread that calls it.  It makes no inputs of a table.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Predictor

    Raises
    ------
    ModelFileError
        If the file is no regression, or as by `load`.
    """
    with opened_card(path, MODEL) as (file, card):
        if card.get("kind", "RandomFeatureRidge") != "RandomFeatureRidge":
            raise ModelFileError(f"{path} is of a {card['kind']}; load it with `streamkern.load`.")
        predictor = restored_predictor(file, card, flat=card["flat"])
        return replace(predictor, limits=checked_range(card["options"].get("target_range")))


def restored_predictor(group: Group, card: dict[str, Any], *, flat: bool) -> Predictor:
    feature_map = restored_map(group, card)
    coef, intercept = finite_array(group, "coef"), finite_array(group, "intercept")
    D = feature_map.n_components
    if coef.ndim != 2 or len(coef) != D or intercept.shape != coef.shape[1:]:
        raise ValueError(f"coefficients of shape {coef.shape} for {D} features")
    return Predictor(feature_map, coef, intercept, precision=card["precision"], flat=flat)
