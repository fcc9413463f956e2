"""skops takes fitted estimators to files and back, and needs no types to be trusted but ours."""

import numpy as np
import pytest
import skops.io
from skops.io.exceptions import UntrustedTypesFoundException

from streamkern import ExactKernelRidge, RandomFeaturePCA, RandomFeatureRidge
from streamkern.kernels import Gaussian, Laplacian, Matern, Polynomial

PRODUCT = Gaussian(1.0).on([0]) * Matern(2.0).on([1, 2])
MODELS = {
    "transforms": RandomFeatureRidge(feature_map="sorf", n_components=16),
    "landmarks": RandomFeatureRidge(feature_map="nystroem", n_components=16),
    "cells": RandomFeatureRidge(Laplacian(2.0), feature_map="binning", n_components=16),
    "hashes": RandomFeatureRidge(Polynomial(2), feature_map="sketch", n_components=16),
    "few features": RandomFeatureRidge(PRODUCT, sparse=4, n_components=16),
    "rows": ExactKernelRidge(Gaussian(1.5)),
    "components": RandomFeaturePCA(n_components=2, n_random_features=16),
}


@pytest.mark.parametrize("model", list(MODELS.values()), ids=list(MODELS))
def test_a_fitted_estimator_comes_back_the_same(model):
    X = np.random.default_rng(0).standard_normal((60, 3))
    model.fit(X, X[:, 0])
    stored = skops.io.dumps(model)
    unknown = skops.io.get_untrusted_types(data=stored)
    assert unknown
    assert all(name.startswith("streamkern.") for name in unknown)
    with pytest.raises(UntrustedTypesFoundException):
        skops.io.loads(stored)
    again = skops.io.loads(stored, trusted=unknown)
    use = "predict" if hasattr(model, "predict") else "transform"
    assert np.array_equal(getattr(again, use)(X), getattr(model, use)(X))
