"""Estimators of one problem: they fit, tune, solve and grow by the same calls, whatever it is."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

from streamkern.errors import ParameterError
from streamkern.estimators.base import TableEstimator, fitted, with_state
from streamkern.estimators.conventions import KernelFeatures, refuse_paths
from streamkern.estimators.loading import template_of
from streamkern.estimators.paths import files_or_rows, with_fold_column
from streamkern.estimators.problems import Problem
from streamkern.kernels import Kernel
from streamkern.models.data_moments import DataMoments
from streamkern.parameters.parameters import Parameters
from streamkern.registry import extension
from streamkern.runtime.events import job


class FeatureEstimator(KernelFeatures, TableEstimator):
    """An estimator of one problem: it fits, solves and grows by the same calls, whatever it is."""

    feature_map_ = fitted("ridge.feature_map", "From raw rows to features, standardised before.")
    coef_ = fitted("ridge.coef", "The coefficients, (D,) or (D, q); of scores for a classifier.")
    intercept_ = fitted("ridge.intercept", "The intercept, a float or (q,); of scores likewise.")
    kernel_ = fitted("ridge.kernel", "The kernel, with its length scale resolved.")
    alpha_ = fitted("ridge.alpha", "The penalty that was given or chosen.")
    metric_ = fitted("ridge.metric", "M (p, p), the identity by default; 0 for inputs left out.")
    predictor_ = fitted("ridge.predictor", "What predicts rows, or gives the scores of classes.")

    @abstractmethod
    def _problem(self) -> Problem:
        """Return the problem, with its options."""

    def _parameters(self) -> Parameters:
        return Parameters.of(self)

    def support(self, X: Any) -> Any:
        """Return how well the rows of the fit cover the places of rows.

        Raises
        ------
        ModelFileError
            If the model has no sample of its rows.
        """
        return self.model_.ridge.support(self._rows(X))

    @property
    def plot(self) -> Any:
        """Pictures of the fitted model: `plot()`, `plot.penalty()` and more of `ModelPlots`."""
        return extension("report", "model_plots").ModelPlots(self)

    @property
    def moments_(self) -> Any:
        """The `DataMoments` of the rows, where they are kept or come and go, or None; not saved."""
        state: Any = self._state or self.model_  # which raises NotFittedError
        return getattr(state, "ridge", state).moments

    @job("fit")
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        times: Any = None,
        like: Any = None,
        checkpoint: str | Path | None = None,
        keep_moments: bool = False,
    ) -> Self:
        """Fit the model in two passes; a classifier reads labels first, and rows to calibrate."""
        how: dict[str, Any] = {"like": like, "checkpoint": checkpoint, "keep_moments": keep_moments}
        return self._fit(self._problem(), X, y, sample_weight, groups, times, **how)

    def _fit(
        self,
        problem: Problem,
        X: Any,
        *given: Any,
        like: Any = None,
        beside: dict[str, Any] | None = None,
        keep_moments: bool = False,
        **options: Any,
    ) -> Self:
        """Fit a problem to rows, with targets, weights, groups and times, and columns `beside`."""
        y, sample_weight, groups, times = given
        parameters, template = self._parameters(), template_of(like)
        parameters = parameters.with_moments() if keep_moments else parameters
        X = files_or_rows(X, *given)
        parameters, folds = with_fold_column(parameters, X, groups, times)
        problem.job(parameters, template)  # refused before rows are looked at
        beside = beside or {}
        named = [name for name in beside.values() if isinstance(name, str)]
        how: dict[str, Any] = {"first": True, "fewest": 2, "like": template, "drop": named}
        X, y, sample_weight = self._tables(X, y, sample_weight, **how)
        rows = X, y, sample_weight, folds | beside
        options |= {"keep_moments": keep_moments, "template": template}
        return with_state(self, problem.fit(parameters, rows, **options))

    @job("tune")
    def tune(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        times: Any = None,
        kernels: Kernel | str | Sequence[Kernel | str] | None = None,
        maps: str | Sequence[str] | None = None,
        budget: str | None = None,
        checkpoint: str | Path | None = None,
        keep_moments: bool = False,
    ) -> Self:
        """Choose scale, kernel, map, metric and number of features, and fit the model with them.

        The choice is made on a sample of the rows with cross-validation, before the pass that
        fits: within time, or among kernels and maps by successive halving.  `kernel_` and
        `report_["feature_map"]` are what was chosen, `report_["tuning"]` what was tried, and
        `report_["frontier"]` the error of each kernel, map and number of features against the
        seconds that it would take on all rows.

        Parameters
        ----------
        groups, times : array_like or Dask collection of shape (n,), optional
            As in `fit`.  Windows of time choose the penalty; what is tried on the sample leaves out
            parts of time from all others.
        kernels : Kernel, its name, sequence of them, or 'auto', optional
            Each is tried at length scales from an eighth of its own to eight times it; by default
            `kernel` alone, of 'auto' the Gaussian.  'auto' here adds Gaussian, Matern 5/2, 3/2 and
            1/2, and Laplacian.
        maps : str, sequence of str, or 'auto', optional
            Names as of `feature_map`; by default that alone.  'auto' is orthogonal Fourier
            features, the kernel at landmarks, and a grid of frequencies for up to three inputs.
        budget : str, optional
            Time such as '120s', '5m' or '1h' for search and fit; the choice then depends on the
            machine.  Kernels and maps are 'auto', unless they are given; if neither is, linear
            ridge is tried, too.  The scale and a metric are chosen, unless they are given, and up
            to 16 times `n_components`.  By default '1m', but None if kernels, maps, a checkpoint,
            or another kernel or map than the default are given: then the length scale is chosen,
            and what is named.
        checkpoint : str or Path, optional
            As in `fit`; the search is made again.
        """
        search: Any = {"kernels": kernels, "maps": maps, "budget": budget, "checkpoint": checkpoint}
        parameters, problem = self._parameters(), self._problem()
        parameters = parameters.with_moments() if keep_moments else parameters
        X = files_or_rows(X, y, sample_weight, groups, times)
        parameters, beside = with_fold_column(parameters, X, groups, times)
        tuned_fit = extension("search", "tuned_fit")
        tuned_fit.search_job(problem, parameters, **search)  # refused before rows are looked at
        rows = self._tables(X, y, sample_weight, first=True, fewest=2)
        search["keep_moments"] = keep_moments
        return with_state(self, tuned_fit.tune(problem, parameters, (*rows, beside), **search))

    @job("moments")
    def moments(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        like: Any = None,
        checkpoint: str | Path | None = None,
    ) -> DataMoments:
        """Read the rows as `fit` does, and return their moments: all that `solve` needs.

        They can be saved and merged with those of other rows, and rows can be removed from them.

        Parameters
        ----------
        like : DataMoments, estimator, or path of either, optional
            Whose map and folds these have, so that the two merge.
        """
        template = template_of(like)
        aside = copy(self)  # this one was not fitted to these rows
        rows = aside.__streamkern_rows__(X, y, sample_weight, first=True, like=template)
        options: dict[str, Any] = {"template": template, "checkpoint": checkpoint}
        return self._problem().moments(self._parameters(), rows, **options)

    @job("solve")
    def solve(self, moments: DataMoments, *, keep_moments: bool = False) -> Self:
        """Fit the model to moments, without reading rows.

        With `keep_moments`, rows can then be added and removed, if the moments know their rows.

        Raises
        ------
        ParameterError
            If there are fewer features, no folds to choose or to calibrate by, no classes for a
            classifier, or if the choice of the penalty reads rows.
        """
        model = self._problem().solve(self._parameters(), moments)
        return with_state(self, model if keep_moments else model.without_moments())

    @job("update")
    def update(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, repeated_rows: bool = False
    ) -> Self:
        """Add rows that are not in yet to a model that keeps its moments, as `partial_fit` does.

        Raises
        ------
        DataError
            If a row is in already.
        """
        return self._grow(X, y, sample_weight, self._problem(), repeated_rows=repeated_rows)

    @job("forget")
    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Remove rows from a model that keeps its moments, as if they had never been in.

        Rows have the targets and weights that they have in the model.  The map and the classes stay
        as they were chosen when the rows were in.

        Raises
        ------
        DataError
            If a row was never in, or not as often as it is here, if none would be left, or if the
            rows outweigh the others so far that the digits of these are gone.
        """
        growing, parameters, problem = _growing(), self._parameters(), self._problem()
        with growing.rows_lock(self):
            state = growing.state_of(self._state or self.model_)
            state.check(parameters, problem, known_rows=True)
            return with_state(self, state.without(self._tables(X, y, sample_weight)))

    def _begin_or_grow(
        self, X: Any, y: Any, sample_weight: Any, like: Any, problem: Problem | None = None
    ) -> Self:
        problem, growing = problem or self._problem(), _growing()
        with growing.rows_lock(self):
            if self._state is not None:
                if like is not None:
                    raise ParameterError(
                        "the model has its map already, from the first rows; leave like out, or "
                        "begin with a clone."
                    )
                return self._grow(X, y, sample_weight, problem, repeated_rows=True)
            template = template_of(like)
            rows = self._tables(X, y, sample_weight, first=True, like=template)
            return with_state(self, growing.begun(problem, self._parameters(), rows, template))

    def _grow(
        self, X: Any, y: Any, sample_weight: Any, problem: Problem, *, repeated_rows: bool
    ) -> Self:
        growing, parameters = _growing(), self._parameters()
        with growing.rows_lock(self):
            state = growing.state_of(self._state or self.model_)
            state.check(parameters, problem, known_rows=not repeated_rows)
            rows = self._tables(X, y, sample_weight, quiet=True)
            state = state.grown(parameters, problem, rows, repeated_rows=repeated_rows)
            return with_state(self, state)

    def transform(self, X: Any) -> Any:
        """Return the features of rows: standardised, mapped, and scaled.

        Parameters
        ----------
        X : array_like, data frame or Dask collection, of shape (n, p)
            Rows themselves: a source or a path is refused, by a DataError.
        """
        refuse_paths(self, X)
        return self.model_.ridge.transform(self._rows(X))

    def save(self, path: str | Path, *, compact: bool = False, force: bool = False) -> None:
        """Write the fitted model to an HDF5 file, which `streamkern.load` reads."""
        self._current_model.save(path, compact=compact, force=force)

    _n_features_out = fitted("ridge.feature_map.n_components", "D, for scikit-learn.")


def _growing() -> Any:
    """Return the extension of rows that come and go."""
    return extension("growing", "partial_fit")
