"""Inside Dask-ML: its wrappers, its searches, and after its preprocessing."""

import pickle
import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from harvests import NAMES, classifier, ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

from streamkern.engine.scheduler import is_delayed
from streamkern.runtime.resources import current_client, current_resources

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what Dask-ML imports
    import dask_ml.model_selection as searches
    from dask_ml.preprocessing import Categorizer, DummyEncoder, OrdinalEncoder, StandardScaler
    from dask_ml.wrappers import Incremental, ParallelPostFit

rng = np.random.default_rng(0)
X = rng.standard_normal((1200, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -1.0]
Y = np.sin(X[:, 0]) + X[:, 1] / 10 + 0.1 * rng.standard_normal(1200)
ROWS, TARGETS = da.from_array(X, chunks=(150, 3)), da.from_array(Y, chunks=150)
GRID = {"alpha": [0.1, 1e6]}

# Wrappers.


def test_a_fitted_model_predicts_and_transforms_blocks_when_they_are_asked_for():
    model = ridge().fit(X, Y)
    wrapped = ParallelPostFit(ridge()).fit(X, Y)
    for lazy, expected in (
        (wrapped.predict(ROWS), model.predict(X)),
        (wrapped.transform(ROWS), model.transform(X)),
        (ParallelPostFit(model.predictor_).predict(ROWS), model.predict(X)),
    ):
        assert isinstance(lazy, da.Array)
        assert lazy.numblocks[0] == 8
        assert np.allclose(lazy.compute(), expected, rtol=1e-12)
    assert wrapped.score(ROWS, TARGETS) == pytest.approx(model.score(X, Y), rel=1e-9)
    out_of_core = ParallelPostFit(ridge()).fit(ROWS, TARGETS)
    assert np.allclose(out_of_core.predict(X), model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("shuffle_blocks", [True, False])
def test_blocks_added_one_after_the_other_are_one_fit(shuffle_blocks):
    model = ridge(standardize=False)
    added = Incremental(model, shuffle_blocks=shuffle_blocks, random_state=0).fit(ROWS, TARGETS)
    expected = ridge(standardize=False).fit(X, Y)
    assert np.allclose(added.predict(ROWS).compute(), expected.predict(X), rtol=1e-9, atol=1e-9)
    assert added.estimator_.report_["rows"] == 1200
    assert added.score(ROWS, TARGETS) == pytest.approx(expected.score(X, Y), rel=1e-9)
    added.partial_fit(ROWS[:300], TARGETS[:300])
    assert added.estimator_.report_["rows"] == 1500
    assert not hasattr(model, "moments_")


# Wrappers of classifiers.

LABELS = NAMES[np.digitize(Y, [0.0, 0.9])]
LAZY_LABELS = da.from_array(LABELS, chunks=150)


def test_labels_and_probabilities_of_blocks_are_lazy_and_of_their_own_types():
    model = classifier().fit(X, LABELS)
    for wrapped in (ParallelPostFit(classifier()).fit(X, LABELS), ParallelPostFit(model)):
        labels, p = wrapped.predict(ROWS), wrapped.predict_proba(ROWS)
        assert (labels.dtype, labels.shape, labels.numblocks) == (LABELS.dtype, (1200,), (8,))
        assert (p.dtype, p.shape, p.numblocks[0]) == (np.float64, (1200, 3), 8)
        assert labels.compute().dtype == LABELS.dtype
        assert (labels.compute() == model.predict(X)).all()
        assert np.allclose(p.compute(), model.predict_proba(X), rtol=1e-9)
    assert ParallelPostFit(model).score(ROWS, LAZY_LABELS) == model.score(X, LABELS)


def test_labelled_blocks_added_one_after_the_other_are_one_fit():
    model = classifier(standardize=False, calibration=None)
    added = Incremental(model, random_state=0).fit(ROWS, LAZY_LABELS, classes=NAMES)
    expected = classifier(standardize=False, calibration=None).fit(X, LABELS)
    p = added.predict_proba(ROWS).compute()
    assert np.abs(p - expected.predict_proba(X)).max() < 1e-9
    assert added.score(ROWS, LAZY_LABELS) == expected.score(X, LABELS)
    assert added.predict(ROWS).dtype == LABELS.dtype
    assert not hasattr(model, "ridge_")


# Pipelines.


def test_rows_are_scaled_by_dask_ml_and_stay_lazy():
    pipeline = make_pipeline(StandardScaler(), ridge(standardize=False)).fit(ROWS, TARGETS)
    predicted = pipeline.predict(ROWS)
    assert isinstance(predicted, da.Array)
    assert np.allclose(predicted.compute(), ridge().fit(X, Y).predict(X), rtol=1e-6, atol=1e-6)
    assert pipeline.score(ROWS, TARGETS) == pytest.approx(r2_score(Y, predicted.compute()))


NAMED = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.resize(NAMES, len(X)))
FRAME = dd.from_pandas(NAMED, npartitions=4)


@pytest.mark.parametrize(
    ("steps", "columns"),
    [
        ((OrdinalEncoder(), StandardScaler()), ["a", "b", "c", "kind"]),
        ((DummyEncoder(),), ["a", "b", "c", "kind_hay", "kind_oats", "kind_straw"]),
    ],
)
def test_a_frame_is_encoded_by_dask_ml_and_stays_lazy(steps, columns):
    kind = pd.Categorical(NAMED["kind"])
    codes = kind.codes[:, None] if len(steps) > 1 else np.eye(3)[kind.codes]
    expected = ridge().fit(np.column_stack([X, codes]), Y)
    pipeline = make_pipeline(Categorizer(), *steps, ridge(standardize=len(steps) == 1))
    pipeline.fit(FRAME, TARGETS)
    assert pipeline[-1].feature_names_in_.tolist() == columns
    predicted = pipeline.predict(FRAME)
    assert isinstance(predicted, da.Array)
    assert np.allclose(
        predicted.compute(), expected.predict(np.column_stack([X, codes])), rtol=1e-6, atol=1e-6
    )
    assert pipeline.score(FRAME, TARGETS) == pytest.approx(r2_score(Y, predicted.compute()))


# Searches.


@pytest.mark.parametrize(
    ("kind", "data"),
    [("GridSearchCV", (X, Y)), ("RandomizedSearchCV", (ROWS, TARGETS))],
    ids=["numpy", "dask"],
)
def test_a_search_fits_models_side_by_side(kind, data):
    options = {"n_iter": 2, "random_state": 0} if kind == "RandomizedSearchCV" else {}
    found = getattr(searches, kind)(ridge(), GRID, cv=3, **options).fit(*data)
    assert found.best_params_ == {"alpha": 0.1}
    assert np.allclose(found.predict(X), ridge().fit(X, Y).predict(X), rtol=1e-9)


@pytest.fixture(scope="module")
def client():
    """A worker with one thread, which a task that waits for others holds for ever."""
    from distributed import Client

    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with Client(processes=False, memory_limit="8 GB", **options) as client:
        yield client


def test_a_fit_in_the_task_of_a_worker_stays_there(client):
    def fitted():
        told = current_client(), current_resources()
        return told, ridge().fit(X, Y).coef_

    (there, resources), coef = client.submit(fitted).result(timeout=120)
    assert there is None
    assert (resources.n_workers, resources.n_threads) == (0, 1)
    assert resources.allowed_bytes <= 8e9
    with dask.config.set(scheduler="synchronous"):
        assert np.array_equal(coef, ridge().fit(X, Y).coef_)


def test_a_task_that_left_its_thread_may_use_the_cluster(client):
    def fitted():
        from distributed import worker_client

        with worker_client():
            told = current_client() is not None, current_resources().n_workers
            return told, ridge().fit(X, Y).coef_

    told, coef = client.submit(fitted).result(timeout=120)
    assert told == (True, 1)
    assert np.array_equal(coef, ridge().fit(X, Y).coef_)


def test_moments_of_rows_that_workers_read_come_back_with_the_model(client):
    model = ridge(alpha="cv").partial_fit(ROWS[:600], TARGETS[:600])
    model.update(ROWS[600:], TARGETS[600:])
    assert not is_delayed(model.moments_.folds)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301  our own
    there = model.coef_, model.predict(X)
    with dask.config.set(scheduler="synchronous"):
        assert np.array_equal(again.coef_, there[0])
        assert np.array_equal(again.predict(X), there[1])
