"""Feature maps phi with phi(x)^T phi(x') = k(x, x') in expectation, a family a file.

A map of your own derives from `FeatureMap`: read `base.py`.  If it is drawn for a kernel,
`KernelMap` in `kernel_map.py` leaves less to write; `random_fourier.py` has examples.
"""

# ruff: noqa: E402, I001  families are listed in the order in which they are declared
from streamkern.features.base import LEVELS, FeatureMap
from streamkern.features.families import FAMILIES, MAPS, Family
from streamkern.features.kernel_map import Combinations, KernelMap
from streamkern.features.random_fourier import RandomFourierFeatures, StructuredFourierFeatures
from streamkern.features.random_fourier import QuasiRandomFourierFeatures
from streamkern.registry import import_maps

import_maps()

from streamkern.features.standardizer import Standardizer
from streamkern.features.standardized import Identity, Standardized
from streamkern.features.landmark_folds import LandmarkFolds
from streamkern.features.nystroem import Nystroem
from streamkern.features.cosines import Cosines
from streamkern.features.kernel_values import KernelColumns
from streamkern.features.abilities import (
    Bounded, FromRows, apply_r, bounds, combined, compress, drawn_from, gradients, gram_map,
    has_gradients, innermost, kernel_diagonal, round_into, solve_map, trended, uncombined,
    unwhitened,
)  # fmt: skip

__all__ = [
    "FAMILIES", "LEVELS", "MAPS", "Bounded", "Combinations", "Cosines", "Family", "FeatureMap",
    "FromRows", "Identity", "KernelColumns", "KernelMap", "LandmarkFolds", "Nystroem",
    "QuasiRandomFourierFeatures", "RandomFourierFeatures", "Standardized", "Standardizer",
    "StructuredFourierFeatures", "apply_r", "bounds", "combined", "compress",
    "drawn_from", "gradients", "gram_map", "has_gradients", "innermost", "kernel_diagonal",
    "round_into", "solve_map", "trended", "uncombined",
    "unwhitened",
]  # fmt: skip
