"""Rows of scipy.sparse: the results of the same rows dense, from what is stored."""

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from tolerances import assert_close

import streamkern
from streamkern import RandomFeatureClassifier, RandomFeatureRidge, RandomFourierFeatures
from streamkern.errors import DataError
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.planning import plan_fit
from streamkern.sources import as_source

RNG = np.random.default_rng(0)
X = sp.random_array((900, 40), density=0.1, rng=RNG, format="csr")
X = sp.csr_array(sp.hstack([X, np.ones((900, 1)), sp.csr_array((900, 1))]))  # constant columns
DENSE = X.toarray()
Y = np.tanh(DENSE[:, :5] @ RNG.standard_normal(5)) + 0.1 * RNG.standard_normal(900)
SIZES = {"n_components": 64, "alpha": 0.1, "kernel": "gaussian"}
pytestmark = pytest.mark.filterwarnings("ignore:2 .*columns")


def ridge(rows, y=Y, **options):
    return RandomFeatureRidge(**SIZES | options).fit(rows, y)


@pytest.mark.parametrize("name", ["csr_matrix", "csc_array", "coo_matrix", "lil_array"])
def test_a_sparse_matrix_of_every_format_gives_what_its_dense_array_gives(name):
    rows = getattr(sp, name)(X)
    model, dense = ridge(rows), ridge(DENSE)
    assert_close(model.predict(rows), dense.predict(DENSE), dtype=np.float32)
    assert model.feature_map_.standardizer.columns.tolist() == list(range(40))
    assert model.score(rows, Y) == pytest.approx(dense.score(DENSE, Y), rel=1e-5)


@pytest.mark.parametrize("dtype", ["?", "u2", "i8", "f4"])
def test_sparse_values_of_every_type_are_read(dtype):
    rows = (5 * X).astype(dtype)
    source = as_source(rows, Y)
    blocks = list(source.reader(source.shards(900)[0]).blocks(100))
    read = np.concatenate([np.asarray(block.X) for block in blocks])
    np.testing.assert_array_equal(read, rows.toarray())
    assert_close(ridge(rows).predict(rows), ridge(rows.toarray()).predict(rows), dtype=np.float32)


@pytest.mark.parametrize(
    "options",
    [
        *({"feature_map": name} for name in ("iid", "qmc", "sorf", "nystroem", "identity")),
        {"kernel": "matern32", "paired": False, "precision": "double"},
        {"metric": np.diag(np.arange(1.0, 43.0))},
        {"metric": 0.1 * np.ones((42, 42)) + np.eye(42)},
        {"standardize": False},
        {"alpha": "cv"},
    ],
    ids=str,
)
def test_every_map_and_option_takes_sparse_rows(options, small_shards):
    model, dense = ridge(X, **options), ridge(DENSE, **options)
    # Of penalties that are nearly as good, rounding may choose.
    assert_close(model.predict(X), dense.predict(DENSE), dtype=np.float32, steps=2000)
    assert model.alpha_ == pytest.approx(dense.alpha_, rel=1e-3)
    means, deviations = model.predict(X, return_std=True)
    assert_close(deviations, dense.predict(DENSE, return_std=True)[1], dtype=np.float32, steps=2000)
    np.testing.assert_allclose(means, model.predict(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("known", [True, False])
def test_a_dask_array_of_sparse_chunks_is_fitted_and_predicted_lazily(known, small_shards):
    chunks = da.from_array(DENSE, chunks=(250, 42)).map_blocks(sp.csr_matrix)
    if not known:
        chunks._chunks = (np.nan,) * 4, (42,)
    model, dense = ridge(chunks, da.from_array(Y, chunks=90)), ridge(DENSE)
    predicted = model.predict(chunks)
    assert isinstance(predicted, da.Array)
    assert_close(predicted.compute(), dense.predict(DENSE), dtype=np.float32)
    assert_close(model.transform(chunks).compute(), dense.transform(DENSE))


def test_a_column_far_from_zero_keeps_its_digits():
    years = sp.csr_array(sp.hstack([X, 1e6 + RNG.random((900, 1))]))
    model, dense = ridge(years), ridge(years.toarray())
    assert_close(model.predict(years), dense.predict(years.toarray()), dtype=np.float32)


def test_sparse_rows_of_a_classifier_components_and_a_transformer():
    labels = np.where(Y > 0, "above", "below")
    sparse, dense = (
        RandomFeatureClassifier("gaussian", n_components=64).fit(rows, labels)
        for rows in (X, DENSE)
    )
    assert_close(sparse.predict_proba(X), dense.predict_proba(DENSE), dtype=np.float32)
    assert_close(sparse.decision_function(X), dense.decision_function(DENSE), dtype=np.float32)
    pca = streamkern.RandomFeaturePCA(n_components=3, n_random_features=64)
    apart = np.abs(clone(pca).fit_transform(X) - clone(pca).fit_transform(DENSE)).max()
    assert apart < 1e-5
    for name in ("RandomFourierFeatures", "StructuredFourierFeatures", "Nystroem"):
        features = getattr(streamkern, name)(n_components=64)
        assert_close(clone(features).fit_transform(X), clone(features).fit_transform(DENSE))
    assert RandomFourierFeatures(n_components=8).fit(X).transform(X.astype("f4")).dtype == "f4"


def test_sparse_text_goes_through_a_pipeline_and_cross_validation():
    words = ["kernel", "ridge", "rows", "blocks", "dask", "sparse", "text"]
    texts = [" ".join(RNG.choice(words, 4)) for _ in range(300)]
    counts = [text.count("kernel") for text in texts]
    model = make_pipeline(TfidfVectorizer(), RandomFeatureRidge(n_components=128, alpha=0.1))
    assert cross_val_score(model, texts, counts, cv=3).min() > 0.8


def test_a_model_of_sparse_rows_is_saved_grows_and_forgets(tmp_path):
    model = RandomFeatureRidge(**SIZES).partial_fit(X[:500], Y[:500]).partial_fit(X[500:], Y[500:])
    model.save(tmp_path / "model.h5")
    loaded = streamkern.load(tmp_path / "model.h5")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert_close(loaded.predict(DENSE), model.predict(X), dtype=np.float32)
    model.forget(DENSE[500:], Y[500:])  # rows are known by their values
    assert model.report_["rows"] == 500


def test_the_matrix_of_a_user_is_left_alone_and_duplicates_are_added():
    falling = [np.arange(*X.indptr[i : i + 2])[::-1] for i in range(900)]
    order = np.concatenate([np.r_[each, each] for each in falling])
    rows = sp.csr_matrix((X.data[order], X.indices[order], 2 * X.indptr), shape=X.shape)
    before = rows.indices.copy()
    np.testing.assert_array_equal(ridge(rows).predict(X), ridge(2 * X).predict(X))
    np.testing.assert_array_equal(rows.indices, before)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_that_are_not_finite_are_noticed_and_skipped(weighted):
    rows, dense = X.copy(), DENSE.copy()
    bad = [3, 70, 71]
    for i, value in zip(bad, (np.nan, np.inf, -np.inf), strict=True):
        j = rows.indices[rows.indptr[i]]
        rows.data[rows.indptr[i]] = dense[i, j] = value
    weights = RNG.integers(0, 3, 900).astype(float) if weighted else None
    good = np.setdiff1d(np.arange(900), bad)
    with pytest.raises(DataError, match=r"3 of 900 rows hold NaN or inf.*the first at row 3"):
        ridge(rows)
    with pytest.raises(DataError, match="Input X contains NaN or infinity in 3 of 900 rows"):
        ridge(X).predict(rows)
    options = SIZES | {"on_bad_rows": "skip"}
    model = RandomFeatureRidge(**options).fit(rows, Y, weights)
    expected = RandomFeatureRidge(**options).fit(dense, Y, weights)
    assert model.report_["skipped_rows"] == expected.report_["skipped_rows"] > 0
    predicted = model.predict(rows)
    assert np.isnan(predicted[bad]).all()
    assert_close(predicted[good], expected.predict(DENSE[good]), dtype=np.float32)


@pytest.mark.cluster
def test_sparse_rows_give_the_same_bits_on_threads_in_one_thread_and_on_workers(
    small_shards, external_scheduler
):
    from distributed import Client

    here = ridge(X)
    with dask.config.set(scheduler="synchronous"):
        alone = ridge(X)
    with Client(external_scheduler):
        there = ridge(X)
    assert here.coef_.tobytes() == alone.coef_.tobytes() == there.coef_.tobytes()


def test_the_plan_counts_what_sparse_rows_take():
    wide = sp.random_array((2000, 20_000), density=0.001, rng=RNG, format="csr", dtype=np.float32)
    source = as_source(wide, np.arange(2000.0))
    assert source.row_bytes < 200
    options = Parameters.of(RandomFeatureRidge(n_components=64)).pass_options()
    assert isinstance(options, FitOptions)
    sparse = plan_fit(source, options, n_workers=0, n_threads=1)
    source.sparse_row_bytes = 0
    dense = plan_fit(source, options, n_workers=0, n_threads=1)
    assert sparse.worker_bytes + 2000 * 20_000 * 8 < dense.worker_bytes
    assert sparse.flops < dense.flops


@pytest.mark.parametrize("y", [sp.csr_array(Y[:, None]), sp.coo_matrix(Y[:, None])])
def test_sparse_targets_and_an_exact_model_of_sparse_rows_are_refused(y):
    with pytest.raises(DataError, match=r"Sparse data was passed for y.*toarray\(\)"):
        ridge(X, y)
    with pytest.raises(DataError, match=r"Sparse data was passed for X.*toarray\(\)"):
        streamkern.ExactKernelRidge().fit(X, Y)
