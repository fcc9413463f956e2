"""streamkern: kernel ridge regression for data that does not fit in memory.

The public names are imported when they are first used, so that `import streamkern` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from streamkern._version import __version__

if TYPE_CHECKING:
    from streamkern.cluster import connect
    from streamkern.comparison import compare
    from streamkern.datamoments import DataMoments, load_moments
    from streamkern.engine import accumulate
    from streamkern.estimators import (
        RandomFeatureAdaBoost,
        RandomFeatureClassifier,
        RandomFeatureRidge,
        load,
    )
    from streamkern.exact import ExactKernelRidge
    from streamkern.features import (
        FeatureMap,
        GridFourierFeatures,
        Identity,
        Nystroem,
        QuasiRandomFourierFeatures,
        RandomBinning,
        RandomFourierFeatures,
        StructuredFourierFeatures,
        TensorSketch,
    )
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
    from streamkern.monitor import progress
    from streamkern.report import write_report
    from streamkern.sources import open_hdf5
    from streamkern.sparse_models import sparsify
    from streamkern.statistics import ColumnStatistics, Moments

_HOMES = {
    "Cauchy": "kernels",
    "ColumnStatistics": "statistics",
    "DataMoments": "datamoments",
    "ExactKernelRidge": "exact",
    "FeatureMap": "features",
    "Gaussian": "kernels",
    "GridFourierFeatures": "features",
    "Identity": "features",
    "InverseMultiquadric": "kernels",
    "Kernel": "kernels",
    "Laplacian": "kernels",
    "Linear": "kernels",
    "Matern": "kernels",
    "Moments": "statistics",
    "Nystroem": "features",
    "Periodic": "kernels",
    "Polynomial": "kernels",
    "QuasiRandomFourierFeatures": "features",
    "RandomBinning": "features",
    "RandomFeatureAdaBoost": "estimators",
    "RandomFeatureClassifier": "estimators",
    "RandomFeatureRidge": "estimators",
    "RandomFourierFeatures": "features",
    "RationalQuadratic": "kernels",
    "StructuredFourierFeatures": "features",
    "TensorSketch": "features",
    "accumulate": "engine",
    "compare": "comparison",
    "connect": "cluster",
    "load": "estimators",
    "load_moments": "datamoments",
    "open_hdf5": "sources",
    "progress": "monitor",
    "sparsify": "sparse_models",
    "write_report": "report",
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
    "InverseMultiquadric",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Moments",
    "Nystroem",
    "Periodic",
    "Polynomial",
    "QuasiRandomFourierFeatures",
    "RandomBinning",
    "RandomFeatureAdaBoost",
    "RandomFeatureClassifier",
    "RandomFeatureRidge",
    "RandomFourierFeatures",
    "RationalQuadratic",
    "StructuredFourierFeatures",
    "TensorSketch",
    "__version__",
    "accumulate",
    "compare",
    "connect",
    "load",
    "load_moments",
    "open_hdf5",
    "progress",
    "sparsify",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'streamkern' has no attribute {name!r}")
    return getattr(importlib.import_module(f"streamkern.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
