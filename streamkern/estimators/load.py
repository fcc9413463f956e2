"""Estimators from files."""

from pathlib import Path
from typing import Any

from streamkern.estimators.base import with_state
from streamkern.estimators.boosting import FittedEnsemble
from streamkern.estimators.component_fit import FittedComponents
from streamkern.estimators.loading import load_fitted
from streamkern.estimators.random_feature_adaboost import RandomFeatureAdaBoost
from streamkern.estimators.random_feature_classifier import RandomFeatureClassifier
from streamkern.estimators.random_feature_pca import RandomFeaturePCA
from streamkern.estimators.random_feature_ridge import RandomFeatureRidge
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.fitted_model import FittedModel
from streamkern.models.fitted_ridge import FittedRidge


def load(
    path: str | Path,
) -> RandomFeatureRidge | RandomFeatureClassifier | RandomFeatureAdaBoost | RandomFeaturePCA:
    """Read a model of any kind: what `save`, or `streamkern fit`, `tune`, or `pca`, wrote.

    ModelFileError is raised if the file is missing, is not a model, is damaged, or has a newer
    format.
    """
    return estimator_of(load_fitted(path))


def estimator_of(model: FittedModel) -> Any:
    if isinstance(model, FittedComponents):
        estimator: Any = RandomFeaturePCA(**vars(model.options))
    elif isinstance(model, FittedEnsemble):
        base = RandomFeatureRidge(**model.parameters.values())
        estimator = RandomFeatureAdaBoost(base, **vars(model.boosting))
    elif isinstance(model, FittedClassifier):
        problem = {"class_weight": model.class_weight, "calibration": model.calibration}
        given = model.ridge.parameters.values()
        del given["target_range"]  # labels have none
        estimator = RandomFeatureClassifier(**given, **problem)
    else:
        assert isinstance(model, FittedRidge)  # noqa: S101  there are four
        estimator = RandomFeatureRidge(**model.parameters.values())
    return with_state(estimator, model)
