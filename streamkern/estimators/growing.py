"""Models that rows come to and leave: moments, and a solution made when it is first asked for."""

from dataclasses import dataclass, field, replace
from reprlib import repr as shortened
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from streamkern.errors import ParameterError
from streamkern.estimators.problems import Problem
from streamkern.models.data_moments import DataMoments
from streamkern.parameters.parameters import Parameters

# What decides the moments of rows, and so is settled when the first of them come.
_DECIDING = (
    *("kernel", "n_components", "n_folds", "feature_map", "paired", "metric", "standardize"),
    *("scale", "trend", "precision", "random_state"),
)
_LOCKS: WeakKeyDictionary[Any, RLock] = WeakKeyDictionary()
_LOCK = Lock()


def rows_lock(model: Any) -> RLock:
    """Return the lock of those who change the rows of a model, which is no part of the model."""
    with _LOCK:
        return _LOCKS.setdefault(model, RLock())


@dataclass(eq=False, repr=False)
class PartialFitState:
    """The moments of the rows that are in; they do not change, but are solved once."""

    moments: DataMoments
    parameters: Parameters
    deciding: dict[str, Any]  # options of the problem that decided them
    size: int | None = None  # how many leading features a solution takes; all by default
    _fitted: Any = field(default=None, init=False)

    def solved(self, parameters: Parameters, problem: Problem) -> Any:
        """Return the fitted model, by the parameters of whoever asks first.

        What decided the moments is theirs.
        """
        with rows_lock(self):
            if self._fitted is None:
                settled = {name: getattr(self.parameters, name) for name in _DECIDING}
                parameters = replace(problem.prepared(parameters), **settled)
                if self.deciding:
                    problem = replace(problem, **self.deciding)  # type: ignore[type-var]
                self._fitted = problem.solved(self.moments, parameters, self.size)
            return self._fitted

    def with_moments(self, moments: DataMoments) -> "PartialFitState":
        """Return what grows from other moments, made by the same parameters."""
        return PartialFitState(moments.gathered(), self.parameters, self.deciding, self.size)

    def known_rows(self) -> DataMoments:
        """Return the moments, or raise ParameterError if they do not know their rows."""
        if self.moments.index is None:
            raise ParameterError(
                "rows are known again, to be taken out or not to be added twice, only where a "
                "model began with partial_fit or saved moments, and this one began with fit; add "
                "rows that are not in yet by partial_fit, or begin with partial_fit instead of fit."
            )
        return self.moments

    def check_unchanged(self, parameters: Parameters, problem: Problem) -> None:
        """Raise ParameterError if parameters are others than those that the moments are made by."""
        pairs = [
            (name, getattr(self.parameters, name), getattr(parameters, name)) for name in _DECIDING
        ]
        pairs += [(name, then, problem.deciding[name]) for name, then in self.deciding.items()]
        for name, then, now in pairs:
            if now is not then and not np.array_equal(now, then):
                raise ParameterError(
                    f"{name} was {shortened(then)} when the first rows came, which decided the "
                    f"moments that more are added to, but is {shortened(now)} now; set it back, or "
                    f"begin with a clone."
                )
