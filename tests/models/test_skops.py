"""skops takes fitted estimators to files and back, and needs no types to be trusted but ours."""

from __future__ import annotations

import numpy as np
import pytest
import skops.io
from skops.io.exceptions import UntrustedTypesFoundException

from streamkern import (
    ExactKernelRidge,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    RandomFeaturePCA,
    RandomFeatureRidge,
)


def ridge(kernel=None, **options):
    return RandomFeatureRidge(kernel or Gaussian(1.5), n_components=16, **options)


MODELS = {
    "frequencies": ridge(),
    "transforms": ridge(feature_map="sorf"),
    "landmarks": ridge(feature_map="nystroem"),
    "cells": ridge(Laplacian(2.0), feature_map="binning"),
    "hashes": ridge(Polynomial(2), feature_map="sketch"),
    "few features": ridge(sparse=4),
    "a product": ridge(Gaussian(1.0).on([0]) * Matern(2.0).on([1, 2])),
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
