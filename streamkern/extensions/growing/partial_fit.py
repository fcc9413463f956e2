"""Models that rows come to and leave: moments, and a solution made when it is first asked for."""

from dataclasses import dataclass, field, replace
from reprlib import repr as shortened
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from streamkern.errors import ParameterError
from streamkern.estimators.problems import Problem, Rows
from streamkern.fit import sums_of
from streamkern.fitting.planned_fit import planned_fit
from streamkern.models.data_moments import DataMoments
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.template import Template
from streamkern.sources.columns import Columns

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

    @property
    def columns(self) -> Columns:
        """Those of the rows, without a solution."""
        return self.moments.columns

    def check(self, parameters: Parameters, problem: Problem, *, known_rows: bool) -> None:
        """Raise ParameterError unless rows may come, or go: these are to be known again."""
        if known_rows and self.moments.index is None:
            raise ParameterError(
                "rows are known again, to be taken out or not to be added twice, only where a "
                "model began with partial_fit or saved moments, and this one began with fit; add "
                "rows that are not in yet by partial_fit, or begin with partial_fit instead of fit."
            )
        self._check_unchanged(parameters, problem)

    def grown(
        self, parameters: Parameters, problem: Problem, rows: Rows, *, repeated_rows: bool
    ) -> "PartialFitState":
        """Return the state with more rows, counted again where they are repeated."""
        more = _moments_of(problem, parameters, rows, before=self.moments)
        return self._with(self.moments.merge(more, repeated_rows=repeated_rows))

    def without(self, rows: Rows) -> "PartialFitState":
        return self._with(self.moments.forget(*rows))

    def _with(self, moments: DataMoments) -> "PartialFitState":
        return PartialFitState(moments.gathered(), self.parameters, self.deciding, self.size)

    def _check_unchanged(self, parameters: Parameters, problem: Problem) -> None:
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


def begun(
    problem: Problem, parameters: Parameters, rows: Rows, template: Template | None
) -> PartialFitState:
    """Return what grows from the first rows."""
    moments = _moments_of(problem, parameters, rows, template=template)
    return PartialFitState(moments.gathered(), parameters, problem.deciding)


def state_of(state: Any) -> PartialFitState:
    """Return what rows come to, of a fitted model its moments; ParameterError without any."""
    if isinstance(state, PartialFitState):
        return state
    ridge = state.ridge
    moments = ridge.moments or ridge.growing
    if moments is None:
        raise ParameterError(
            "rows come and go only where a model keeps the moments of its rows, and this one "
            "does not: of a fit they are kept up to 64 MB, and in no copy or file; begin with "
            "partial_fit instead of fit, or give fit, tune or solve keep_moments=True."
        )
    moments.check_whole()
    return PartialFitState(moments, ridge.parameters, state.deciding, ridge.size)


def _moments_of(
    problem: Problem,
    parameters: Parameters,
    rows: Rows,
    *,
    template: Template | None = None,
    before: DataMoments | None = None,
) -> DataMoments:
    """Return the moments of rows that come to a model: the first, or more than `before`."""
    parameters = problem.prepared(parameters)
    parameters.check_direct()
    template = template if before is None else before.template()
    if template is None:
        parameters = parameters.growing()
    options = parameters.pass_options(template)
    parameters.penalty.check_without_rows()
    if before is not None:  # alpha may have changed
        if options.n_folds > before.n_folds == 1:
            raise ParameterError(
                "cross-validation and calibration need folds, but the rows that are in were "
                "not dealt to any; take alpha 'gcv', 'evidence' or a number, and of classes "
                "calibration None, or begin with a clone."
            )
        options = replace(options, n_folds=before.n_folds)
    source = problem.growing_source(rows, parameters, template, first=before is None)
    context = planned_fit(
        source,
        parameters.for_rows(options, source, template),
        like=template,
        indexed=before is None or before.index is not None,
        fixed_alpha=parameters.solves_at_once,
        more_to_come=True,
        target_range=parameters.target_range,
    )
    return sums_of(context)
