"""The public names are these, and each can be imported."""

import inspect

import pytest
from sklearn.base import BaseEstimator
from streamkern.models.callbacks import CallbackSupportMixin

import streamkern

PUBLIC = {
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
    "LocalClassifier",
    "LocalModel",
    "Matern",
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
    "fit_window",
    "load",
    "load_moments",
    "mended_searches",
    "open_hdf5",
    "progress",
    "read_recipe",
    "sparsify",
    "to_onnx",
    "write_report",
}


def test_the_list_is_explicit():
    assert set(streamkern.__all__) == PUBLIC
    assert set(dir(streamkern)) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__"}))
def test_every_name_has_a_docstring(name):
    assert len(inspect.getdoc(getattr(streamkern, name))) > 40


CALLBACKS = {each for each in dir(CallbackSupportMixin) if not each.startswith("_")}
FITS = {"fit", "predict", "save", "evaluate", "set_fit_request"} | CALLBACKS
GROWS = {"partial_fit", "update", "forget", "set_partial_fit_request"}
FEATURES = {"transform", "fit_transform", "get_feature_names_out", "set_output"}
SCORES = {"score", "set_score_request", "metric_", "recipe_", "predict_to_hdf5"}
CLASSES = {"decision_function", "predict_proba", "predict_log_proba"}
FOUND = {"alpha_", "classes_", "coef_", "intercept_", "predictor_", "feature_map_", "kernel_"}
METHODS = {
    "RandomFeatureRidge": FITS
    | GROWS
    | FEATURES
    | SCORES
    | {"moments", "moments_", "solve", "tune", "to_local", "diagnose", "normal_equations"}
    | {"gradient_outer_product", "set_predict_request"},
    "RandomFeatureClassifier": FITS
    | GROWS
    | FEATURES
    | SCORES
    | CLASSES
    | FOUND
    | {"moments", "moments_", "solve", "tune", "to_local", "calibrate", "report_"},
    "RandomFeatureAdaBoost": FITS
    | CLASSES
    | {"score", "set_score_request", "recipe_", "predict_to_hdf5", "classes_", "predictor_"}
    | {"staged_evaluate", "on_bad_rows"},
    "RandomFeaturePCA": FEATURES
    | {"fit", "solve", "save", "transform_to_hdf5", "set_fit_request", "recipe_"},
    "ExactKernelRidge": {"fit", "predict", "score", "set_fit_request", "set_score_request"},
}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_an_estimator_shows_what_people_call_and_nothing_else(name):
    shown = {each for each in dir(getattr(streamkern, name)) if not each.startswith("_")}
    assert shown - set(dir(BaseEstimator)) == METHODS[name]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = streamkern.nothing
