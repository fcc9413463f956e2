"""Estimators from files."""

from pathlib import Path
from typing import Any

import streamkern
from streamkern.estimators.base import with_state
from streamkern.estimators.loading import load_fitted
from streamkern.models.fitted_model import FittedModel


def load(path: str | Path) -> Any:
    """Read a model of any kind: what `save`, or `streamkern fit`, `tune`, or `pca`, wrote.

    ModelFileError is raised if the file is missing, is not a model, is damaged, or has a newer
    format.

    Returns
    -------
    RandomFeatureRidge, RandomFeatureClassifier, RandomFeatureAdaBoost or RandomFeaturePCA
    """
    return estimator_of(load_fitted(path))


def estimator_of(model: FittedModel) -> Any:
    estimator = getattr(streamkern, model.estimator)
    return with_state(estimator(**model.estimator_parameters()), model)
