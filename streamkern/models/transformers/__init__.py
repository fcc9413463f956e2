"""Feature maps as scikit-learn's transformers: options that are drawn when they are fitted."""

from streamkern.models.transformers.fourier import (
    GridFourierFeatures,
    QuasiRandomFourierFeatures,
    RandomFourierFeatures,
    StructuredFourierFeatures,
)
from streamkern.models.transformers.single_kernel import (
    Identity,
    Nystroem,
    RandomBinning,
    TensorSketch,
)

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
