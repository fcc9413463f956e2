"""The public names are these, and each can be imported."""

import inspect

import pytest

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
    "load_pca",
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


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = streamkern.nothing
