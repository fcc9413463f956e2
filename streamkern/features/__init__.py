"""Feature maps phi with phi(x)^T phi(x') = k(x, x') in expectation, a family a file."""

from streamkern.features.base import FeatureMap
from streamkern.features.binning import RandomBinning
from streamkern.features.chosen import Chosen
from streamkern.features.cosines import Cosines
from streamkern.features.families import FAMILIES, Family
from streamkern.features.flattened import FlattenedSimilarities
from streamkern.features.fourier import RandomFourierFeatures
from streamkern.features.identity import Identity
from streamkern.features.nystroem import Nystroem, Projected
from streamkern.features.similarity import Similarities
from streamkern.features.sketch import TensorSketch
from streamkern.features.standardized import Standardized, Standardizer

__all__ = [
    "FAMILIES",
    "MAPS",
    "Chosen",
    "Cosines",
    "Family",
    "FeatureMap",
    "FlattenedSimilarities",
    "Identity",
    "Nystroem",
    "Projected",
    "RandomBinning",
    "RandomFourierFeatures",
    "Similarities",
    "Standardized",
    "Standardizer",
    "TensorSketch",
]

MAPS: dict[str, type[FeatureMap]] = {
    feature_map.name: feature_map
    for feature_map in (
        RandomFourierFeatures,
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
