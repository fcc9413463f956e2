"""What streamkern writes: model files, and tables of rows, whole or not at all."""

from streamkern.storage.models import ModelFile, read_model, write_model
from streamkern.storage.outputs import check_output, make_folder, replacing
from streamkern.storage.rows import RowWriter

__all__ = [
    "ModelFile",
    "RowWriter",
    "check_output",
    "make_folder",
    "read_model",
    "replacing",
    "write_model",
]
