"""Losses of exponential families: shares and classes, counts, amounts, and sums of amounts."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from streamkern._typing import Floats
from streamkern.extensions.losses.loss import Loss

# The least curvature of one row, over the largest that its kind of loss usually has: flat tails
# would send steps anywhere.
_FLAT = 1e-6
# Logarithms of means are taken no further than this: single precision holds the squares of more.
_FAR = 60.0
NAMES = {1.0: "poisson", 2.0: "gamma"}  # of powers


def _mean(y: Floats, weights: Floats) -> float:
    return float(np.average(y, weights=weights))


@dataclass(frozen=True)
class Logistic(Loss):
    """The log loss of a share y from 0 to 1, or of yes and no; eta is the logarithm of the odds."""

    name, link, figure, rate = "logistic", "logit", ("log_loss", 1.0), 0.02
    least, most = 0.0, 1.0

    def values(self, y: Floats, eta: Floats) -> Floats:
        return np.logaddexp(0.0, eta) - y * eta

    def derivatives(self, y: Floats, eta: Floats) -> tuple[Floats, Floats]:
        p = expit(eta)
        return (p - y, np.maximum(p * (1.0 - p), _FLAT))

    def constant(self, y: Floats, weights: Floats) -> float:
        least = 0.5 / (weights.sum() + 1.0)  # of a sample without one of the two
        p = np.clip(_mean(y, weights), least, 1.0 - least)
        return float(np.log(p / (1.0 - p)))

    def variance(self, means: Floats) -> Floats:
        return means * (1.0 - means)


@dataclass(frozen=True)
class Multinomial(Logistic):
    """The log loss of one of several classes, of which each row has one.

    Here eta is the logarithm of the odds of a class against all others.  A row loses by that of its
    own class alone.
    """

    name, link, is_joint = "multinomial", "softmax", True

    def values(self, y: Floats, eta: Floats) -> Floats:
        return y * np.logaddexp(0.0, -eta)


@dataclass(frozen=True)
class Tweedie(Loss):
    """Half the deviance of a Tweedie distribution of a power, with the logarithm for a link.

    The variance is in proportion to mean^power: 1 for counts, 2 for the gamma distribution, and
    between them for sums of a random number of amounts, which may be 0.

    Jorgensen (1987), "Exponential dispersion models".
    """

    power: float = 1.5

    name, link, least = "tweedie", "log", 0.0
    number = "the power of a Tweedie loss is from 1 to 3", np.nextafter(1.0, 0.0), 3.0 + 1e-9

    @property
    def rate(self) -> float:  # type: ignore[override]
        return 0.02 if self.power == 1.0 else 0.3

    @property
    def words(self) -> str:
        return NAMES.get(self.power, super().words)

    @property
    def above(self) -> bool:  # type: ignore[override]
        """Whether targets of 0 cannot be."""
        return self.power >= 2.0

    def values(self, y: Floats, eta: Floats) -> Floats:
        p, eta = self.power, np.clip(eta, -_FAR, _FAR)
        if p == 1.0:
            return xlogy(y, y) - y * eta - y + np.exp(eta)
        if p == 2.0:
            return y * np.exp(-eta) - 1.0 - np.log(y) + eta
        whole = y ** (2.0 - p) / ((1.0 - p) * (2.0 - p))
        return whole - y * np.exp((1.0 - p) * eta) / (1.0 - p) + np.exp((2.0 - p) * eta) / (2.0 - p)

    def derivatives(self, y: Floats, eta: Floats) -> tuple[Floats, Floats]:
        p, eta = self.power, np.clip(eta, -_FAR, _FAR)
        expected, observed = np.exp((2.0 - p) * eta), y * np.exp((1.0 - p) * eta)
        # The second derivative, or what it is in expectation where that is more: then far above its
        # mean a row cannot throw a step, nor far below.
        second = (2.0 - p) * expected + (p - 1.0) * observed
        return (expected - observed, np.maximum(second, expected))

    def first_eta(self, y: Floats, eta: Floats) -> Floats:
        # From a constant, a row far above it would go too far: exp of a step of y / mean.
        return np.log(0.9 * y + 0.1 * np.exp(eta))

    def constant(self, y: Floats, weights: Floats) -> float:
        return float(np.log(max(_mean(y, weights), np.finfo(float).tiny)))

    def variance(self, means: Floats) -> Floats:
        return means**self.power
