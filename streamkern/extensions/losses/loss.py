"""Losses of a target y and a linear function eta, with what Newton's method asks of them.

The slope of a loss l(y, eta) is dl/deta.  Its curvature, above 0, is the second derivative, or more
where steps by that would go too far.  The loss of an exponential family is half its unit deviance,
as (y - eta)^2 / 2 is that of squares.

McCullagh and Nelder (1989), "Generalized linear models".
"""

from abc import ABC, abstractmethod
from dataclasses import Field, asdict, dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import DataError, ParameterError

# Of targets whose mean has a logarithm: more is near where steps are cut.
_LARGEST = 1e24


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
    is_settled = True  # whether the scale stays as it is
    is_joint: ClassVar[bool] = False  # whether what a row loses is the sum over several functions
    chooses: ClassVar[Any] = True  # whether errors of quadratics may choose the penalty
    # What the number is that a name may come with, the first field, and what it is between.
    number: ClassVar[tuple[str, float, float]] = ("", 0.0, 0.0)

    def __post_init__(self) -> None:
        what, low, high = self.number
        numbered = number_of(self)
        if numbered is not None and not low < (given := getattr(self, numbered.name)) < high:
            such = f"{self.name}:{numbered.default}"
            raise ParameterError(f"{what}, not {given:g}; give one such as {such}.")

    @property
    def words(self) -> str:
        """The loss as options name it."""
        numbered = number_of(self)
        if numbered is None:
            return self.name
        number = np.format_float_positional(getattr(self, numbered.name), trim="-")
        return f"{self.name}:{number}"

    @abstractmethod
    def values(self, y: Floats, eta: Floats) -> Floats:
        """Return the loss of every row, (n,)."""

    @abstractmethod
    def derivatives(self, y: Floats, eta: Floats) -> tuple[Floats, Floats]:
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

    def spread(self, means: Any, leverages: Any) -> Any:
        """Return variances of new targets, (n, 1), over their dispersion.

        They are about the means, and of what these are uncertain by.
        """
        # Of both links, the slope of the mean is the variance of the family they are natural to.
        slope = means if self.link == "log" else means * (1.0 - means)
        return self.variance(means) + slope**2 * leverages

    def begun(self, residuals: Floats, weights: Floats) -> Self:  # noqa: ARG002
        """Return the loss with the scale of residuals of a sample."""
        return self

    def first_eta(self, y: Floats, eta: Floats) -> Floats:  # noqa: ARG002
        """Return where the first step is taken from, (n,): a constant eta, or nearer to targets."""
        return eta

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

    def check_some(self, lowest: float, highest: float, mean: float) -> None:
        """Raise DataError unless there is something to learn of such targets, too."""
        self.check(lowest, highest)
        if lowest == highest and self.link != "identity":
            raise DataError(
                f"all targets are {lowest:g}, so there is nothing for the loss {self.words} to "
                f"learn; look at them with `streamkern inspect`."
            )
        if self.link == "log" and not (mean >= 1.0 / _LARGEST and highest <= _LARGEST):
            raise DataError(
                f"targets, over their exposures if they have some, are {mean:.2g} on average and "
                f"up to {highest:.2g}, but the loss {self.words} is for means from "
                f"{1.0 / _LARGEST:g} to {_LARGEST:g}; give them in other units."
            )


def number_of(loss: Any) -> Field[Any] | None:
    """Return the field of the number that the name of a loss, or a class of them, goes with."""
    return next(iter(fields(loss)), None)
