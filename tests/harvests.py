"""Rows of smooth functions or of classes, models of them, and rows in chunks."""

import numpy as np

import streamkern
from streamkern import Gaussian, RandomFeatureRidge

NAMES = np.array(["hay", "oats", "straw"])


def labelled_rows(n=240, n_classes=3, seed=0):
    """Rows whose labels follow from two of three inputs, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    level = np.sin(2 * X[:, 0]) + X[:, 1] + 0.4 * rng.standard_normal(n)
    cuts = [-0.4, 0.6] if n_classes == 3 else [0.5]
    return X, NAMES[np.digitize(level, cuts)]


def smooth_rows(n=400, q=None, seed=0):
    """Inputs in three different units, with targets (n,) or (n, q) that are smooth, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -1.0]
    smooth = [np.sin(X[:, 0]) + X[:, 1] / 10, 50 + 7 * X[:, 0] * X[:, 2], np.cos(X[:, 1] / 5)]
    y = np.stack(smooth, axis=1) + 0.1 * rng.standard_normal((n, 3))
    return X, y[:, 0] if q is None else y[:, :q]


def ridge(kernel=Gaussian(1.5), **options):  # noqa: B008  immutable
    """A regression of few features in double precision."""
    chosen = {"n_components": 48, "precision": "double", "alpha": 0.1}
    return RandomFeatureRidge(kernel, **chosen | options)


def classifier(**options):
    """A classifier of few features."""
    chosen = {"n_components": 32, "precision": "double", "alpha": 0.1, "kernel": Gaussian(2.0)}
    return streamkern.RandomFeatureClassifier(**chosen | options)


def signs(y, classes):
    """Targets (n, q) of +1 for a class and -1 for the rest, one for two classes."""
    targets = np.where(y[:, None] == classes, 1.0, -1.0)
    return targets[:, 1:] if len(classes) == 2 else targets


def chunks(n, n_chunks, seed=None):
    """The places of n rows in chunks, in an order of their own if there is a seed."""
    parts = np.array_split(np.arange(n), n_chunks)
    if seed is None:
        return parts
    return [parts[i] for i in np.random.default_rng(seed).permutation(n_chunks)]


def same_bits(one, other):
    """Whether two models predict by the same bits."""
    pairs = (one.coef_, other.coef_), (one.intercept_, other.intercept_)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)
