"""Permutation importance: what it is, whatever a column became, and of which rows it is."""

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import permutation_importance as of_scikit_learn

import streamkern
from streamkern import (
    Gaussian,
    Laplacian,
    RandomFeatureClassifier,
    RandomFeatureRidge,
    permutation_importance,
)
from streamkern.errors import ParameterError

N = 900
RNG = np.random.default_rng(0)
CITY = RNG.choice(["Bern", "Lima", "Oslo", "Rome"], N)
TABLE = pd.DataFrame({"area": RNG.standard_normal(N), "city": CITY, "noise": RNG.random(N)})
PRICE = 2.0 * TABLE["area"] + (CITY == "Rome") - (CITY == "Lima") + 0.1 * RNG.standard_normal(N)
FIT, TEST = slice(0, 600), slice(600, None)


def fitted(kernel="gaussian", estimator=RandomFeatureRidge, y=PRICE):
    model = estimator(kernel, n_components=256, alpha=1.0)
    return model.fit(TABLE[FIT], y[FIT])


@pytest.mark.parametrize("kernel", ["gaussian", Laplacian(3.0)])
@pytest.mark.parametrize("is_classifier", [False, True])
def test_columns_of_a_table_are_shuffled_as_scikit_learn_shuffles_them(kernel, is_classifier):
    y = pd.Series(np.where(PRICE > 0, "dear", "cheap")) if is_classifier else PRICE
    model = fitted(kernel, RandomFeatureClassifier if is_classifier else RandomFeatureRidge, y)
    found = permutation_importance(model, TABLE[TEST], y[TEST], n_repeats=20)
    theirs = of_scikit_learn(model, TABLE[TEST], y[TEST], n_repeats=20, random_state=0)
    assert found.feature_names == ["area", "city", "noise"]
    assert found.n_samples == 300
    assert found.importances.shape == theirs.importances.shape
    assert np.array_equal(found.importances_mean, found.importances.mean(axis=1))
    assert np.array_equal(found.importances_std, found.importances.std(axis=1))
    spread = np.hypot(found.importances_std, theirs.importances_std) / np.sqrt(20)
    off = np.abs(found.importances_mean - theirs.importances_mean)
    assert (off < 4.0 * spread + 1e-6).all()
    assert np.argsort(-found.importances_mean).tolist() == [0, 1, 2]


def test_inputs_without_a_table_are_shuffled_one_by_one_and_several_targets_are_averaged():
    X, rng = RNG.standard_normal((N, 3)), np.random.default_rng(1)
    y = np.column_stack([X[:, 0], X[:, 0] + X[:, 2]]) + 0.1 * rng.standard_normal((N, 2))
    both = RandomFeatureRidge(Gaussian(3.0), n_components=128).fit(X, y)
    found = permutation_importance(both, X, y)
    assert found.feature_names == ["column 0", "column 1", "column 2"]
    # A score of 1 that is shuffled is about -1, that of one of two inputs about 0.
    assert found.importances_mean == pytest.approx([1.5, 0.0, 0.5], abs=0.1)


def test_a_row_counts_as_often_as_it_weighs():
    weights = np.random.default_rng(2).integers(0, 4, 300)
    model, often = fitted(), np.repeat(np.arange(600, 900), weights)
    weighted = permutation_importance(model, TABLE[TEST], PRICE[TEST], weights, n_repeats=100)
    repeated = permutation_importance(model, TABLE.loc[often], PRICE[often], n_repeats=100)
    spread = np.hypot(weighted.importances_std, repeated.importances_std) / 10.0
    off = np.abs(weighted.importances_mean - repeated.importances_mean)
    assert (off < 4.0 * spread + 1e-6).all()
    odd = TABLE[TEST].copy()
    odd.loc[weights == 0, "area"] = 1e6
    again = permutation_importance(model, odd, PRICE[TEST], weights, n_repeats=100)
    assert np.array_equal(again.importances, weighted.importances)


def test_a_seed_gives_the_same_whatever_the_workers_and_the_source(tmp_path):
    model = fitted()
    TABLE[TEST].assign(price=PRICE[TEST]).to_parquet(tmp_path / "test.parquet")
    found = permutation_importance(model, TABLE[TEST], PRICE[TEST], random_state=3)
    model.save(tmp_path / "model.h5")
    of_file = streamkern.load(tmp_path / "model.h5")
    for each, rows in (
        (model, (TABLE[TEST], PRICE[TEST])),
        (of_file, (tmp_path / "test.parquet", "price")),
    ):
        again = permutation_importance(each, *rows, random_state=3)
        assert np.array_equal(again.importances, found.importances)
    other = permutation_importance(model, TABLE[TEST], PRICE[TEST], random_state=4)
    assert not np.array_equal(other.importances, found.importances)
    few = permutation_importance(model, TABLE[TEST], PRICE[TEST], max_samples=50)
    assert few.n_samples == 50


@pytest.mark.cluster
def test_workers_find_the_same_importances(external_scheduler):
    model = fitted()
    here = permutation_importance(model, TABLE[TEST], PRICE[TEST])
    with streamkern.connect(scheduler=external_scheduler):
        there = permutation_importance(model, TABLE[TEST], PRICE[TEST])
    assert np.array_equal(here.importances, there.importances)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_repeats": 0}, "n_repeats must be a whole number of at least 1, not 0"),
        ({"max_samples": 0.5}, "max_samples must be a whole number of at least 1, not 0.5"),
        ({"random_state": -1}, "random_state must be a whole number of at least 0, not -1"),
    ],
)
def test_a_number_that_will_not_do_is_told(given, message):
    with pytest.raises(ParameterError, match=message):
        permutation_importance(fitted(), TABLE[TEST], PRICE[TEST], **given)


def test_only_a_fitted_model_has_importances():
    with pytest.raises(ParameterError, match="importances are made of a fitted"):
        permutation_importance(RandomFeatureRidge(), TABLE, PRICE)
