"""Kernel principal components by random features: `estimator` is scikit-learn's face of them."""
