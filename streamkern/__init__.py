"""streamkern: kernel ridge regression for data that does not fit in memory.

The public names are imported when they are first used, so that `import streamkern` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from streamkern._version import __version__

if TYPE_CHECKING:
    from streamkern.engine.cluster import connect
    from streamkern.engine.reduction import accumulate
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
    )
    from streamkern.models.data_moments import DataMoments, load_moments
    from streamkern.models.estimators.exact_kernel_ridge import ExactKernelRidge
    from streamkern.models.estimators.load import load
    from streamkern.models.estimators.random_feature_adaboost import RandomFeatureAdaBoost
    from streamkern.models.estimators.random_feature_classifier import RandomFeatureClassifier
    from streamkern.models.estimators.random_feature_pca import RandomFeaturePCA
    from streamkern.models.estimators.random_feature_ridge import RandomFeatureRidge
    from streamkern.models.estimators.transformers import (
        GridFourierFeatures,
        Identity,
        Nystroem,
        QuasiRandomFourierFeatures,
        RandomBinning,
        RandomFourierFeatures,
        StructuredFourierFeatures,
        TensorSketch,
    )
    from streamkern.models.sparse_models import sparsify
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

_HOMES = {
    "Cauchy": "kernels",
    "ColumnStatistics": "statistics",
    "DataMoments": "models.data_moments",
    "ExactKernelRidge": "models.estimators.exact_kernel_ridge",
    "FeatureMap": "features",
    "Gaussian": "kernels",
    "GridFourierFeatures": "models.estimators.transformers",
    "Identity": "models.estimators.transformers",
    "IntegerMoments": "statistics",
    "InverseMultiquadric": "kernels",
    "Kernel": "kernels",
    "Laplacian": "kernels",
    "Linear": "kernels",
    "Matern": "kernels",
    "ModelPlots": "report.model_plots",
    "Moments": "statistics",
    "Nystroem": "models.estimators.transformers",
    "Periodic": "kernels",
    "Polynomial": "kernels",
    "QuasiRandomFourierFeatures": "models.estimators.transformers",
    "RandomBinning": "models.estimators.transformers",
    "RandomFeatureAdaBoost": "models.estimators.random_feature_adaboost",
    "RandomFeatureClassifier": "models.estimators.random_feature_classifier",
    "RandomFeaturePCA": "models.estimators.random_feature_pca",
    "RandomFeatureRidge": "models.estimators.random_feature_ridge",
    "RandomFourierFeatures": "models.estimators.transformers",
    "RationalQuadratic": "kernels",
    "Recipe": "sources.preprocessing",
    "StructuredFourierFeatures": "models.estimators.transformers",
    "TensorSketch": "models.estimators.transformers",
    "accumulate": "engine.reduction",
    "compare": "report.comparison",
    "connect": "engine.cluster",
    "convert": "storage.table_conversion",
    "load": "models.estimators.load",
    "load_moments": "models.data_moments",
    "open_hdf5": "sources",
    "progress": "monitor",
    "read_recipe": "storage.codec",
    "sparsify": "models.sparse_models",
    "to_onnx": "report.onnx",
    "write_report": "report.html_page",
}

__all__ = [
    "Cauchy",
    "ColumnStatistics",
    "DataMoments",
    "ExactKernelRidge",
    "FeatureMap",
    "Gaussian",
    "GridFourierFeatures",
    "Identity",
    "IntegerMoments",
    "InverseMultiquadric",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "ModelPlots",
    "Moments",
    "Nystroem",
    "Periodic",
    "Polynomial",
    "QuasiRandomFourierFeatures",
    "RandomBinning",
    "RandomFeatureAdaBoost",
    "RandomFeatureClassifier",
    "RandomFeaturePCA",
    "RandomFeatureRidge",
    "RandomFourierFeatures",
    "RationalQuadratic",
    "Recipe",
    "StructuredFourierFeatures",
    "TensorSketch",
    "__version__",
    "accumulate",
    "compare",
    "connect",
    "convert",
    "load",
    "load_moments",
    "open_hdf5",
    "progress",
    "read_recipe",
    "sparsify",
    "to_onnx",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'streamkern' has no attribute {name!r}")
    return getattr(importlib.import_module(f"streamkern.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
