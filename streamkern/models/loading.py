"""Fitted models of any kind from files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkern.models.boosting import FittedEnsemble
from streamkern.models.component_files import read_components
from streamkern.models.component_fit import FittedComponents
from streamkern.models.ensemble_files import read_ensemble
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.model_files import read_model
from streamkern.storage import holds_components, holds_ensemble

if TYPE_CHECKING:
    from pathlib import Path

    from streamkern.models.fitted_model import FittedModel


def load_fitted(
    path: str | Path,
    *,
    boosted: bool = True,
    components: bool = True,
    with_equations: bool = True,
) -> FittedModel:
    """Read the fitted model of a file; of kinds that will not do, raise ModelFileError.

    Normal equations are left out if they are not needed.
    """
    if boosted and holds_ensemble(path):
        return FittedEnsemble.of_file(read_ensemble(path), path)
    if components and holds_components(path):
        return FittedComponents.of_file(*read_components(path), path)
    file = read_model(path, with_equations=with_equations)
    kind = FittedClassifier if "classifier" in file.card else FittedRidge
    return kind.of_file(file, path)
