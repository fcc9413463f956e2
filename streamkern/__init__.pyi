"""The public names, for type checkers."""

from streamkern.engine.cluster import connect
from streamkern.engine.reduction import accumulate
from streamkern.estimators.base import load
from streamkern.estimators.comparison import compare
from streamkern.estimators.exact_kernel_ridge import ExactKernelRidge
from streamkern.estimators.random_feature_ridge import RandomFeatureRidge
from streamkern.estimators.transformers import (
    Identity,
    Nystroem,
    QuasiRandomFourierFeatures,
    RandomFourierFeatures,
    StructuredFourierFeatures,
)
from streamkern.extensions.classes.random_feature_adaboost import RandomFeatureAdaBoost
from streamkern.extensions.classes.random_feature_classifier import RandomFeatureClassifier
from streamkern.extensions.components.random_feature_pca import RandomFeaturePCA
from streamkern.extensions.export.c_source import to_c
from streamkern.extensions.export.onnx import to_onnx
from streamkern.extensions.fields.grid_transformer import GridFourierFeatures
from streamkern.extensions.integers.integer_moments import IntegerMoments
from streamkern.extensions.losses.random_feature_regressor import RandomFeatureRegressor
from streamkern.extensions.report.html_page import write_report
from streamkern.extensions.report.importance import permutation_importance
from streamkern.extensions.report.model_plots import ModelPlots
from streamkern.extensions.sparse.sparsify import sparsify
from streamkern.extensions.tables.recipe import Recipe, read_recipe
from streamkern.extensions.tables.table_conversion import convert
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
from streamkern.predict.stored_predictor import load_predictor
from streamkern.sources import open_hdf5
from streamkern.statistics import ColumnStatistics, Moments

__version__: str

__all__ = [
    "Cauchy", "ColumnStatistics", "DataMoments", "ExactKernelRidge", "FeatureMap", "Gaussian",
    "GridFourierFeatures", "Identity", "IntegerMoments", "InverseMultiquadric", "Kernel",
    "Laplacian", "Linear", "Matern", "ModelPlots", "Moments", "Nystroem", "Periodic", "Polynomial",
    "QuasiRandomFourierFeatures", "RandomFeatureAdaBoost", "RandomFeatureClassifier",
    "RandomFeaturePCA", "RandomFeatureRegressor", "RandomFeatureRidge", "RandomFourierFeatures",
    "RationalQuadratic", "Recipe", "StructuredFourierFeatures", "Sum", "__version__",
    "accumulate", "compare", "connect", "convert", "load", "load_moments",
    "load_predictor", "open_hdf5", "permutation_importance", "progress", "read_recipe", "sparsify",
    "to_c", "to_onnx", "write_report",
]  # fmt: skip
