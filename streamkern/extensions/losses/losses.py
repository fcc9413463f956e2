"""Losses of a target y and a linear function eta, with what Newton's method asks of them.

The slope of a loss l(y, eta) is dl/deta.  Its curvature, above 0, is the second derivative, or more
where steps by that would go too far.  The loss of an exponential family is half its unit deviance,
as (y - eta)^2 / 2 is that of squares.

McCullagh and Nelder (1989), "Generalized linear models".
"""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import expit, xlogy

from streamkern._typing import Floats
from streamkern.errors import DataError, ParameterError
from streamkern.extensions.losses import FORM

# The least curvature of one row, over the largest that its kind of loss usually has: flat tails
# would send steps anywhere.
_FLAT = 1e-6
# Logarithms of means are taken no further than this: single precision holds the squares of more.
_FAR = 60.0
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


class Derivatives(NamedTuple):
    """Of the loss of rows, by eta, (n,)."""

    slope: Floats
    curvature: Floats


@dataclass(frozen=True)
class Loss(ABC):
    """A loss; those with a scale find it in the residuals."""

    name: ClassVar[str]
    link: ClassVar[str] = "identity"
    least: ClassVar[float] = -np.inf  # target, and whether it is one itself
    above: ClassVar[bool] = False
    most: ClassVar[float] = np.inf
    mean_is_best: ClassVar[bool] = True  # of constants
    figure: ClassVar[tuple[str, float]] = ("deviance", 2.0)  # what errors call the mean, times this
    tolerance: ClassVar[float] = 5e-7  # part of the objective that may be left when a fit ends
    rate: ClassVar[float] = 0.3  # the least that a step is taken to leave of what it was to gain
    n_facts: ClassVar[int] = 1  # sums that the scale follows from
    is_settled: ClassVar[Any] = True  # whether the scale stays as it is
    chooses: ClassVar[Any] = True  # whether errors of quadratics may choose the penalty

    @property
    def words(self) -> str:
        """The loss as options name it."""
        return self.name

    @abstractmethod
    def values(self, y: Floats, eta: Floats) -> Floats:
        """Return the loss of every row, (n,)."""

    @abstractmethod
    def derivatives(self, y: Floats, eta: Floats) -> Derivatives:
        """Return the slope and the curvature of every row, (n,)."""

    @abstractmethod
    def constant(self, y: Floats, weights: Floats) -> float:
        """Return the eta that is best for all rows alike."""

    @property
    def plain(self) -> Self:
        """The loss that models are judged by."""
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return the loss as plain JSON values, which `restored_loss` takes."""
        return {"name": self.name} | asdict(self)

    def variance(self, means: Floats) -> Floats:
        """Return the variances of targets over their dispersion, (n,), of an exponential family."""
        return np.full(len(means), np.nan)

    def begun(self, residuals: Floats, weights: Floats) -> Self:  # noqa: ARG002
        """Return the loss with the scale of residuals of a sample."""
        return self

    def facts(self, y: Floats, eta: Floats, weights: Floats) -> Any:  # noqa: ARG002
        """Return sums over rows, (n_facts,), that the scale follows from."""
        return 0.0

    def next(self, facts: Floats) -> Self:  # noqa: ARG002
        """Return the loss of the next pass."""
        return self

    def check(self, lowest: float, highest: float) -> None:
        """Raise DataError unless the targets, from the lowest to the highest, can be these."""
        low, high = self.least, self.most
        is_low = lowest <= low if self.above else lowest < low
        if is_low or highest > high:
            where = f"above {low:g}" if self.above else f"of at least {low:g}"
            where = where if high == np.inf else f"from {low:g} to {high:g}"
            raise DataError(
                f"the loss {self.words} is for targets {where}, but they are from {lowest:g} to "
                f"{highest:g}; take another loss, or look at the targets with `streamkern inspect`."
            )

    def check_some(self, lowest: float, highest: float) -> None:
        """Raise DataError unless there is something to learn of such targets, too."""
        self.check(lowest, highest)
        if lowest == highest and self.link != "identity":
            raise DataError(
                f"all targets are {lowest:g}, so there is nothing for the loss {self.words} to "
                f"learn; look at them with `streamkern inspect`."
            )


def _digits(number: float) -> str:
    """Return all digits of a number."""
    return np.format_float_positional(number, trim="-")


def _mean(y: Floats, weights: Floats) -> float:
    return float(np.average(y, weights=weights))


@dataclass(frozen=True)
class Logistic(Loss):
    """The log loss of a share y from 0 to 1, or of yes and no; eta is the logarithm of the odds."""

    name, link, figure, rate = "logistic", "logit", ("log_loss", 1.0), 0.02
    least, most = 0.0, 1.0

    def values(self, y: Floats, eta: Floats) -> Floats:
        return np.logaddexp(0.0, eta) - y * eta

    def derivatives(self, y: Floats, eta: Floats) -> Derivatives:
        p = expit(eta)
        return Derivatives(p - y, np.maximum(p * (1.0 - p), _FLAT))

    def constant(self, y: Floats, weights: Floats) -> float:
        least = 0.5 / (weights.sum() + 1.0)  # of a sample without one of the two
        p = np.clip(_mean(y, weights), least, 1.0 - least)
        return float(np.log(p / (1.0 - p)))

    def variance(self, means: Floats) -> Floats:
        return means * (1.0 - means)


@dataclass(frozen=True)
class Tweedie(Loss):
    """Half the deviance of a Tweedie distribution of a power, with the logarithm for a link.

    The variance is in proportion to mean^power: 1 for counts, 2 for the gamma distribution, and
    between them for sums of a random number of amounts, which may be 0.

    Jorgensen (1987), "Exponential dispersion models".
    """

    power: float = 1.5

    name, link, least = "tweedie", "log", 0.0

    def __post_init__(self) -> None:
        if not 1.0 <= self.power <= 3.0:
            raise ParameterError(
                f"the power of a Tweedie loss is from 1 to 3, not {self.power:g}; give one such as "
                f"tweedie:1.5."
            )

    @property
    def rate(self) -> float:  # type: ignore[override]
        return 0.02 if self.power == 1.0 else 0.3

    @property
    def words(self) -> str:
        return _NAMES.get(self.power, f"{self.name}:{_digits(self.power)}")

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

    def derivatives(self, y: Floats, eta: Floats) -> Derivatives:
        p, eta = self.power, np.clip(eta, -_FAR, _FAR)
        expected, observed = np.exp((2.0 - p) * eta), y * np.exp((1.0 - p) * eta)
        # The second derivative, or what it is in expectation where that is more: then far above its
        # mean a row cannot throw a step, nor far below.
        second = (2.0 - p) * expected + (p - 1.0) * observed
        return Derivatives(expected - observed, np.maximum(second, expected))

    def constant(self, y: Floats, weights: Floats) -> float:
        return float(np.log(max(_mean(y, weights), np.finfo(float).tiny)))

    def variance(self, means: Floats) -> Floats:
        return means**self.power


@dataclass(frozen=True)
class Huber(Loss):
    """Squares up to `threshold` scales from 0, and straight beyond; the scale is found, too.

    With z = (y - eta) / scale it is (scale / 2) (1 + H(z)), where H is z^2 or 2 t |z| - t^2, and
    the scale is what makes it least.

    Huber and Ronchetti (2009), "Robust statistics", section 7.7.
    """

    threshold: float = 1.35
    scale: float = 1.0
    is_settled: bool = False  # type: ignore[misc]
    smallest: float = 0.0  # scale

    name, n_facts, mean_is_best, figure = "huber", 3, False, ("huber_loss", 1.0)

    def __post_init__(self) -> None:
        if not 1.0 < self.threshold < np.inf:
            raise ParameterError(
                f"the threshold of a Huber loss is above 1, in units of the scale of residuals, "
                f"not {self.threshold:g}; give one such as huber:1.35."
            )

    @property
    def words(self) -> str:
        return f"{self.name}:{_digits(self.threshold)}"

    def values(self, y: Floats, eta: Floats) -> Floats:
        z, t = np.abs(y - eta) / self.scale, self.threshold
        inside = np.minimum(z, t)
        return 0.5 * self.scale * (1.0 + inside * (2.0 * z - inside))

    def derivatives(self, y: Floats, eta: Floats) -> Derivatives:
        z, t = (y - eta) / self.scale, self.threshold
        # Beyond the threshold, half the curvature of the parabola that lies above the loss.
        outside = np.abs(z) > t
        curvature = np.where(outside, 0.5 * t / np.maximum(np.abs(z), t), 1.0) / self.scale
        return Derivatives(-np.clip(z, -t, t), curvature)

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

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ParameterError(
                f"the level of a quantile is between 0 and 1, not {self.level:g}; give one such as "
                f"quantile:0.5."
            )

    @property
    def words(self) -> str:
        return f"{self.name}:{_digits(self.level)}"

    @property
    def is_settled(self) -> bool:
        return self.width <= self.last

    @property
    def chooses(self) -> bool:
        return self.wide > 0

    def values(self, y: Floats, eta: Floats) -> Floats:
        r = y - eta
        if not self.width:
            return self.level * r + np.maximum(-r, 0.0)
        return self.level * r + self.width * np.logaddexp(0.0, -r / self.width)

    def derivatives(self, y: Floats, eta: Floats) -> Derivatives:
        u = (y - eta) / self.width
        below = expit(-u)
        halves = 0.5 * np.maximum(np.abs(u), 1e-6)
        over = np.tanh(halves) / (4.0 * halves)  # of the parabola that touches and lies above
        curvature = (
            np.maximum(below * (1.0 - below), (_FAR_OFF if self.wide else _LATER) * over)
            / self.width
        )
        return Derivatives(below - self.level, curvature)

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


def are_alike(some: tuple[Loss, ...], others: tuple[Loss, ...]) -> bool:
    """Say whether losses are the same, but for their scales."""
    return [loss.words for loss in some] == [loss.words for loss in others]


def restored_loss(described: dict[str, Any]) -> Loss:
    """Return the loss that `Loss.as_dict` described; KeyError or TypeError if nothing did."""
    given = dict(described)
    return LOSSES[given.pop("name")](**given)


def quantile_of(values: Floats, weights: Floats, level: float) -> float:
    """Return the smallest value that a share of the weights is not above."""
    order = np.argsort(values)
    reached = np.searchsorted(np.cumsum(weights[order]), level * weights.sum())
    return float(values[order][min(reached, len(values) - 1)])


def spread_of(residuals: Floats, weights: Floats) -> float:
    """Return a standard deviation that outliers do not move, or one where half are equal."""
    centred = np.abs(residuals - quantile_of(residuals, weights, 0.5))
    spread = _DEVIATIONS * quantile_of(centred, weights, 0.5)
    if not spread:
        spread = float(np.sqrt(np.average(np.square(centred), weights=weights)))
    return spread or 1.0


LOSSES: dict[str, type[Loss]] = {each.name: each for each in (Logistic, Tweedie, Huber, Quantile)}
_NAMES = {1.0: "poisson", 2.0: "gamma"}  # of powers
# The one number that a loss may be given, in words.
_GIVEN = {"tweedie": "power", "huber": "threshold", "quantile": "level"}


def losses_of(text: Any) -> tuple[Loss, ...]:
    """Return the loss of a name, or those of several quantiles, or raise ParameterError."""
    name, _, given = str(text).partition(":")
    for power, known in _NAMES.items():
        if text == known:
            return (Tweedie(power),)
    try:
        kind = LOSSES[name]
        numbers = [float(number) for number in given.split(",")] if given else []
        is_known = len(numbers) <= 1 or name == "quantile"
    except (KeyError, ValueError):
        is_known = False
    if name == "squared":
        raise ParameterError(
            "the squared loss is that of RandomFeatureRidge, which reads the rows once; take it."
        )
    if not is_known or (numbers and name not in _GIVEN):
        raise ParameterError(f"loss must be one of {FORM}, not {text!r}; give one.")
    if list(numbers) != sorted(set(numbers)):
        raise ParameterError(
            f"quantiles must be in ascending order, each once, not {given}; give them so."
        )
    return tuple(kind(**{_GIVEN[name]: number}) for number in numbers) or (kind(),)
