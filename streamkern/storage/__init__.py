"""What streamkern writes: files of models and moments, and tables of rows, whole or not at all."""

from streamkern.storage.cards import (
    COMPONENTS,
    MOMENTS,
    damaged,
    holds_components,
    holds_ensemble,
    holds_moments,
    opened_card,
)
from streamkern.storage.checkpoints import (
    Checkpoint,
    SavedPass,
    locked,
    opened_checkpoint,
    remove_checkpoint,
)
from streamkern.storage.components import read_components, write_components
from streamkern.storage.ensembles import EnsembleFile, read_ensemble, write_ensemble
from streamkern.storage.exports import FORMATS, exported
from streamkern.storage.models import ModelFile, read_model, write_model
from streamkern.storage.moments import MomentsFile, read_moments, write_moments
from streamkern.storage.outputs import (
    check_format,
    check_output,
    local_path,
    make_folder,
    replacing,
)
from streamkern.storage.recipes import read_recipe
from streamkern.storage.rows import RowWriter, texts_of

__all__ = [
    "COMPONENTS",
    "FORMATS",
    "MOMENTS",
    "Checkpoint",
    "EnsembleFile",
    "ModelFile",
    "MomentsFile",
    "RowWriter",
    "SavedPass",
    "check_format",
    "check_output",
    "damaged",
    "exported",
    "holds_components",
    "holds_ensemble",
    "holds_moments",
    "local_path",
    "locked",
    "make_folder",
    "opened_card",
    "opened_checkpoint",
    "read_components",
    "read_ensemble",
    "read_model",
    "read_moments",
    "read_recipe",
    "remove_checkpoint",
    "replacing",
    "texts_of",
    "write_components",
    "write_ensemble",
    "write_model",
    "write_moments",
]
