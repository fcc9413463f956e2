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
