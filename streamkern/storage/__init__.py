"""What streamkern writes: files of models and moments, and tables of rows, whole or not at all."""

from streamkern.storage.checkpoints import (
    Checkpoint,
    SavedPass,
    opened_checkpoint,
    remove_checkpoint,
)
from streamkern.storage.codec import holds_components, holds_ensemble, holds_moments, read_recipe
from streamkern.storage.hdf5_files import FORMATS, IDS, RowWriter, exported, texts_of
from streamkern.storage.outputs import check_output, local_path, make_folder, replacing

__all__ = [
    "FORMATS",
    "IDS",
    "Checkpoint",
    "RowWriter",
    "SavedPass",
    "check_output",
    "exported",
    "holds_components",
    "holds_ensemble",
    "holds_moments",
    "local_path",
    "make_folder",
    "opened_checkpoint",
    "read_recipe",
    "remove_checkpoint",
    "replacing",
    "texts_of",
]
