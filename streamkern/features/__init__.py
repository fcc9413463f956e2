"""Feature maps phi with phi(x)^T phi(x') = k(x, x') in expectation, a family a file.

A map of your own derives from `FeatureMap`: read `base.py`.  If it is drawn for a kernel,
`KernelMap` in `kernel_map.py` leaves less to write; `random_fourier.py` has examples.
"""

# ruff: noqa: E402, I001  families are listed in the order in which they are declared
from streamkern.features.base import LEVELS as LEVELS, FeatureMap as FeatureMap
from streamkern.features.families import FAMILIES as FAMILIES, MAPS as MAPS, Family as Family
from streamkern.features.kernel_map import Combinations as Combinations, KernelMap as KernelMap
from streamkern.features.random_fourier import (
    QuasiRandomFourierFeatures as QuasiRandomFourierFeatures,
    RandomFourierFeatures as RandomFourierFeatures,
    StructuredFourierFeatures as StructuredFourierFeatures,
)
from streamkern.registry import import_maps

import_maps()

from streamkern.features.standardizer import Standardizer as Standardizer
from streamkern.features.standardized import Identity as Identity, Standardized as Standardized
from streamkern.features.landmark_folds import LandmarkFolds as LandmarkFolds
from streamkern.features.nystroem import Nystroem as Nystroem
from streamkern.features.cosines import Cosines as Cosines
from streamkern.features.kernel_values import KernelColumns as KernelColumns
from streamkern.features.abilities import Bounded as Bounded, FromRows as FromRows
from streamkern.features.abilities import apply_r as apply_r, bounds as bounds, combined as combined
from streamkern.features.abilities import compress as compress, drawn_from as drawn_from
from streamkern.features.abilities import gradients as gradients, gram_map as gram_map
from streamkern.features.abilities import has_gradients as has_gradients, innermost as innermost
from streamkern.features.abilities import kernel_diagonal as kernel_diagonal
from streamkern.features.abilities import round_into as round_into, solve_map as solve_map
from streamkern.features.abilities import trended as trended, uncombined as uncombined
from streamkern.features.abilities import unwhitened as unwhitened
