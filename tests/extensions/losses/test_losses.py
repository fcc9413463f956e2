"""Losses by themselves: slopes, curvatures, constants, and what they refuse."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import poisson

from streamkern.errors import DataError, ParameterError
from streamkern.extensions.losses.loss_names import losses_of, restored_loss
from streamkern.extensions.losses.robust_losses import quantile_of

RNG = np.random.default_rng(0)
ETA = RNG.normal(size=400)
TARGETS = {
    "logistic": (RNG.random(400) < 0.4) * 1.0,
    "poisson": RNG.poisson(np.exp(ETA)) * 1.0,
    "gamma": RNG.gamma(2.0, np.exp(ETA)),
    "tweedie:1.4": np.where(RNG.random(400) < 0.3, 0.0, RNG.gamma(2.0, np.exp(ETA))),
    "tweedie:3": RNG.wald(np.exp(ETA), 1.0),
    "huber": ETA + RNG.standard_t(2, size=400),
    "quantile:0.2": ETA + RNG.standard_t(2, size=400),
}
WEIGHTS = RNG.random(400)


def begun(name):
    return losses_of(name)[0].begun(TARGETS[name] - ETA, WEIGHTS)


@pytest.mark.parametrize("name", TARGETS)
def test_slopes_are_those_of_values_and_curvature_is_no_less_than_theirs(name):
    loss, y, h = begun(name), TARGETS[name], 1e-5
    slope, curvature = loss.derivatives(y, ETA)
    values = [loss.values(y, ETA + step) for step in (-h, 0.0, h)]
    np.testing.assert_allclose(slope, (values[2] - values[0]) / (2 * h), rtol=1e-4, atol=1e-7)
    second = (values[2] - 2 * values[1] + values[0]) / h**2
    assert (curvature > 0).all()
    assert (curvature >= second - 1e-3 * (1 + np.abs(second))).all()


@pytest.mark.parametrize("name", TARGETS)
def test_no_constant_is_better_than_the_best(name):
    loss, y = begun(name).plain, TARGETS[name]
    found = loss.constant(y, WEIGHTS)

    def total(eta):
        return WEIGHTS @ loss.values(y, np.full(len(y), eta))

    best = minimize_scalar(total, bounds=(-5, 5), method="bounded", options={"xatol": 1e-9})
    allowed = 0.02 if name == "huber" else 1e-6  # a median stands for the best there
    assert total(found) <= best.fun * (1 + allowed)


def test_half_the_deviance_of_counts_is_what_likelihood_leaves():
    y, eta = TARGETS["poisson"], ETA
    lost = poisson.logpmf(y, np.maximum(y, 1e-12)) - poisson.logpmf(y, np.exp(eta))
    np.testing.assert_allclose(begun("poisson").values(y, eta), lost, atol=1e-9)


@pytest.mark.parametrize("name", TARGETS)
def test_a_loss_comes_back_from_what_describes_it(name):
    loss = begun(name)
    assert restored_loss(loss.as_dict()) == loss
    assert losses_of(loss.words)[0].words == loss.words


def test_weights_are_repeats_in_quantiles():
    values, counts = np.array([3.0, 1.0, 2.0]), np.array([1.0, 5.0, 2.0])
    repeated = np.repeat(values, counts.astype(int))
    for level in (0.1, 0.5, 0.7, 0.99):
        assert quantile_of(values, counts, level) == quantile_of(repeated, np.ones(8), level)


@pytest.mark.parametrize(
    "text",
    ["", "square", "squared", "poisson:2", "tweedie:0.5", "tweedie:x", "tweedie:1,2", "huber:1",
     "quantile:0", "quantile:1", "quantile:0.5,0.2", "quantile:0.5,0.5", None, 3],
)  # fmt: skip
def test_what_is_no_loss_is_refused_in_a_sentence(text):
    with pytest.raises(ParameterError, match=r"; (give|take)"):
        losses_of(text)


@pytest.mark.parametrize(
    ("name", "ends", "words"),
    [
        ("poisson", (-1.0, 4.0), "of at least 0"),
        ("gamma", (0.0, 4.0), "above 0"),
        ("logistic", (0.0, 2.0), "from 0 to 1"),
        ("logistic", (1.0, 1.0), "all targets are 1"),
        ("poisson", (0.0, 0.0), "all targets are 0"),
        ("poisson", (0.0, 1e30), "up to 1e.30, but the loss poisson is for means from 1e-24"),
        ("gamma", (1e-40, 1e-30), "in other units"),
    ],
)
def test_targets_that_cannot_be_are_refused(name, ends, words):
    with pytest.raises(DataError, match=words):
        losses_of(name)[0].check_some(*ends, mean=max(ends))


def test_words_have_all_digits():
    for text in ("quantile:0.9999999", "tweedie:1.9999999", "huber:1.0000001"):
        assert losses_of(text)[0].words == text
