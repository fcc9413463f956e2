"""The function that predicts: what it returns, how exactly, and in how much memory."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from tolerances import assert_close

from streamkern import Gaussian, RandomFeatureRidge
from streamkern.errors import DataError
from streamkern.features import Identity, RandomFourierFeatures, Standardized, Standardizer
from streamkern.predict import predictor as module
from streamkern.predict.predictor import PredictionBuffers, Predictor
from streamkern.runtime.scratch import Scratch

P = 3


def rows(n=50, seed=0):
    return np.random.default_rng(seed).standard_normal((n, P))


def drawn(D=10, length_scale=1.0, **options):
    return RandomFourierFeatures(Gaussian(length_scale), D, **options).draw(P)


def standardized(inner):
    rng = np.random.default_rng(5)
    return Standardized(
        Standardizer(np.arange(P), rng.normal(size=P), rng.uniform(1, 2, P), P), inner
    )


def random_predictor(feature_map, q=1, precision="single", flat=False):
    rng = np.random.default_rng(q)
    coef = rng.standard_normal((feature_map.n_components, q))
    return Predictor(feature_map, coef, rng.standard_normal(q), precision, flat)


def formula(predictor, X):
    """The sums in double, of features in double."""
    made = predictor.feature_map.transform(X) @ predictor.coef + predictor.intercept
    return made[:, 0] if predictor.flat else made


MAPS = {
    "pairs": lambda: drawn(10),
    "phases": lambda: drawn(7, paired=False),
    "standardized": lambda: standardized(drawn(10)),
    "rather alike": lambda: standardized(drawn(10, 6.0)),
    "alike": lambda: standardized(drawn(10, 100.0)),
    "more pairs than a panel": lambda: standardized(drawn(4 * module._PANEL + 6)),
    "more than a panel": lambda: drawn(2 * module._PANEL + 6),
    "chosen": lambda: standardized(drawn(10).subset(np.array([1, 4, 2]))),
    "inputs": lambda: Identity().draw(P),
}


SIZES = [1, 3, module._TARGETS_IN_CACHE + 1, module._TARGETS_AT_ONCE + 1]
CASES = [(name, q) for name in MAPS for q in (SIZES if "more" not in name else SIZES[:3])]


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(("name", "q"), CASES)
def test_predictions_are_those_of_the_formula(name, q, precision):
    predictor, X = random_predictor(MAPS[name](), q, precision), rows()
    made = predictor.predict(X)
    assert made.dtype == np.float64
    rounding = np.float32 if precision == "single" else np.float64
    assert_close(made, formula(predictor, X), dtype=rounding)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_single_target_takes_one_cosine_a_pair(precision):
    predictor = random_predictor(standardized(drawn(10)), precision=precision)
    assert predictor.form.feature_map.n_components == 5
    assert random_predictor(standardized(drawn(10)), 2).form.feature_map.n_components == 10
    if precision == "single":  # features that hardly differ keep their pairs
        alike = random_predictor(standardized(drawn(10, 100.0)))
        assert alike.form.feature_map is alike.feature_map


def test_predictions_in_lent_memory_are_the_same_and_take_no_more():
    predictor, X = random_predictor(standardized(drawn(10))), rows(1000)
    scratch, out = Scratch(), np.empty((1000, 1))
    for _ in range(2):
        buffers = PredictionBuffers(predictor, 300, scratch)
        buffers.predict(X, out)
        assert np.array_equal(out, predictor.predict(X))
    assert np.shares_memory(buffers.features, PredictionBuffers(predictor, 300, scratch).features)


@pytest.mark.parametrize("n", [0, 1, 2, 299, 300, 301, 1000])
@pytest.mark.parametrize("q", [1, 20])
def test_any_number_of_rows_is_predicted_whatever_the_memory(n, q, monkeypatch):
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", (1, 300))
    monkeypatch.setattr(module, "_BUFFER_BYTES", 300 * 4 * 20)
    predictor, X = random_predictor(drawn(), q), rows(n)
    made = predictor.predict(X)
    assert made.shape == (n, q)
    assert_close(made, formula(predictor, X), dtype=np.float32)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("q", [1, 40])
def test_only_rows_that_are_not_finite_are_predicted_as_nan(q, precision):
    predictor, X = random_predictor(drawn(), q, precision), rows()
    X[7, 1], X[30, 0], X[31, 2] = np.nan, np.inf, -np.inf
    made = predictor.predict(X)
    assert np.flatnonzero(np.isnan(made).any(axis=1)).tolist() == [7, 30, 31]
    assert np.isnan(made[[7, 30, 31]]).all()
    assert np.isfinite(np.delete(made, [7, 30, 31], axis=0)).all()


def test_a_prediction_that_overflows_is_nan_in_its_target_alone():
    predictor = Predictor(Identity().draw(P), np.array([[1.0, 1e308]] * P), np.zeros(2), "double")
    made = predictor.predict(np.full((4, P), 10.0))
    assert np.array_equal(made[:, 0], np.full(4, 30.0))
    assert np.isnan(made[:, 1]).all()


@pytest.mark.parametrize("size", [1e-300, 1e-42, 1e-30, 1.0, 1e30, 1e42, 1e300])
def test_coefficients_that_single_precision_cannot_hold_predict_as_well(size):
    predictor, X = random_predictor(drawn()), rows()
    scaled = Predictor(predictor.feature_map, predictor.coef * size, predictor.intercept * size)
    assert_close(scaled.predict(X) / size, predictor.predict(X), dtype=np.float32)


def test_targets_of_very_different_sizes_are_each_as_exact():
    predictor, X = random_predictor(drawn(), 4), rows()
    sizes = np.array([1e-24, 1e-8, 0.0, 1e20])
    scaled = Predictor(predictor.feature_map, predictor.coef * sizes, predictor.intercept * sizes)
    expected = formula(scaled, X)
    for j in range(4):
        assert_close(scaled.predict(X)[:, j], expected[:, j], dtype=np.float32)


# Ill-conditioned models: large coefficients that cancel.


def ill_conditioned(length_scale, alpha, targets=1):
    rng = np.random.default_rng(0)
    X = 10 + rng.standard_normal((3000, 9))
    y = np.sin((X - 10) @ rng.standard_normal((9, 6)) / 1.5).sum(axis=1)
    y = np.stack([y + 0.05 * rng.standard_normal(len(y)) for _ in range(targets)], axis=1)
    model = RandomFeatureRidge(
        Gaussian(length_scale), n_components=512, alpha=alpha, precision="double"
    ).fit(X, y)
    single = Predictor(model.feature_map_, model.predictor_.coef, model.predictor_.intercept)
    return model.predictor_, single, X[:1000], y.std()


@pytest.mark.parametrize(
    ("length_scale", "alpha", "targets"),
    [(3.0, 1e-3, 1), (10.0, 1e-4, 20), (30.0, 1e-5, 1), (300.0, 1e-6, 1), (300.0, 1e-6, 20)],
)
def test_single_precision_predicts_an_ill_conditioned_model_as_double_does(
    length_scale, alpha, targets
):
    double, single, X, spread = ill_conditioned(length_scale, alpha, targets)
    # The targets are of order one, and so would be what is lost to cancellation without care.
    assert np.linalg.norm(double.coef, axis=0).max() * double.feature_map.scale > spread
    assert np.abs(single.predict(X) - double.predict(X)).max() < 2e-4 * spread


# Memory.


@pytest.mark.parametrize(
    ("D", "q", "precision"),
    [(10, 5000, "single"), (2048, 1, "double"), (16384, 100, "double"), (16384, 1, "single")],
)
def test_memory_to_work_in_does_not_grow_with_rows_or_targets(D, q, precision):
    predictor = Predictor(Identity().draw(D), np.broadcast_to(1.0, (D, q)), np.zeros(q), precision)
    buffers = PredictionBuffers(predictor, 10**9)
    assert buffers.features.nbytes + buffers.products.nbytes <= 2 * max(8 << 20, 128 * 8 * D)
    assert len(buffers.features) >= 128


def test_a_predictor_travels_without_what_it_can_compute_again():
    predictor, X = random_predictor(drawn(), 50), rows()
    size = len(pickle.dumps(predictor))
    expected = predictor.predict(X)
    assert len(pickle.dumps(predictor)) == size
    assert np.array_equal(pickle.loads(pickle.dumps(predictor)).predict(X), expected)  # noqa: S301


def test_large_coefficients_of_landmarks_cost_no_digits():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    model = RandomFeatureRidge(
        Gaussian(2.0), n_components=100, feature_map="nystroem", alpha=1e-4, precision="single"
    ).fit(X, y)
    single = model.predictor_
    double = replace(single, precision="double")
    assert np.abs(double.form.coef).max() > 100 * np.abs(single.coef).max()
    np.testing.assert_allclose(single.predict(X), double.predict(X), atol=1e-6)


@pytest.mark.parametrize("name", ["fourier", "standardized", "identity"])
def test_single_rows_are_predicted_with_what_is_kept_of_others(name):
    X, maps = rows(4), {"fourier": drawn(), "identity": Identity().draw(P)}
    predictor = random_predictor(maps.get(name) or standardized(drawn()))
    alone = [replace(predictor).predict(X[i : i + 1])[0] for i in range(4)]
    X_bad = X.copy()
    X_bad[1, 0] = np.nan
    predicted = [predictor.predict(X[i : i + 1])[0] for i in (0, 1, 2, 3, 0)]
    assert np.array_equal(predicted, [*alone, alone[0]])
    assert np.isnan(predictor.predict(X_bad[1:2])).all()
    assert np.array_equal(predictor.predict(X[2:3])[0], alone[2])
    with pytest.raises(DataError, match="must have 3 columns"):
        predictor.predict(X[:1, :2])
    again = pickle.loads(pickle.dumps(predictor))  # noqa: S301  our own
    assert np.array_equal(again.predict(X[3:])[0], alone[3])


def test_threads_that_predict_single_rows_do_not_share_memory():
    X, predictor = rows(400), random_predictor(standardized(drawn(64)))
    alone = [replace(predictor).predict(row[None])[0] for row in X]
    with ThreadPoolExecutor(4) as pool:
        assert np.array_equal(list(pool.map(lambda row: predictor.predict(row[None])[0], X)), alone)
