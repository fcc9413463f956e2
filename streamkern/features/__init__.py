"""Feature maps phi with phi(x)^T phi(x') = k(x, x') in expectation, a family a file."""

from streamkern.features.base import FeatureMap
from streamkern.features.cosines import Cosines
from streamkern.features.families import FAMILIES, Family
from streamkern.features.fourier import RandomFourierFeatures
from streamkern.features.grid import GridFourierFeatures
from streamkern.features.identity import Identity
from streamkern.features.quasi import QuasiRandomFourierFeatures
from streamkern.features.standardized import Standardized, Standardizer
from streamkern.features.structured import StructuredFourierFeatures

__all__ = [
    "FAMILIES",
    "MAPS",
    "Cosines",
    "Family",
    "FeatureMap",
    "GridFourierFeatures",
    "Identity",
    "QuasiRandomFourierFeatures",
    "RandomFourierFeatures",
    "Standardized",
    "Standardizer",
    "StructuredFourierFeatures",
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
        Standardized,
    )
}
