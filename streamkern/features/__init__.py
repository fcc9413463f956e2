"""Feature maps phi with phi(x)^T phi(x') = k(x, x') in expectation, a family a file."""

# ruff: noqa: I001  families are listed in the order in which they are declared
from streamkern.features.base import MAPS, FeatureMap
from streamkern.features.families import FAMILIES, Family
from streamkern.features.kernel_map import Chosen, KernelMap
from streamkern.features.random_fourier import RandomFourierFeatures, StructuredFourierFeatures
from streamkern.features.quadrature import GridFourierFeatures, QuasiRandomFourierFeatures
from streamkern.features.nystroem import FlattenedSimilarities, Nystroem
from streamkern.features.hashing import RandomBinning, TensorSketch
from streamkern.features.standardized import Identity, Standardized, Standardizer
from streamkern.features.cosines import Cosines
from streamkern.features.kernel_values import Projected, Similarities

__all__ = [
    "FAMILIES", "MAPS", "Chosen", "Cosines", "Family", "FeatureMap", "FlattenedSimilarities",
    "GridFourierFeatures", "Identity", "KernelMap", "Nystroem", "Projected",
    "QuasiRandomFourierFeatures", "RandomBinning", "RandomFourierFeatures", "Similarities",
    "Standardized", "Standardizer", "StructuredFourierFeatures", "TensorSketch",
]  # fmt: skip
