"""Feature maps phi with phi(x)^T phi(x') = k(x, x') in expectation, a family a file."""

# ruff: noqa: I001  families are listed in the order in which they are declared
from streamkern.features.base import MAPS, FeatureMap
from streamkern.features.families import FAMILIES, Family
from streamkern.features.kernel_map import KernelMap
from streamkern.features.random_fourier import RandomFourierFeatures
from streamkern.features.structured_orthogonal import StructuredFourierFeatures
from streamkern.features.quasi_monte_carlo import QuasiRandomFourierFeatures
from streamkern.features.grid import GridFourierFeatures
from streamkern.features.nystroem import FlattenedSimilarities, Nystroem
from streamkern.features.binning import RandomBinning
from streamkern.features.tensor_sketch import TensorSketch
from streamkern.features.identity import Identity
from streamkern.features.cosines import Cosines
from streamkern.features.kernel_values import Projected, Similarities
from streamkern.features.selected import Chosen
from streamkern.features.standardized import Standardized, Standardizer

__all__ = [
    "FAMILIES",
    "MAPS",
    "Chosen",
    "Cosines",
    "Family",
    "FeatureMap",
    "FlattenedSimilarities",
    "GridFourierFeatures",
    "Identity",
    "KernelMap",
    "Nystroem",
    "Projected",
    "QuasiRandomFourierFeatures",
    "RandomBinning",
    "RandomFourierFeatures",
    "Similarities",
    "Standardized",
    "Standardizer",
    "StructuredFourierFeatures",
    "TensorSketch",
]
