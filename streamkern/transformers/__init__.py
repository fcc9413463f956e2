"""Feature maps as scikit-learn's transformers: options that are drawn when they are fitted."""

from streamkern.transformers.fourier import (
    GridFourierFeatures,
    QuasiRandomFourierFeatures,
    RandomFourierFeatures,
    StructuredFourierFeatures,
)
from streamkern.transformers.others import Identity, Nystroem, RandomBinning, TensorSketch

__all__ = [
    "GridFourierFeatures",
    "Identity",
    "Nystroem",
    "QuasiRandomFourierFeatures",
    "RandomBinning",
    "RandomFourierFeatures",
    "StructuredFourierFeatures",
    "TensorSketch",
]
