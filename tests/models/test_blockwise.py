"""Lazy predictions: a graph holds the model once, and a little for every block of rows."""

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import streamkern
from streamkern import (
    ExactKernelRidge,
    Gaussian,
    Nystroem,
    RandomFeatureClassifier,
    RandomFeatureRidge,
)

P = 4
# Models are fitted to arrays, and take data frames of whatever names.
pytestmark = [
    pytest.mark.filterwarnings("ignore:X has feature names"),
    pytest.mark.usefixtures("frames_in_this_thread"),
]
KERNEL = Gaussian(2.0)
OPTIONS = {"n_components": 256, "feature_map": "nystroem", "alpha": 0.1}
# What one more block may add to a graph, and what the smallest model of these takes at least.
BLOCK_BYTES, MODEL_BYTES = 6000, 20_000


def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, P))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(600)
    return X, y, np.digitize(y, [-0.5, 0.5])


X, Y, LABELS = table()


@pytest.fixture(scope="module")
def made(frames_in_this_thread):
    """What is made of rows, by every model."""
    ridge = RandomFeatureRidge(KERNEL, **OPTIONS).fit(X, Y)
    options = {"calibration": "isotonic", "n_folds": 2}
    classifier = RandomFeatureClassifier(KERNEL, **OPTIONS, **options).fit(X, LABELS)
    boosted = streamkern.RandomFeatureAdaBoost(
        RandomFeatureRidge(KERNEL, **OPTIONS), n_estimators=2
    )
    boosted.fit(X, LABELS > 0)
    maps = {"n_random_features": 256, "feature_map": "nystroem"}
    return {
        "ridge": ridge.predict,
        "deviations": lambda rows: ridge.predict(rows, return_std=True)[1],
        "features": ridge.transform,
        "labels": classifier.predict,
        "decisions": classifier.decision_function,
        "probabilities": classifier.predict_proba,
        "boosted-labels": boosted.predict,
        "boosted-probabilities": boosted.predict_log_proba,
        "components": streamkern.RandomFeaturePCA(KERNEL, n_components=3, **maps).fit(X).transform,
        "landmarks": Nystroem(KERNEL, 256).fit(X).transform,
        "exact": ExactKernelRidge(KERNEL).fit(X, Y).predict,
    }


NAMES = (
    *("ridge", "deviations", "features", "labels", "decisions", "probabilities"),
    *("boosted-labels", "boosted-probabilities", "components", "landmarks", "exact"),
)
everything = pytest.mark.parametrize("name", NAMES)


def frame(rows):
    return pd.DataFrame(rows, columns=list("abcd"))


def n_bytes(lazy):
    """Return what a scheduler would hold of a graph: every task by itself."""
    (optimized,) = dask.optimize(lazy)
    return sum(len(cloudpickle.dumps(task)) for task in dict(optimized.__dask_graph__()).values())


def chunked(n_blocks):
    return da.zeros((10 * n_blocks, P), chunks=(10, P))


def partitioned(n_blocks):
    return dd.from_pandas(frame(np.zeros((4 * n_blocks, P))), npartitions=n_blocks, sort=False)


@everything
@pytest.mark.parametrize("rows", [chunked, partitioned])
def test_the_graph_grows_by_little_for_every_block(made, name, rows):
    few, many = (n_bytes(made[name](rows(n))) for n in (3, 23))
    assert few > MODEL_BYTES
    assert (many - few) / 20 < BLOCK_BYTES


def no_scheduler(*arguments, **options):
    pytest.fail(f"computed {arguments} {options}")


@everything
def test_lazy_values_are_those_in_memory_however_often_they_are_computed(made, name):
    expected = made[name](X)
    for rows in (da.from_array(X, chunks=(250, 3)), dd.from_pandas(frame(X), npartitions=3)):
        with dask.config.set(scheduler=no_scheduler):
            lazy = made[name](rows)
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == expected.dtype
        first, second = lazy.compute(), lazy.compute()
        np.testing.assert_array_equal(first, second)
        np.testing.assert_allclose(first, expected, rtol=1e-6, atol=1e-5)


def test_two_graphs_of_a_model_hold_the_same_one(made):
    rows = chunked(3)
    keys = [set(made[name](rows).dask) for name in ("ridge", "ridge", "probabilities")]
    assert keys[0] == keys[1]
    both = n_bytes(made["ridge"](rows[:20])) + n_bytes(made["ridge"](rows[20:]))
    joined = da.concatenate([made["ridge"](rows[:20]), made["ridge"](rows[20:])])
    assert n_bytes(joined) < 0.6 * both
