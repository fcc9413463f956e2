"""Moments in integers are the same to the bit, however rows are cut, ordered and computed."""

import dask
import h5py
import numpy as np
import pytest
from dask.callbacks import Callback
from hearing import killer_of_workers
from processor import require_exact_products
from rows_read import chunked
from scipy import sparse

import streamkern
from streamkern.errors import DataError, OverflowedError, ParameterError
from streamkern.parameters import chunking
from streamkern.runtime.events import observed

N, P = 24_000, 4


def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P), dtype=np.float32)
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(N)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    X, y = rows()
    paths = []
    for i in range(4):
        paths.append(tmp_path_factory.mktemp("data") / f"part-{i}.h5")
        part = slice(i * N // 4, (i + 1) * N // 4)
        chunked(paths[-1], 500, X=X[part], y=y[part])
    return paths


def model(**options):
    usual = {"kernel": streamkern.Gaussian(2.0), "n_components": 64, "precision": "int8"}
    return streamkern.RandomFeatureRidge(**(usual | options))


def bits(moments) -> tuple:
    """Return all that the sums over the rows are."""
    total = moments.gathered().folds.total()
    panels = [panel.tobytes() for panel in total.gram.panels]
    sums = [getattr(total, name).tobytes() for name in ("cross", "target", "target_sum")]
    return (*panels, *sums, total.weight, total.n_rows)


@pytest.fixture(scope="module")
def expected(files):
    with dask.config.set(scheduler="synchronous"):
        return bits(model().moments(streamkern.open_hdf5(files)))


@pytest.mark.parametrize("shard_rows", [1000, 12_000])
@pytest.mark.parametrize(
    ("products", "scheduler"),
    [("float32 BLAS", "synchronous"), ("ONNX Runtime", "synchronous"), ("ONNX Runtime", "threads")],
)
def test_cuts_threads_and_products_change_no_bit(
    files, expected, monkeypatch, *, shard_rows, products, scheduler
):
    require_exact_products(products)
    monkeypatch.setenv("STREAMKERN_INTEGER_PRODUCTS", products)
    monkeypatch.setattr(chunking, "SHARD_ROWS", (shard_rows, shard_rows))
    monkeypatch.setattr(chunking, "_SHARDS", 1)
    monkeypatch.setattr(chunking, "_BLOCK_ROWS", (500, 500))
    with dask.config.set(scheduler=scheduler):
        assert bits(model().moments(streamkern.open_hdf5(files))) == expected


def test_blas_threads_change_no_bit(files, expected, monkeypatch):
    monkeypatch.delenv("STREAMKERN_INTEGER_PRODUCTS", raising=False)  # MKL has one thread
    with dask.config.set({"streamkern.blas-threads": 2, "scheduler": "synchronous"}):
        assert bits(model().moments(streamkern.open_hdf5(files))) == expected


def test_files_in_another_order_have_the_same_sums(files, expected):
    assert bits(model().moments(streamkern.open_hdf5(files[::-1]))) == expected


def test_rows_that_are_forgotten_after_a_merge_leave_no_bit():
    X, y = rows()
    first = model().moments(X[:16_000], y[:16_000])
    wild = np.append(y[16_000:], 1e9)
    more = np.vstack([X[16_000:], np.zeros((1, P), np.float32)])
    both = first.merge(model().moments(more, wild, like=first))
    assert bits(both) != bits(first)
    assert bits(both.forget(more, wild)) == bits(first)


@pytest.mark.parametrize("precision", ["int8", "int16"])
def test_a_file_keeps_sums_of_32_bits_and_of_more(precision, tmp_path):
    X, y = rows()
    moments = model(precision=precision).moments(X[:2000], y[:2000])
    moments.save(tmp_path / "moments.h5")
    with h5py.File(tmp_path / "moments.h5") as file:
        assert ("gram_upper" in file["folds/0"]) == (precision == "int16")
    assert bits(streamkern.load_moments(tmp_path / "moments.h5")) == bits(moments)


def test_a_job_that_is_resumed_has_the_same_sums(files, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(chunking, "SHARD_ROWS", (1000, 1000))
    monkeypatch.setattr(chunking, "_BLOCK_ROWS", (500, 500))
    source, left = streamkern.open_hdf5(files), iter(range(80))

    def before(*_):
        if next(left, None) is None:
            raise KeyboardInterrupt

    with dask.config.set(scheduler="synchronous"):
        with Callback(pretask=before), pytest.raises(KeyboardInterrupt):
            model().moments(source, checkpoint=tmp_path / "kept")
        found = model().moments(source, checkpoint=tmp_path / "kept")
    assert found.report["resumed_shards"] > 0
    assert bits(found) == expected


@pytest.mark.cluster
def test_workers_change_no_bit(files, expected):
    with streamkern.connect(n_workers=2):
        assert bits(model().moments(streamkern.open_hdf5(files))) == expected


@pytest.mark.cluster
def test_workers_that_are_killed_change_no_bit(files, expected, monkeypatch):
    monkeypatch.setattr(chunking, "SHARD_ROWS", (1000, 1000))
    monkeypatch.setattr(chunking, "_BLOCK_ROWS", (500, 500))
    with streamkern.connect(n_workers=2) as client:
        killer, _ = killer_of_workers(client, "moments")
        with observed(killer):
            found = model().moments(streamkern.open_hdf5(files))
        assert killer.left <= 0
        assert bits(found) == expected


def test_auto_reads_again_where_a_byte_is_too_coarse():
    X = np.random.default_rng(0).standard_normal((3000, 2))
    smooth = np.sin(X[:, 0])
    noisy = smooth + np.random.default_rng(1).standard_normal(3000)
    options = {"kernel": "gaussian", "precision": "auto", "n_components": 256}
    rounded = smooth + 0.003 * (noisy - smooth)
    for y, tried in (
        (noisy, ["int8"]),
        (rounded, ["int8", "int16"]),
        (smooth, ["int8", "int16", "double"]),
    ):
        report = model(**options).fit(X, y).report_
        assert report["precision"] == tried[-1]
        assert [name for name in report["seconds"] if name in tried] == tried[:-1]
    assert model(**options, feature_map="nystroem").fit(X, y).report_["precision"] == "single"
    assert model(**options).moments(X, y).report["precision"] == "int16"


def test_rounding_has_its_share_told_and_the_remedy():
    X = np.random.default_rng(0).standard_normal((3000, 2))
    report = model(kernel="gaussian", n_components=256).fit(X, np.sin(X[:, 0])).report_
    assert 0 < report["rounding_rmse"] < report["cv_rmse"]
    assert "rounding features to int8 makes" in report["note"]
    assert "--precision int16" in report["note"]


TASKS = {
    "sparse rows": lambda ridge, X, y: ridge.fit(sparse.csr_array(X), y),
    "more rows": lambda ridge, X, y: ridge.partial_fit(X[:500], y[:500]).partial_fit(X, y),
    "a metric": lambda ridge, X, y: ridge.set_params(metric="learn:1").fit(X, y),
    "weighted folds": lambda ridge, X, y: ridge.set_params(alpha="cv").fit(X, y, np.exp(X[:, 1])),
    "a search": lambda ridge, X, y: ridge.tune(X, y, kernels=ridge.kernel),
    "classes": lambda ridge, X, y: streamkern.RandomFeatureClassifier(
        **{k: v for k, v in ridge.get_params(deep=False).items() if k != "target_range"}
    ).fit(X, y > 0),
}


@pytest.mark.parametrize("task", list(TASKS.values()), ids=list(TASKS))
def test_every_task_does_in_integers_what_it_does_in_double(task):
    (X, y), found = (part[:1500] for part in rows()), []
    X = X * (X > -1.0)
    for precision in ("double", "int8", "int16"):
        fitted = task(model(alpha=0.1, precision=precision), X, y)
        found.append(getattr(fitted, "decision_function", fitted.predict)(X))
    exact, coarse, fine = found
    assert np.std(coarse - exact) < 0.03 * exact.std()
    assert np.std(fine - exact) < 0.002 * exact.std()


def test_the_rounding_of_features_is_measured(tmp_path):
    X, y = (part[:2000] for part in rows())
    assert model().fit(X, y).report_["feature_rounding"] == pytest.approx(12**-0.5, rel=0.05)
    wide = np.random.default_rng(0).standard_normal((100, 5000))
    ridge = model(kernel=streamkern.Laplacian(0.01), precision="int16", alpha=1.0)
    angles = ridge.moments(wide, wide[:, 0])
    assert angles.report["feature_rounding"] > 10
    angles.save(tmp_path / "moments.h5")
    found = [
        ridge.solve(each) for each in (angles, streamkern.load_moments(tmp_path / "moments.h5"))
    ]
    assert found[0].report_["rounding_rmse"] == found[1].report_["rounding_rmse"]


@pytest.mark.parametrize("feature_map", ["nystroem", "identity"])
def test_maps_without_bounds_are_refused_before_rows_are_read(feature_map):
    kernel = "linear" if feature_map == "identity" else "gaussian"
    with pytest.raises(ParameterError, match=r"a bound.*take precision 'single'"):
        model(kernel=kernel, feature_map=feature_map).fit("nowhere.h5")


@pytest.mark.filterwarnings("ignore:target 0")
def test_rows_that_gave_targets_their_units_are_not_forgotten_without_a_word():
    X = np.random.default_rng(0).standard_normal((500, 2))
    y = np.sin(X[:, 0])
    y[7] = 1e12
    moments = model().moments(X, y)
    with pytest.raises(DataError, match="fit the rows that are left anew"):
        moments.forget(X[7:8], y[7:8])
    assert moments.forget(X[8:9], y[8:9]).report["rows"] == 499


def test_a_constant_target_says_nothing_of_precision():
    X = np.random.default_rng(0).standard_normal((3000, 2))
    noisy = X[:, 0] + np.random.default_rng(1).standard_normal(3000)
    constant = np.column_stack([noisy, np.ones(3000)])
    assert model(precision="auto").fit(X, constant).report_["precision"] == "int8"


def test_weights_that_units_lose_are_refused_before_the_main_pass():
    X, y = (part[:500] for part in rows())
    uneven = np.where(np.arange(500) < 3, 1e9, 0.7)
    lost = r"^weights are too small or too uneven for sums in int8"
    with pytest.raises(OverflowedError, match=lost):
        model().moments(X, y + 1.0, np.full(500, 0.4), like=model().moments(X, y))
    with pytest.raises(OverflowedError, match=lost):
        model().moments(X, y, uneven)
    with pytest.raises(OverflowedError, match=r"^rows that weigh .* are more than sums in int16"):
        model(precision="int16").moments(X, y, np.full(500, 1e9))
    assert model(precision="auto").fit(X, y, uneven).report_["precision"] == "double"


def test_whole_weights_are_exact():
    X, y = (part[:500] for part in rows())
    weights = np.random.default_rng(0).integers(1, 20_000, 500)
    moments = model().moments(X, y, weights).gathered()
    assert moments.folds.total().weight == weights.sum()


def test_a_first_batch_of_constant_targets_does_not_shut_out_the_next():
    X, y = (part[:3000] for part in rows())
    constant = 0.3 + 1e-16 * np.round(np.random.default_rng(1).random(500))
    exact, found = (
        model(alpha=1e-3, precision=precision).partial_fit(X[:500], constant).partial_fit(X, y)
        for precision in ("double", "int8")
    )
    np.testing.assert_allclose(found.predict(X[:50]), exact.predict(X[:50]), atol=0.02)


@pytest.mark.filterwarnings("ignore:.*:streamkern.errors.StreamkernWarning")
@pytest.mark.parametrize(
    ("precision", "kind"), [("int8", "none"), ("int8", "fractional"), ("int16", "equal")]
)
def test_the_rows_of_a_fit_in_integers_are_known_again_and_others_are_not(
    precision, kind, tmp_path
):
    X, y = (part[:900] for part in rows())
    rng = np.random.default_rng(4)
    weights = {
        "none": None,
        "fractional": rng.gamma(0.5, 1.0, 900) + 1e-3,
        "equal": np.full(900, 0.3),
    }[kind]
    other = y.copy()
    other[:9] += 1.0
    lighter = np.append(np.ones(899) if weights is None else weights[:-1], 1e-9)
    for alpha in ("loo", "cv"):
        ridge = model(kernel=streamkern.Gaussian(1.0), precision=precision, alpha=alpha)
        ridge.fit(X, y, weights, keep_moments=alpha == "cv")
        assert ridge.diagnose(X, y, weights)["rows"] == 900
        for wrong in ((X, other, weights), (X, y, lighter), (X[::-1], y, weights)):
            with pytest.raises(DataError, match="not the rows that the model was fitted on"):
                ridge.diagnose(*wrong)
    if kind == "fractional":
        streamkern.write_report(ridge, tmp_path / "report.html", X, y, weights)
