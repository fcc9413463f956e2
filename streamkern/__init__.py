"""streamkern: kernel ridge regression for data that does not fit in memory.

The public names are imported when they are first used, so that `import streamkern` costs nothing.
"""

import importlib
from typing import Any

from streamkern._version import __version__ as __version__
from streamkern.registry import named, public_names

_NAMES = {
    "engine.cluster": "connect",
    "engine.reduction": "accumulate",
    "features": "FeatureMap",
    "kernels": (
        "Cauchy Gaussian InverseMultiquadric Kernel Laplacian Linear Matern Periodic Polynomial "
        "RationalQuadratic Sum"
    ),
    "models.data_moments": "DataMoments load_moments",
    "estimators.base": "load",
    "estimators.comparison": "compare",
    "estimators.exact_kernel_ridge": "ExactKernelRidge",
    "estimators.random_feature_ridge": "RandomFeatureRidge",
    "estimators.transformers": (
        "Identity Nystroem QuasiRandomFourierFeatures RandomFourierFeatures "
        "StructuredFourierFeatures"
    ),
    "monitor": "progress",
    "predict.stored_predictor": "load_predictor",
    "sources": "open_hdf5",
    "statistics": "ColumnStatistics Moments",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOMES, *public_names(), "__version__"])  # noqa: PLE0605  those of extensions, too


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'streamkern' has no attribute {name!r}")
    if name not in _HOMES:
        return named(name)
    return getattr(importlib.import_module(f"streamkern.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
