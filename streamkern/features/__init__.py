"""Feature maps phi with phi(x)^T phi(x') = k(x, x') in expectation, a family a file.

A map of your own derives from `FeatureMap`: read `base.py`.  If it is drawn for a kernel,
`KernelMap` in `kernel_map.py` leaves less to write; `random_fourier.py` has examples.
"""

# ruff: noqa: I001  families are listed in the order in which they are declared
from streamkern.features.base import LEVELS, FeatureMap
from streamkern.features.families import FAMILIES, MAPS, Family
from streamkern.features.kernel_map import Combinations, KernelMap
from streamkern.features.random_fourier import RandomFourierFeatures, StructuredFourierFeatures
from streamkern.features.quasi_random import QuasiRandomFourierFeatures
from streamkern.features.frequency_grid import GridFourierFeatures
from streamkern.features.nystroem import Nystroem
from streamkern.features.standardizer import Standardizer
from streamkern.features.standardized import Identity, Standardized
from streamkern.features.cosines import Cosines
from streamkern.features.kernel_values import KernelColumns
from streamkern.features.trend import Trend, Trended

__all__ = [
    "FAMILIES", "LEVELS", "MAPS", "Combinations", "Cosines", "Family", "FeatureMap",
    "GridFourierFeatures", "Identity", "KernelColumns", "KernelMap", "Nystroem",
    "QuasiRandomFourierFeatures", "RandomFourierFeatures", "Standardized", "Standardizer",
    "StructuredFourierFeatures", "Trend", "Trended",
]  # fmt: skip
