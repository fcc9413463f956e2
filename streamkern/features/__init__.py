"""Feature maps phi with phi(x)^T phi(x') = k(x, x') in expectation, a family a file."""

from streamkern.features.base import FeatureMap
from streamkern.features.cosines import Cosines
from streamkern.features.families import FAMILIES, Family
from streamkern.features.fourier import RandomFourierFeatures
from streamkern.features.identity import Identity
from streamkern.features.standardized import Standardized, Standardizer

__all__ = [
    "FAMILIES",
    "MAPS",
    "Cosines",
    "Family",
    "FeatureMap",
    "Identity",
    "RandomFourierFeatures",
    "Standardized",
    "Standardizer",
]

MAPS: dict[str, type[FeatureMap]] = {
    feature_map.name: feature_map
    for feature_map in (RandomFourierFeatures, Cosines, Identity, Standardized)
}
