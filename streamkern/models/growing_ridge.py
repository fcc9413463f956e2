"""Rows that come to a fitted ridge regression, and rows that leave it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from reprlib import repr as shortened
from threading import RLock
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import numpy as np

from streamkern.errors import ParameterError
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.runtime.events import job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamkern.models.data_moments import DataMoments

# What a solution sets, and what is out of date when rows have come or gone.
_SOLVED = (
    *("report_", "equations_", "penalty_curve_", "predictor_", "feature_map_", "coef_"),
    *("intercept_", "kernel_", "alpha_"),
)
# What decides the moments of rows, and so is settled when the first of them come.
_DECIDING = (
    *("kernel", "n_components", "n_folds", "feature_map", "paired", "metric", "standardize"),
    *("precision", "random_state"),
)


class Locks:
    """What threads that share a model wait for.

    Attributes
    ----------
    rows : RLock
        Of who adds rows or takes them out: one at a time, while others may solve.
    solution : RLock
        Of who solves.
    state : RLock
        Of who changes what the two have in common, in no time.
    """

    def __init__(self) -> None:
        self.rows, self.solution, self.state = RLock(), RLock(), RLock()


_LOCKS: WeakKeyDictionary[Any, Locks] = WeakKeyDictionary()
_LOCK = RLock()


def locks_of(model: Any) -> Locks:
    """Return the locks of a model, which are not part of it, so that it can be pickled."""
    with _LOCK:
        return _LOCKS.setdefault(model, Locks())


def deciding(model: Any, *others: str) -> dict[str, Any]:
    """Return the parameters of a model that moments are made by."""
    return {name: getattr(model, name) for name in (*_DECIDING, *others)}


def check_unchanged(model: Any, made_by: Mapping[str, Any]) -> None:
    """Raise ParameterError if a model has other parameters than those its moments are made by."""
    for name, then in made_by.items():
        now = getattr(model, name)
        if now is not then and not np.array_equal(now, then):
            raise ParameterError(
                f"{name} was {shortened(then)} when the first rows came, which decided the moments "
                f"that more are added to, but is {shortened(now)} now; set it back, or begin with "
                f"a clone."
            )


class GrowingRidge(FittedRidge, ABC):
    """Rows added to the moments of a model, and taken out again, with a solution when it is asked.

    A class that fits says how rows become moments, and moments a solution.
    """

    moments_: DataMoments | None = None
    _made_by: Mapping[str, Any] = {}

    @job("partial_fit")
    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, like: Any = None
    ) -> Self:
        """Add rows to those that the model was made of, which are not read again.

        The first call fits as `fit` does, and keeps the moments.  It decides the map: length scale,
        standardisation and landmarks.  Columns that are constant in it are not left out: where they
        vary later they count in units of their value then, or of 1 where that is smaller.  The
        moments of further rows are added to those that are there; so are rows to those of a `fit`,
        `tune` or `solve` with `keep_moments=True`.  So all calls together, in any order after
        the first, are `fit` on all rows, like the first ones (its `like`), up to rounding: to about
        1e-9 in double precision.  They predict what a plain `fit` on all rows does, in any order,
        where nothing follows from the first rows: with a given length scale, `standardize=False`,
        and paired random Fourier features or the identity map.  Rows that come again count again.

        The system is solved when a fitted attribute or a prediction is next asked for, not in every
        call.  Parameters that are changed meanwhile count from then on where only the solution
        reads them, as the penalty, `sparse` and `fit_intercept`; those that decide the map and the
        number of folds are refused.  `alpha='cv'` deals the rows of every call to folds, so the
        penalty is chosen on other folds than those of one fit; a number, 'gcv' and 'evidence' are
        the same.  Rows may be fewer than folds, of which two have rows when the system is solved.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        like : DataMoments, RandomFeatureRidge, or path of either, optional
            In the first call, whose map and standardisation are taken instead.

        Raises
        ------
        ParameterError
            If the model was fitted without its moments, has a map and is given another or
            parameters of another, or if `alpha` is 'loo', which reads all rows again.
        DataError
            If the rows cannot be used, or have other inputs or targets than the first.
        InsufficientMemoryError
            If the job cannot fit, before the first read.
        """
        with locks_of(self).rows:
            is_new = self.moments_ is None and not hasattr(self, "predictor_")
            if is_new:
                self._keep(self._moments_like(X, y, sample_weight, like=like))
                self._made_by = deciding(self)
                return self
            if like is not None:
                raise ParameterError(
                    "the model has its map already, from the first rows; leave like out, or begin "
                    "with a clone."
                )
            return self._add(X, y, sample_weight, repeated_rows=True)

    @job("update")
    def update(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, repeated_rows: bool = False
    ) -> Self:
        """Add rows that are not in yet to a model that keeps its moments, as `partial_fit` does.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        repeated_rows : bool
            Rows with the values of others that are in are other observations, and count too.

        Raises
        ------
        ParameterError
            If the model does not keep its moments, or these do not know their rows, or has other
            parameters than they are made by.
        DataError
            If rows are in already, cannot be used, or have other inputs or targets.
        InsufficientMemoryError
            If the job cannot fit, before the first read.
        """
        return self._add(X, y, sample_weight, repeated_rows=repeated_rows)

    @job("forget")
    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take rows out of a model that keeps its moments, as if they had never been in.

        The map stays as it was chosen when they were in.

        Parameters
        ----------
        X, y, sample_weight
            The rows, with the weights that they have in the model.

        Raises
        ------
        ParameterError
            If the model does not keep its moments.
        DataError
            If a row was never in, or not as often as it is here, if none would be left, or if the
            rows outweigh the others so far that the digits of these are gone.
        """
        with locks_of(self).rows:
            kept = self._kept_moments(known_rows=True)
            check_unchanged(self, self._made_by)
            return self._keep(kept.forget(*self._tables(X, y, sample_weight)))

    def _kept_moments(self, *, known_rows: bool = False) -> DataMoments:
        """Return the moments of a model that grows, or raise ParameterError if there are none.

        They must know their rows if `known_rows` is true.
        """
        moments = self.moments_
        if moments is None:
            self._check_fitted()
            raise ParameterError(
                "rows come and go only where a model keeps the moments of its rows, and this one "
                "does not; begin with partial_fit instead of fit, or give fit, tune or solve "
                "keep_moments=True."
            )
        if known_rows and moments.index is None:
            raise ParameterError(
                "rows are known again, to be taken out or not to be added twice, only where a "
                "model began with partial_fit or saved moments, and this one began with fit; add "
                "rows that are not in yet by partial_fit, or begin with partial_fit instead of fit."
            )
        return moments

    def _add(self, X: Any, y: Any, sample_weight: Any, *, repeated_rows: bool) -> Self:
        with locks_of(self).rows:
            before = self._kept_moments(known_rows=not repeated_rows)
            check_unchanged(self, self._made_by)
            more = self._moments_like(X, y, sample_weight, like=before)
            return self._keep(before.merge(more, repeated_rows=repeated_rows))

    def _keep(self, moments: DataMoments) -> Self:
        """Take moments for those of all rows, and what was solved before for out of date."""
        gathered = moments.gathered()
        with locks_of(self).state:
            self.moments_ = gathered
            self._note_inputs(moments.feature_map.n_features)
            for name in _SOLVED:
                vars(self).pop(name, None)
        return self

    def _solved(self, name: str) -> Any:
        """Return what a solution sets, made once for all threads that ask."""
        with locks_of(self).solution:
            if name in vars(self):
                return vars(self)[name]
            # Rows may come in another thread meanwhile, and must not be lost.
            solved, given = copy(self), self.moments_
            solved._solve_kept()  # noqa: SLF001  its own class
            with locks_of(self).state:
                if self.moments_ is given:
                    vars(self).update({key: vars(solved)[key] for key in (*_SOLVED, "_deviation")})
            return vars(solved)[name]

    @abstractmethod
    def _moments_like(self, X: Any, y: Any, sample_weight: Any, *, like: Any) -> DataMoments:
        """Return moments of rows that know them, of the map of `like` if that is given."""

    @abstractmethod
    def _solve_kept(self) -> None:
        """Set the fitted attributes from `moments_`, and leave these as they are."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Solve when what a solution sets is asked for after rows have come or gone."""
            if name in _SOLVED and vars(self).get("moments_") is not None:
                return self._solved(name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )
