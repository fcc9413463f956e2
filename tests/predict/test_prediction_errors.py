"""Streamed scores against naive loops and scikit-learn."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score
from tolerances import assert_close

from streamkern.errors import DataError
from streamkern.features import Identity, RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.predict.evaluation import Evaluation, PredictionErrors
from streamkern.predict.predictor import Predictor

N, P = 30, 3
SCORES = ["rmse", "mae", "r2"]


def rows(q: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, P)), rng.standard_normal((N, q)), rng.random(N) + 0.1


def predictor(q: int = 2, precision: str = "double", *, flat: bool = False) -> Predictor:
    phi = RandomFourierFeatures(Gaussian(1.0), 8).draw(P)
    coef = np.random.default_rng(1).standard_normal((8, q))
    return Predictor(phi, coef, np.arange(1.0, q + 1), precision, flat)


def errors_of(made: Predictor) -> Evaluation:
    return Evaluation(made, PredictionErrors(made.n_targets))


def accumulated(zero, rows):
    return naive.accumulated(zero, rows).measures


def linear(coef: float = 1.0) -> Predictor:
    """The function that says `coef` times the only input."""
    return Predictor(Identity().draw(1), np.array([[coef]]), np.zeros(1), "double")


def naive_predictions(made: Predictor, X: np.ndarray) -> np.ndarray:
    phi = [naive.fourier_features(x, made.feature_map.frequencies, None) for x in X]
    return np.array(phi) @ made.coef + made.intercept


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
@naive.quick
@given(cuts=naive.cuts(N), chance=st.randoms(use_true_random=False))
def test_any_cuts_and_merges_give_the_scores_of_the_formulas(q, weighted, cuts, chance):
    X, y, s = rows(q)
    made = predictor(q)
    cut = naive.blocks(X, y, cuts, s if weighted else None)
    expected = naive.scores(naive_predictions(made, X), y, s if weighted else np.ones(N))
    zero = errors_of(made)
    for found in (naive.accumulated(zero, cut), naive.merged(zero, cut, chance)):
        (errors,) = found.measures
        for score in SCORES:
            assert_close(getattr(errors, score), expected[score])
        assert errors.n_rows == N


@pytest.mark.parametrize("coef", [1.0, 2.0], ids=["hit", "missed"])
@pytest.mark.parametrize("value", [0.1, 3.0])
def test_r2_of_a_constant_target_is_that_of_scikit_learn(coef, value):
    y = np.full((10, 1), value)
    (errors,) = accumulated(errors_of(linear(coef)), naive.blocks(y, y, [4]))
    assert errors.r2.tolist() == [r2_score(y, coef * y)]


def test_errors_of_targets_far_from_zero_keep_their_digits():
    X, far = rows()[0][:, :1], 2.0**30
    y = far + np.round(X * 2**10) / 2**10
    made = Predictor(Identity().draw(1), np.ones((1, 1)), np.full(1, far), "double")
    (errors,) = accumulated(errors_of(made), naive.blocks(X, y, [7]))
    expected = naive.scores(made.predict(X), y, np.ones(N))
    for score in SCORES:
        # The predictions and targets themselves are rounded in steps of 2e-7.
        assert_close(getattr(errors, score), expected[score], steps=2, size=far)


def test_a_row_that_cannot_be_predicted_shows_in_the_scores():
    X, y, _ = rows()
    X[3, 0] = np.nan
    (errors,) = accumulated(errors_of(predictor()), naive.blocks(X, y))
    assert np.isnan(errors.rmse).all()
    assert np.isnan(errors.mae).all()
    assert np.isnan(errors.r2).all()


def test_rows_of_another_width_are_refused():
    X, y, _ = rows()
    with pytest.raises(DataError, match="must have 3 columns"):
        naive.accumulated(errors_of(predictor()), naive.blocks(X[:, :2], y))
