"""Penalties to try: a number, a grid of numbers, or the criterion that chooses from a grid."""

from itertools import pairwise
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import ParameterError
from streamkern.solve.spectrum import Spectrum

# What a penalty is chosen by, in words.
CRITERIA = {
    "cv": "the error of all rows left out by fold",
    "guarded": "generalised cross-validation, where folds are predicted no worse than by the mean",
    "gcv": "robust generalised cross-validation",
    "evidence": "the log marginal likelihood",
    "loo": "the error of all rows, each left out in turn",
}
N_ALPHAS = 30


def checked_alpha(alpha: Any) -> float:
    """Return the penalty as a float, or raise ParameterError unless it is finite and >= 0."""
    try:
        value = float("nan") if isinstance(alpha, bool) else float(alpha)
    except (TypeError, ValueError):
        value = float("nan")
    if not (np.isfinite(value) and value >= 0):
        raise ParameterError(
            f"alpha must be a finite number of at least 0, not {alpha!r}; give the penalty in "
            f"units of the sum of squares."
        )
    return value


def checked_penalty(alpha: Any) -> str | float | tuple[float, ...]:
    """Return a criterion, a number, or an ascending grid of numbers, or raise ParameterError."""
    if isinstance(alpha, str):
        if alpha not in CRITERIA:
            raise ParameterError(
                f"alpha must be {', '.join(map(repr, CRITERIA))} or numbers, not {alpha!r}; give "
                f"one of these."
            )
        return alpha
    if np.ndim(alpha) == 0:
        return checked_alpha(alpha)
    return checked_grid(alpha)


def checked_grid(alphas: Any) -> tuple[float, ...]:
    """Return an ascending grid of different positive numbers, or raise ParameterError."""
    grid = sorted(checked_alpha(value) for value in ([alphas] if np.ndim(alphas) == 0 else alphas))
    if not grid:
        raise ParameterError("a grid of alphas must hold a number at least; give one, or 'cv'.")
    if grid[0] == 0:
        raise ParameterError(
            "a grid of alphas must hold positive numbers only; leave out the 0, or give it alone."
        )
    if len(set(grid)) < len(grid):
        twice = next(a for a, b in pairwise(grid) if a == b)
        raise ParameterError(f"alpha {twice:g} is in the grid twice; name every penalty once.")
    return tuple(grid)


def default_grid(spectrum: Spectrum) -> Floats:
    """Return penalties from the precision floor to the largest eigenvalue."""
    return even_grid(spectrum.floor, spectrum.largest, left_out=spectrum.left_out)


def even_grid(
    least: float, largest: float, n_alphas: int = N_ALPHAS, *, left_out: float = 0.0
) -> Floats:
    """Return penalties evenly in their log; one, of any size, if the largest eigenvalue is 0.

    What features leave out of a kernel is noise to them, beside which a smaller penalty would be
    too small: held-out rows near others hardly tell, and rows in a gap would be far off.
    Rasmussen and Williams (2006), "Gaussian processes for machine learning", section 8.3.4.
    """
    if not largest > left_out:
        return np.array([left_out or 1.0])
    return np.geomspace(max(least, left_out), largest, n_alphas)
