"""streamkern: kernel ridge regression for data that does not fit in memory.

The public names are imported when they are first used, so that `import streamkern` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

from streamkern._version import __version__

if TYPE_CHECKING:
    from streamkern.engine.cluster import connect
    from streamkern.engine.reduction import accumulate
    from streamkern.estimators.exact_kernel_ridge import ExactKernelRidge
    from streamkern.estimators.importance import permutation_importance
    from streamkern.estimators.load import load
    from streamkern.estimators.random_feature_adaboost import RandomFeatureAdaBoost
    from streamkern.estimators.random_feature_classifier import RandomFeatureClassifier
    from streamkern.estimators.random_feature_pca import RandomFeaturePCA
    from streamkern.estimators.random_feature_ridge import RandomFeatureRidge
    from streamkern.estimators.sparse_models import sparsify
    from streamkern.estimators.transformers import (
        GridFourierFeatures,
        Identity,
        Nystroem,
        QuasiRandomFourierFeatures,
        RandomFourierFeatures,
        StructuredFourierFeatures,
    )
    from streamkern.features import FeatureMap
    from streamkern.kernels import (
        Cauchy,
        Gaussian,
        InverseMultiquadric,
        Kernel,
        Laplacian,
        Linear,
        Matern,
        Periodic,
        Polynomial,
        RationalQuadratic,
        Sum,
    )
    from streamkern.models.data_moments import DataMoments, load_moments
    from streamkern.monitor import progress
    from streamkern.report.comparison import compare
    from streamkern.report.html_page import write_report
    from streamkern.report.model_plots import ModelPlots
    from streamkern.report.onnx import to_onnx
    from streamkern.sources import open_hdf5
    from streamkern.sources.preprocessing import Recipe
    from streamkern.statistics import ColumnStatistics, IntegerMoments, Moments
    from streamkern.storage.codec import read_recipe
    from streamkern.storage.table_conversion import convert

_NAMES = {
    "engine.cluster": "connect",
    "engine.reduction": "accumulate",
    "features": "FeatureMap",
    "kernels": (
        "Cauchy Gaussian InverseMultiquadric Kernel Laplacian Linear Matern Periodic Polynomial "
        "RationalQuadratic Sum"
    ),
    "models.data_moments": "DataMoments load_moments",
    "estimators.exact_kernel_ridge": "ExactKernelRidge",
    "estimators.load": "load",
    "estimators.random_feature_adaboost": "RandomFeatureAdaBoost",
    "estimators.random_feature_classifier": "RandomFeatureClassifier",
    "estimators.random_feature_pca": "RandomFeaturePCA",
    "estimators.random_feature_ridge": "RandomFeatureRidge",
    "estimators.transformers": (
        "GridFourierFeatures Identity Nystroem QuasiRandomFourierFeatures "
        "RandomFourierFeatures StructuredFourierFeatures"
    ),
    "estimators.importance": "permutation_importance",
    "estimators.sparse_models": "sparsify",
    "monitor": "progress",
    "report.comparison": "compare",
    "report.html_page": "write_report",
    "report.model_plots": "ModelPlots",
    "report.onnx": "to_onnx",
    "sources": "open_hdf5",
    "sources.preprocessing": "Recipe",
    "statistics": "ColumnStatistics IntegerMoments Moments",
    "storage.codec": "read_recipe",
    "storage.table_conversion": "convert",
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
    if name not in _HOMES:
        raise AttributeError(f"module 'streamkern' has no attribute {name!r}")
    return getattr(importlib.import_module(f"streamkern.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
