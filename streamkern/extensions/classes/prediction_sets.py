"""Prediction sets: the classes that a row may be of, by scores of rows that were held out.

Class k is in the set of a row if its score is at least t_k, which a stated share of the held-out
rows of class k reach.  So of new rows of every class about that share has it in the set.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats, Group
from streamkern.errors import ModelFileError, ParameterError
from streamkern.extensions.classes.class_errors import ScoreTable, is_known
from streamkern.extensions.classes.class_rule import ClassRule, codes_of
from streamkern.predict.evaluation import Measure
from streamkern.predict.interval_fit import LEVELS
from streamkern.predict.intervals import place_of_level
from streamkern.sources import Block
from streamkern.statistics import total
from streamkern.storage.untrusted import finite_array

# No score is below it: a class that too few rows were held out of is in every set.
_ALWAYS = -1e100
# Of sets that are evaluated.
LEVEL = 0.9


@dataclass(frozen=True)
class PredictionSets:
    """Thresholds of the scores of K classes, (L, K), at the shares of rows of `LEVELS`.

    Two classes have one score, which counts for the second, and its negative for the first.  One
    row more is counted, of the mean weight of those of its class.

    Vovk, Gammerman and Shafer (2005), "Algorithmic learning in a random world", section 4.5;
    Sadinle, Lei and Wasserman (2019), "Least ambiguous set-valued classifiers with bounded error
    levels".
    """

    thresholds: Floats

    @classmethod
    def of(cls, table: ScoreTable) -> "PredictionSets":
        """Return the sets of a table of scores of held-out rows, of a bin all at its lower end."""
        places = np.linspace(-1.0, 1.0, table.n_bins + 1)[1:-1]
        apart = places / (1.0 - np.abs(places))
        ends = np.insert(table.centre[:, None] + table.unit[:, None] * apart, 0, _ALWAYS, axis=1)
        of_class, n_rows = table.weights[:, 1], table.n_of_class[:, 1]
        if len(table.centre) == 1:
            # Of negative scores the bins come the other way, and begin where they ended.
            negative = -np.append(ends[0, 1:], -_ALWAYS)
            of_class, n_rows = table.weights[0, :, :].copy(), table.n_of_class[0]
            of_class[0], ends = of_class[0, ::-1], np.array([negative[::-1], ends[0]])
        thresholds = np.full((len(LEVELS), len(ends)), _ALWAYS)
        for k in np.flatnonzero(of_class.sum(axis=1)).tolist():
            weight = of_class[k].sum()
            shares = np.cumsum(of_class[k, ::-1]) / (weight + weight / n_rows[k])
            found = np.append(ends[k, ::-1], _ALWAYS)
            thresholds[:, k] = found[np.searchsorted(shares, LEVELS - 1e-12)]
        return cls(thresholds)

    def at(self, level: Any) -> "PredictionSet":
        """Return sets that hold the class of a share of new rows, or raise ParameterError."""
        place = place_of_level(level, LEVELS)
        if place == len(LEVELS):
            raise ParameterError(
                f"sets are kept that hold up to {100 * LEVELS[-1]:g}% of new rows, not "
                f"{100 * level:.6g}%; ask for that."
            )
        return PredictionSet(self.thresholds[place])

    @classmethod
    def restored(cls, group: Group, n_classes: int) -> "PredictionSets":
        found = finite_array(group, "thresholds", (len(LEVELS), n_classes))
        if (np.diff(found, axis=0) > 0).any():
            raise ValueError("thresholds of sets that rise with their level")
        return cls(found)


@dataclass(frozen=True)
class PredictionSet:
    """Sets at one level."""

    thresholds: Floats  # (K,)

    def members(self, rule: ClassRule, scores: Floats) -> Array:
        """Return which classes are in the sets of rows, (n, K); the one that is predicted is.

        Rows without a score have none.
        """
        of_each = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
        found = of_each >= self.thresholds
        found[np.arange(len(found)), rule.codes(scores)] = True
        return found & np.isfinite(of_each).all(axis=1, keepdims=True)


class SetErrors(Measure):
    """Weights of rows, and of those in whose sets their class is, and sizes of sets, by class."""

    rule: ClassRule
    sets: PredictionSet
    sums: Floats = total(3, "sets.thresholds.size")

    def add(self, rows: Block, predicted: Floats) -> None:
        known = is_known(predicted, rows.y)
        members, codes = self.sets.members(self.rule, predicted[known]), codes_of(rows.y[known])
        weights, held = rows.each_weight()[known], members[np.arange(len(codes)), codes]
        counted = weights, weights * held, weights * members.sum(axis=1)
        self.sums += [np.bincount(codes, each, self.sums.shape[1]) for each in counted]

    def facts(self) -> dict[str, Any]:
        """Return coverage, in all and by class (None of one without rows), and the mean size."""
        weights, held, sizes = self.sums
        by_class = [float(h / w) if w else None for h, w in zip(held, weights, strict=True)]
        whole = weights.sum()
        facts = {"coverage": float(held.sum() / whole), "size": float(sizes.sum() / whole)}
        return {"level": LEVEL} | facts | {"by_class": by_class}


def known_sets(sets: PredictionSets | None) -> PredictionSets:
    """Return the sets of a model, or raise ModelFileError if it has none."""
    if sets is None:
        raise ModelFileError(
            "prediction sets need scores of held-out rows, which a fit to rows with calibration "
            "'auto' keeps (and moments, rows that come and go, log losses and older files do not); "
            "calibrate on rows held out."
        )
    return sets
