"""streamkern: kernel ridge regression for data that does not fit in memory.

The public names are imported when they are first used, so that `import streamkern` costs nothing.
"""

import importlib
from typing import Any

from streamkern._version import __version__

_NAMES = {
    "engine.cluster": "connect",
    "engine.reduction": "accumulate",
    "features": "FeatureMap",
    "kernels": (
        "Cauchy Gaussian InverseMultiquadric Kernel Laplacian Linear Matern Periodic Polynomial "
        "RationalQuadratic Sum"
    ),
    "models.data_moments": "DataMoments load_moments",
    "estimators.comparison": "compare",
    "estimators.exact_kernel_ridge": "ExactKernelRidge",
    "estimators.load": "load",
    "estimators.random_feature_ridge": "RandomFeatureRidge",
    "estimators.transformers": (
        "GridFourierFeatures Identity Nystroem QuasiRandomFourierFeatures "
        "RandomFourierFeatures StructuredFourierFeatures"
    ),
    "estimators.importance": "permutation_importance",
    "monitor": "progress",
    "sources": "open_hdf5",
    "statistics": "ColumnStatistics Moments",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Cauchy", "ColumnStatistics", "DataMoments", "ExactKernelRidge", "FeatureMap", "Gaussian",
    "GridFourierFeatures", "Identity", "IntegerMoments", "InverseMultiquadric", "Kernel",
    "Laplacian", "Linear", "Matern", "ModelPlots", "Moments", "Nystroem", "Periodic", "Polynomial",
    "QuasiRandomFourierFeatures", "RandomFeatureAdaBoost", "RandomFeatureClassifier",
    "RandomFeaturePCA", "RandomFeatureRidge", "RandomFourierFeatures",
    "RationalQuadratic", "Recipe", "StructuredFourierFeatures", "Sum", "__version__",
    "accumulate", "compare", "connect", "convert", "load", "load_moments", "open_hdf5",
    "permutation_importance", "progress", "read_recipe", "sparsify", "to_onnx", "write_report",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'streamkern' has no attribute {name!r}")
    if name not in _HOMES:
        return importlib.import_module("streamkern.registry").named(name)
    return getattr(importlib.import_module(f"streamkern.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
