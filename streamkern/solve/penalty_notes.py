"""Sentences about a penalty that was chosen: ordered rows, the edge of the grid, the precision."""

import numpy as np

from streamkern._typing import Array
from streamkern.solve.penalty_curve import PenaltyCurve

# Random folds of N rows differ by about sqrt(kurtosis / N); ordered ones by much more.
_ORDERED = 0.25, 6.0
# Of the mean squared error, as a power of alpha: from here double precision gained a tenth or more.
_FALLING = 0.1


def ordered_rows(curve: PenaltyCurve, chosen: Array, fold_by: str) -> str:
    """Return a note if the folds' errors lie further apart than those of random folds."""
    if curve.fold_scores is None or curve.fold_rows is None:
        return ""
    errors = curve.fold_errors(chosen)
    mean = float(errors.mean())
    base, slope = _ORDERED
    if not mean > 0 or errors.std() / mean <= base + slope / np.sqrt(curve.fold_rows.min()):
        return ""
    low, high = np.sqrt(errors.min() / mean), np.sqrt(errors.max() / mean)
    instead = "--fold-by rows deals them evenly"
    if fold_by != "blocks":
        instead += ", --fold-by blocks says how well rows of other times are predicted"
    return (
        f"the folds' errors are {low:.2f} to {high:.2f} times their mean, further apart than "
        f"is usual by chance: the rows look ordered; {instead}."
    )


def at_the_edge(curve: PenaltyCurve, chosen: Array, floor: float, precision: str) -> str:
    """Return a note if the best penalty is the first or last of the grid."""
    alphas, best = curve.alphas, curve.alphas[chosen]
    if len(alphas) < 2:
        return ""
    if best.max() == alphas[-1]:
        return "the best alpha is the largest that was tried: the features explain little."
    if precision == "single" and best.min() <= floor:
        return (
            f"the best alpha is at the precision floor {floor:.3g}, below which the sums are "
            f"rounding; double precision lowers it."
        )
    return ""


def short_of_precision(curve: PenaltyCurve, chosen: Array, floor: float, precision: str) -> str:
    """Return a note if the error still falls at the precision floor."""
    alphas = curve.alphas
    if precision != "single" or curve.criterion == "evidence" or len(alphas) < 2:
        return ""
    first, second = (curve.scores[:2] / curve.scale).mean(axis=1)  # 0 if all are constant
    falls = second > first * (alphas[1] / alphas[0]) ** _FALLING
    if alphas[chosen].min() > floor or not falls:
        return ""
    return (
        f"the error still falls at the smallest alpha that single precision allows, {floor:.3g}: "
        f"precision 'double' (--precision double) may predict better."
    )
