"""Losses of which outliers have a bounded share: Huber's, and quantiles."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import expit

from streamkern._typing import Floats
from streamkern.extensions.losses.loss import Loss

# Of the quantile loss: its first width and its last, over the spread of the residuals, and how many
# passes have the first.
_WIDEST, _NARROWEST, _WIDE = 0.5, 0.06, 2
# How much of the curvature of a parabola over that loss a row far off has, then and later.
_FAR_OFF, _LATER = 0.25, 0.2
# Huber's scale is settled when it changes by less than this part of it.
_SETTLED = 1e-3
# Its least, over the spread of the targets: rows that are all fitted have none.
_SMALLEST = 1e-3
# The normal deviation over the median of absolute values.
_DEVIATIONS = 1.4826


@dataclass(frozen=True)
class Huber(Loss):
    """Squares up to `threshold` scales from 0, and straight beyond; the scale is found, too.

    With z = (y - eta) / scale it is (scale / 2) (1 + H(z)), where H is z^2 or 2 t |z| - t^2, and
    the scale is what makes it least.

    Huber and Ronchetti (2009), "Robust statistics", section 7.7.
    """

    threshold: float = 1.35
    scale: float = 1.0
    is_settled: bool = False
    smallest: float = 0.0  # scale

    name, n_facts, mean_is_best, figure = "huber", 3, False, ("huber_loss", 1.0)
    number = (
        "the threshold of a Huber loss is above 1, in units of the scale of residuals",
        1.0,
        np.inf,
    )

    def values(self, y: Floats, eta: Floats) -> Floats:
        z, t = np.abs(y - eta) / self.scale, self.threshold
        inside = np.minimum(z, t)
        return 0.5 * self.scale * (1.0 + inside * (2.0 * z - inside))

    def derivatives(self, y: Floats, eta: Floats) -> tuple[Floats, Floats]:
        z, t = (y - eta) / self.scale, self.threshold
        # Beyond the threshold, half the curvature of the parabola that lies above the loss.
        outside = np.abs(z) > t
        curvature = np.where(outside, 0.5 * t / np.maximum(np.abs(z), t), 1.0) / self.scale
        return (-np.clip(z, -t, t), curvature)

    def constant(self, y: Floats, weights: Floats) -> float:
        return quantile_of(y, weights, 0.5)

    def begun(self, residuals: Floats, weights: Floats) -> Self:
        spread = spread_of(residuals, weights)
        return replace(self, scale=spread, smallest=self.smallest or _SMALLEST * spread)

    def facts(self, y: Floats, eta: Floats, weights: Floats) -> Floats:
        """Return the sum of squares up to the threshold, and the weight beyond and in all."""
        r = np.abs(y - eta)
        inside = r <= self.threshold * self.scale
        return np.array([weights @ (r * inside) ** 2, weights @ ~inside, weights.sum()])

    def next(self, facts: Floats) -> Self:
        squares, beyond, whole = facts
        spare = whole - self.threshold**2 * beyond
        found = np.sqrt(squares / spare) if spare > 0 else 2.0 * self.scale
        scale = float(np.clip(found, 0.25 * self.scale, 4.0 * self.scale))
        is_settled = abs(scale / self.scale - 1.0) < _SETTLED or scale <= self.smallest
        return replace(self, scale=max(scale, self.smallest), is_settled=is_settled)


@dataclass(frozen=True)
class Quantile(Loss):
    """The pinball loss (level - [y < eta]) (y - eta), rounded off at 0 over a width.

    Steps are of the rounded loss, of r = y - eta and a width b: level r + b log(1 + exp(-r / b)),
    whose width shrinks from pass to pass.  While it is widest, the penalty is chosen: later a few
    rows decide, and those far off are no guide.

    Koenker and Bassett (1978), "Regression quantiles"; Fernandes, Guerre and Horta (2021),
    "Smoothing quantile regressions".
    """

    level: float = 0.5
    width: float = 0.0
    last: float = 0.0  # width
    wide: int = 0  # passes of the widest that are to come

    name, mean_is_best, figure, tolerance = "quantile", False, ("pinball", 1.0), 1e-3
    number = "the level of a quantile is between 0 and 1", 0.0, 1.0

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        return self.width <= self.last

    @property
    def chooses(self) -> bool:
        return self.wide > 0

    def values(self, y: Floats, eta: Floats) -> Floats:
        r = y - eta
        if not self.width:
            return self.level * r + np.maximum(-r, 0.0)
        return self.level * r + self.width * np.logaddexp(0.0, -r / self.width)

    def derivatives(self, y: Floats, eta: Floats) -> tuple[Floats, Floats]:
        u = (y - eta) / self.width
        below = expit(-u)
        halves = 0.5 * np.maximum(np.abs(u), 1e-6)
        over = np.tanh(halves) / (4.0 * halves)  # of the parabola that touches and lies above
        curvature = (
            np.maximum(below * (1.0 - below), (_FAR_OFF if self.wide else _LATER) * over)
            / self.width
        )
        return (below - self.level, curvature)

    def constant(self, y: Floats, weights: Floats) -> float:
        return quantile_of(y, weights, self.level)

    def begun(self, residuals: Floats, weights: Floats) -> Self:
        spread = spread_of(residuals, weights)
        return replace(self, width=_WIDEST * spread, last=_NARROWEST * spread, wide=_WIDE)

    def next(self, facts: Floats) -> Self:  # noqa: ARG002
        if self.wide > 1:
            return replace(self, wide=self.wide - 1)
        return replace(self, width=max(0.4 * self.width, self.last), wide=0)

    @property
    def plain(self) -> Self:
        """The loss itself, without a width."""
        return replace(self, width=0.0, wide=0)


def quantile_of(values: Floats, weights: Floats, level: float) -> float:
    """Return the smallest value that a share of the weights is not above."""
    return float(np.quantile(values, level, weights=weights, method="inverted_cdf"))


def spread_of(residuals: Floats, weights: Floats) -> float:
    """Return a standard deviation that outliers do not move, or one where half are equal."""
    centred = np.abs(residuals - quantile_of(residuals, weights, 0.5))
    spread = _DEVIATIONS * quantile_of(centred, weights, 0.5)
    if not spread:
        spread = float(np.sqrt(np.average(np.square(centred), weights=weights)))
    return spread or 1.0
