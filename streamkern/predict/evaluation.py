"""Evaluation: rows are predicted once, and any number of measures add up what comes of it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamkern.errors import DataError
from streamkern.statistics import Statistic, Sums, parts, rows_by_fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from streamkern._typing import Floats
    from streamkern.predict.predictor import Predictor, RowFunction
    from streamkern.sources import Block
    from streamkern.statistics import Folds


class Measure(Sums):
    """Sums over rows and what is predicted for them."""

    @abstractmethod
    def add(self, rows: Block, predicted: Floats) -> None:
        """Add rows with their predictions (n, q), in place."""


@dataclass(frozen=True)
class FoldPredictors:
    """For every fold that has rows, the predictor that has not seen it."""

    rule: Folds
    predictors: Mapping[int, Predictor]

    def predictions(self, block: Block) -> Iterator[tuple[Block, Floats]]:
        """Yield the rows of every fold with predictions (n, q) by the model without it.

        Raises DataError if a row is of a fold that has none.
        """
        for fold, rows in rows_by_fold(self.rule, block):
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
        """Predict rows, and hand them to every measure."""
        for block in blocks:
            for rows, predicted in self.predictor.predictions(block):
                for measure in self.measures:
                    measure.add(rows, predicted)
