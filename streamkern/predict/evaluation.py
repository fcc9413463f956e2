"""Evaluation: rows are predicted once, and any number of measures add up what comes of it."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import DataError
from streamkern.predict.predictor import Predictor, RowFunction
from streamkern.sources import Block
from streamkern.statistics import (
    ColumnStatistics,
    Folds,
    Statistic,
    Sums,
    part,
    parts,
    rows_by_fold,
    total,
)


class Measure(Sums):
    """Sums over rows and what is predicted for them."""

    @abstractmethod
    def add(self, rows: Block, predicted: Floats) -> None:
        """Add rows with their predictions (n, q), in place."""


@dataclass(frozen=True)
class FoldPredictors:
    """For every fold that has rows, the predictor without it; rows of fold -1 have none."""

    rule: Folds
    predictors: Mapping[int, Predictor]

    def with_link(self, link: str) -> "FoldPredictors":
        """Return the same predictors, with another link."""
        found = self.predictors.items()
        return FoldPredictors(self.rule, {k: replace(each, link=link) for k, each in found})

    def predictions(self, block: Block) -> Iterator[tuple[Block, Floats]]:
        """Yield the rows of every fold with predictions (n, q) by the model without it."""
        for fold, rows in rows_by_fold(self.rule, block):
            if fold < 0:
                continue
            if fold not in self.predictors:
                raise DataError(
                    f"row {rows.places()[0]:,} is in fold {fold + 1}, which had no rows when the "
                    f"model was fitted; give the rows of the fit."
                )
            yield from self.predictors[fold].predictions(rows)


class Evaluation(Statistic):
    """Predictions of rows, by one model or by that without their fold, and measures of these."""

    predictor: RowFunction | FoldPredictors
    measures: tuple[Measure, ...] = parts()

    def __init__(self, predictor: RowFunction | FoldPredictors, *measures: Measure) -> None:
        self.predictor = predictor
        self.measures = measures

    def update(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            for rows, predicted in self.predictor.predictions(block):
                for measure in self.measures:
                    measure.add(rows, predicted)


class PredictionErrors(Measure):
    """Squared and absolute errors of predictions of q targets, and the spread of these."""

    n_targets: int
    n_rows: int = total(dtype=int)
    weight: float = total()
    squared: Floats = total("n_targets")
    absolute: Floats = total("n_targets")
    targets: ColumnStatistics = part(lambda errors: ColumnStatistics(errors.n_targets))

    @property
    def mse(self) -> Floats:
        """Mean squared error, (q,)."""
        return self.squared / self.weight

    @property
    def rmse(self) -> Floats:
        """Root mean squared error, (q,), in the units of the targets."""
        return np.sqrt(self.mse)

    @property
    def mae(self) -> Floats:
        """Mean absolute error, (q,), in the units of the targets."""
        return self.absolute / self.weight

    @property
    def r2(self) -> Floats:
        return r2_of(self.squared, self.targets)

    @property
    def score(self) -> float:
        """The mean R^2 over targets, as scikit-learn's score of a regression."""
        return float(self.r2.mean())

    def facts(self, *, flat: bool) -> dict[str, Any]:
        """Return what is said of the errors: numbers of flat targets, else lists, and means."""
        each = {"rmse": self.rmse, "mae": self.mae, "r2": self.r2}
        found: dict[str, Any] = {name: as_stored(values, flat) for name, values in each.items()}
        if not flat:
            found |= {f"{name}_mean": float(values.mean()) for name, values in each.items()}
        spread = np.sqrt(self.targets.squares / self.weight)
        return found | {"baseline": {"rmse": as_stored(spread, flat)}}

    def add(self, rows: Block, predicted: Floats) -> None:
        errors = predicted - rows.y
        weights = rows.each_weight()
        self.squared += weights @ errors**2
        self.absolute += weights @ np.abs(errors)
        self.weight += float(weights.sum())
        self.n_rows += len(rows)
        self.targets.update([type(rows)(rows.X[:, :0], rows.y, rows.start, rows.weights)])


def r2_of(squared: Floats, columns: ColumnStatistics) -> Floats:
    """Return the coefficients of determination (q,) of targets with such sums of squared errors.

    The targets are the last columns.  Where one is constant, the value is scikit-learn's.
    """
    # Rounding leaves a constant target a spread; its range is exact.
    spread = np.where(columns.constant(0.0), 0.0, columns.squares)[-len(squared) :]
    constant = np.where(squared == 0, 1.0, 0.0)
    return np.where(spread > 0, 1.0 - squared / np.where(spread > 0, spread, 1.0), constant)


def as_stored(per_target: Floats, flat: bool) -> Any:
    """Return a number for a single target that is stored as (n,), else a list."""
    return float(per_target[0]) if flat else per_target.tolist()
