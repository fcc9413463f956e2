"""Feature maps phi with phi(x)^T phi(x') = k(x, x') in expectation, a family a file."""

from streamkern.features.base import FeatureMap
from streamkern.features.binning import RandomBinning
from streamkern.features.cosines import Cosines
from streamkern.features.dynamic_range import FlattenedSimilarities
from streamkern.features.families import FAMILIES, Family
from streamkern.features.grid import GridFourierFeatures
from streamkern.features.identity import Identity
from streamkern.features.kernel_values import Similarities
from streamkern.features.nystroem import Nystroem, Projected
from streamkern.features.quasi_monte_carlo import QuasiRandomFourierFeatures
from streamkern.features.random_fourier import RandomFourierFeatures
from streamkern.features.selected import Chosen
from streamkern.features.standardized import Standardized, Standardizer
from streamkern.features.structured_orthogonal import StructuredFourierFeatures
from streamkern.features.tensor_sketch import TensorSketch

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

MAPS: dict[str, type[FeatureMap]] = {
    feature_map.name: feature_map
    for feature_map in (
        RandomFourierFeatures,
        StructuredFourierFeatures,
        QuasiRandomFourierFeatures,
        GridFourierFeatures,
        Cosines,
        Identity,
        Nystroem,
        FlattenedSimilarities,
        Projected,
        Similarities,
        RandomBinning,
        TensorSketch,
        Chosen,
        Standardized,
    )
}
